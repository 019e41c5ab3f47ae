// Package owncommand reads the commands that a person or a project has written for conversations: texts with places for
// arguments (commands/NAME.md), and macros in the form of Loki and Coyote (macros/NAME.yaml), which are lists of lines
// that are typed one after the other.
package owncommand

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/agentfile"
)

// largestFile is the size in bytes above which a file is not read.
const largestFile = 256 << 10

// A Command is a file.
type Command struct {
	Name        string
	Description string // one line; may be empty
	Hint        string // how arguments are written; may be empty
	Path        string // of the file, absolute
	Project     bool   // it comes with the workspace: a person must have agreed to it
	Macro       bool

	root string // what the file may not be outside of; "": there is none
}

// ProjectDir returns the directory of the commands of a workspace, which need not exist.
func ProjectDir(workspace string) string { return filepath.Join(workspace, ".raddle", "commands") }

// List returns the commands and macros of the directory of configuration, and the commands of a workspace, sorted by
// name. Of several with one name the first counts: a command of the person, a macro, one of the project. An unreadable
// head has no description.
func List(configDir, workspace string) (list []Command) {
	add := func(root, dir, ending string, project bool) {
		entries, _ := os.ReadDir(dir) // a directory that does not exist has no commands
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ending)
			if !ok || !isName(name) || slices.ContainsFunc(list, func(c Command) bool { return c.Name == name }) {
				continue
			}
			c := Command{Name: name, Path: filepath.Join(dir, e.Name()), Project: project, Macro: ending == macroEnding, root: root}
			c.readHead()
			list = append(list, c)
		}
	}
	add("", filepath.Join(configDir, "commands"), ".md", false)
	add("", filepath.Join(configDir, "macros"), macroEnding, false)
	add(workspace, ProjectDir(workspace), ".md", true)
	slices.SortFunc(list, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

const macroEnding = ".yaml"

// isName reports whether a text can be typed as the name of a command.
func isName(name string) bool {
	return name != "" && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, " \t\n/\\")
}

func (c *Command) readFile() ([]byte, error) {
	if c.root != "" {
		return plainfile.ReadBeneath(c.root, c.Path, largestFile)
	}
	return plainfile.Read(c.Path, largestFile)
}

func (c *Command) readHead() {
	text, err := c.readFile()
	switch {
	case err != nil:
	case c.Macro:
		if m, err := parseMacro(text); err == nil {
			c.Description = strings.Join(strings.Fields(m.Description), " ")
			c.Hint = m.usage()
		}
	default:
		m := agentfile.ReadMarkdown(text)
		c.Description = m.FindText("description")
		c.Hint = m.FindText("argument-hint")
	}
}

// Expand returns the lines that a command means with arguments: one message of a text, each step of a macro.
func (c Command) Expand(args string) (lines []string, err error) {
	text, err := c.readFile()
	if err != nil {
		return nil, fmt.Errorf("the command %s cannot be read: %w", c.Name, err)
	}
	if c.Macro {
		m, err := parseMacro(text)
		if err != nil {
			return nil, failure.NewInvalid("correct the file", "the macro %s: %v", c.Path, err)
		}
		return m.expand(c.Name, SplitWords(args))
	}
	body := agentfile.ReadMarkdown(text).Body
	if body == "" {
		return nil, failure.NewInvalid("write a text into it", "the command %s is empty", c.Path)
	}
	return []string{fillArguments(body, args)}, nil
}

// argumentPlace are the places of arguments in a text.
var argumentPlace = pattern.CompileLater(`\$(ARGUMENTS|[1-9])\b`)

// fillArguments fills the places of arguments: $ARGUMENTS has all of them as they were typed, $1 to $9 have one word
// each. Arguments of a text without places follow it. What an argument says is not looked at again.
func fillArguments(body, args string) string {
	args = strings.TrimSpace(args)
	if !argumentPlace().MatchString(body) {
		if args == "" {
			return body
		}
		return body + "\n\nARGUMENTS: " + args
	}
	words := SplitWords(args)
	return argumentPlace().ReplaceAllStringFunc(body, func(place string) string {
		if place == "$ARGUMENTS" {
			return args
		}
		if n := int(place[1] - '1'); n < len(words) {
			return words[n]
		}
		return ""
	})
}

// SplitWords divides arguments into words at white space that is not between quotes, which are taken away. A quote that
// is not closed ends at the end.
func SplitWords(text string) (words []string) {
	var word strings.Builder
	quote := rune(0)
	open := false
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"', c == '\'' && !open:
			quote = c
			open = true
		case c == ' ', c == '\t', c == '\n':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}

// A macro is a file of Loki or Coyote.
type macro struct {
	Description string     `yaml:"description"`
	Isolated    *bool      `yaml:"isolated"`
	Variables   []variable `yaml:"variables"`
	Steps       []string   `yaml:"steps"`
}

// A variable is an argument of a macro.
type variable struct {
	Name    string  `yaml:"name"`
	Rest    bool    `yaml:"rest"` // the last one takes all further words
	Default *string `yaml:"default"`
}

func parseMacro(text []byte) (m macro, err error) {
	if err := yaml.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if len(m.Steps) == 0 {
		return m, errors.New("it has no steps")
	}
	return m, nil
}

// usage returns how the arguments are written.
func (m macro) usage() string {
	var words []string
	for i, v := range m.Variables {
		word := v.Name
		if v.Rest && i == len(m.Variables)-1 {
			word += "..."
		}
		if v.Default != nil {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// expand returns the steps with the arguments in their places, {{NAME}}. What an argument says is not looked at again.
func (m macro) expand(name string, args []string) (lines []string, err error) {
	var pairs []string
	for i, v := range m.Variables {
		value := ""
		switch last := i == len(m.Variables)-1; {
		case i < len(args) && v.Rest && last:
			value = strings.Join(args[i:], " ")
		case i < len(args):
			value = args[i]
		case v.Default != nil:
			value = *v.Default
		default:
			return nil, failure.NewUsage("write: /"+strings.TrimSpace(name+" "+m.usage()), "/%s: %s is missing", name, v.Name)
		}
		pairs = append(pairs, "{{"+v.Name+"}}", value)
	}
	fill := strings.NewReplacer(pairs...)
	for _, step := range m.Steps {
		if step = strings.TrimSpace(fill.Replace(step)); step != "" {
			lines = append(lines, step)
		}
	}
	return lines, nil
}
