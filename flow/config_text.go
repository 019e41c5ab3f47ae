package flow

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// placeholderFiller fills in the placeholders of a config.yaml's texts: first the agent's
// variables, then the special variables, so that the value of a variable may
// contain a special one. Other names stay as they are.
type placeholderFiller struct {
	variables []strictyaml.Pair // in the order of their declaration
	tools     []tool.Tool
	env       func(name string) string
	cwd       string
	now       time.Time
}

var specialName = pattern.CompileLater(`\{\{(\w+)\}\}`)

func (f *placeholderFiller) fillText(text string) string {
	for _, v := range f.variables {
		text = strings.ReplaceAll(text, "{{"+v.Key+"}}", v.Value)
	}
	return specialName().ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := f.specialValue(found[2 : len(found)-2]); ok {
			return value
		}
		return found
	})
}

// specialValue returns the value of a special variable.
func (f *placeholderFiller) specialValue(name string) (string, bool) {
	switch name {
	case "__os__":
		return osName(goruntime.GOOS), true
	case "__os_distro__":
		return distroName(), true
	case "__os_family__":
		if goruntime.GOOS == "windows" {
			return "windows", true
		}
		return "unix", true
	case "__arch__":
		return archName(goruntime.GOARCH), true
	case "__shell__":
		return f.shellName(), true
	case "__locale__":
		return f.localeTag(), true
	case "__now__":
		return f.now.Format(time.RFC3339), true
	case "__cwd__":
		return f.cwd, true
	case "__tools__":
		return toolList(f.tools), true
	}
	return "", false
}

// toolList returns a numbered list of tools, each with the first line of its
// description.
func toolList(tools []tool.Tool) string {
	var b strings.Builder
	for i, u := range tools {
		what, _, _ := strings.Cut(strings.TrimSpace(u.Description), "\n")
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(i+1) + ". " + u.Name + ": " + what)
	}
	return b.String()
}

// osName returns the name of an operating system as the file format's reference
// uses it.
func osName(goos string) string {
	if goos == "darwin" {
		return "macos"
	}
	return goos
}

// archName returns the name of a processor as the file format's reference uses
// it.
func archName(goarch string) string {
	switch goarch {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	case "386":
		return "x86"
	}
	return goarch
}

func distroName() string {
	if goruntime.GOOS != "linux" {
		return osName(goruntime.GOOS)
	}
	name := "linux"
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			name = strings.Trim(value, `"'`)
		}
	}
	return name + " (linux)"
}

// TextVariables are the variables of the environment that placeholders of instructions show, such as {{__shell__}}.
// They are read when the instructions are made.
var TextVariables = []string{"RADDLE_SHELL", "SHELL", "LC_ALL", "LC_MESSAGES", "LANG"}

func (f *placeholderFiller) shellName() string {
	shell := cmp.Or(f.env("RADDLE_SHELL"), f.env("SHELL"))
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(filepath.ToSlash(shell)), ".exe"))
	switch {
	case shell == "" && goruntime.GOOS == "windows":
		return "cmd"
	case shell == "":
		return "sh"
	case name == "nu":
		return "nushell"
	}
	return name
}

func (f *placeholderFiller) localeTag() string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		value, _, _ := strings.Cut(f.env(name), ".")
		if value != "" && value != "C" && value != "POSIX" {
			return strings.ReplaceAll(value, "_", "-")
		}
	}
	return "en-US"
}

// inputMark marks the position of the user's text in instructions.
const inputMark = "__INPUT__"

// openingMessages returns the beginning of a conversation: its instructions become a
// system prompt, examples, or text around the user's text.
func openingMessages(instructions, input string) (system string, messages []llm.Message) {
	if strings.Contains(instructions, inputMark) {
		return "", []llm.Message{llm.User(strings.ReplaceAll(instructions, inputMark, input))}
	}
	system, shots := fewShots(instructions)
	return system, append(shots, llm.User(input))
}

// fewShots separates the pairs of example input and output from instructions.
// If they are not pairs, they are plain text.
func fewShots(instructions string) (system string, shots []llm.Message) {
	marks := [2]string{"### INPUT:", "### OUTPUT:"}
	var pieces []string
	rest := instructions
	for i := 0; ; i++ {
		before, after, found := strings.Cut(rest, marks[i%2])
		if found || strings.TrimSpace(before) != "" || i == 0 {
			pieces = append(pieces, strings.TrimSpace(before))
		}
		if !found {
			break
		}
		rest = after
	}
	if len(pieces) == 1 || len(pieces)%2 == 0 {
		return instructions, nil
	}
	for i := 1; i < len(pieces); i += 2 {
		shots = append(shots, llm.User(pieces[i]),
			llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: pieces[i+1]}}})
	}
	return pieces[0], shots
}

// joinParagraphs joins texts that are not empty, with a blank line between them.
func joinParagraphs(texts ...string) string {
	var kept []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n\n")
}

// StarterError says that there is no conversation starter with a number.
type StarterError struct{ Number, Count int }

// Error names the number, and how many starters there are.
func (e *StarterError) Error() string {
	return fmt.Sprintf("Invalid starter value: %d is not among the %d conversation starters of the agent", e.Number, e.Count)
}
