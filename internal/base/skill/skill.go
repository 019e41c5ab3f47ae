// Package skill reads skills in the open form of Agent Skills: folders with a file SKILL.md, whose head names and
// describes the skill and whose text is read only when the skill is needed.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/plainfile"
)

// A Skill is one folder.
type Skill struct {
	Name        string // of the folder
	Description string // one line
	Dir         string // absolute path of the folder
	Root        string // the directory that the folder may not be outside of, also behind links; empty: there is none

	Tools   []string // enabled_tools: what a model can call in addition while it uses the skill
	Servers []string // enabled_mcp_servers
}

// FileName is the file that makes a folder a skill.
const FileName = "SKILL.md"

// The limits of a skill.
const (
	longestDescription = 1024      // bytes
	largestFile        = 256 << 10 // bytes
	maxFiles           = 100       // in the list of a skill's files
)

// ReadSkills returns the skills of a directory, sorted by name, and what is wrong with others. A directory that does
// not exist has no skills. Skills that are behind links which lead out of the directory root are left out; an empty
// root allows all links.
func ReadSkills(root, dir string) (skills []Skill, problems []error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
		return nil, problems
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(filepath.Join(path, FileName)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		s, err := readSkill(root, path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", filepath.Join(path, FileName), err))
			continue
		}
		skills = append(skills, s)
	}
	return skills, problems
}

func readSkill(root, dir string) (Skill, error) {
	s := Skill{Name: filepath.Base(dir), Dir: dir, Root: root}
	text, err := s.ReadFile(FileName)
	if err != nil {
		return s, err
	}
	head, _ := SplitHead(text)
	if head == "" {
		return s, errors.New("the head is missing: begin the file with --- and lines for name and description, and end them with ---")
	}
	h, err := parseHead(head)
	if err != nil {
		return s, err
	}
	s.Tools = h.Tools
	s.Servers = h.Servers
	if s.Description = strings.Join(strings.Fields(h.Description), " "); s.Description == "" {
		return s, errors.New("the head has no description: without it a model cannot know when to use the skill")
	}
	if len(s.Description) > longestDescription {
		s.Description = strings.ToValidUTF8(s.Description[:longestDescription], "") + "…"
	}
	return s, nil
}

// SplitHead returns the lines between the first two lines "---" of a text that begins with one, and the text after
// them. The head is empty if there is none. Line ends are "\n" afterwards, and a byte order mark is removed.
func SplitHead(text string) (head, body string) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text
	}
	head, body, ok = strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		if head, ok = strings.CutSuffix("\n"+rest, "\n---"); !ok {
			return "", text
		}
	}
	return head, strings.TrimLeft(body, "\n")
}

// heading holds the fields of a head that raddle uses.
type heading struct {
	Description string    `yaml:"description"`
	Tools       nameField `yaml:"enabled_tools"`
	Servers     nameField `yaml:"enabled_mcp_servers"`
}

// A nameField is a list of names: a YAML list, or a text with commas.
type nameField []string

// UnmarshalYAML reads either form.
func (f *nameField) UnmarshalYAML(n *yaml.Node) error {
	var list []string
	var text string
	if err := n.Decode(&text); err == nil {
		list = strings.Split(text, ",")
	} else if err := n.Decode(&list); err != nil {
		return err
	}
	for _, name := range list {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(*f, name) {
			*f = append(*f, name)
		}
	}
	return nil
}

// parseHead reads a head. A description with a colon is often not YAML: then it is the rest of its line.
func parseHead(head string) (h heading, err error) {
	if yaml.Unmarshal([]byte(head), &h) == nil {
		return h, nil
	}
	h = heading{}
	var description string
	var rest []string
	for line := range strings.SplitSeq(head, "\n") {
		if text, ok := strings.CutPrefix(line, "description:"); ok && description == "" {
			description = strings.TrimSpace(text)
			continue
		}
		rest = append(rest, line)
	}
	text := strings.Join(rest, "\n")
	if err := yaml.Unmarshal([]byte(text), &h); err != nil && strings.Contains(text, "enabled_") {
		return h, fmt.Errorf("the head cannot be read, and it names tools or servers: %w", err)
	} else if err != nil {
		h = heading{}
	}
	h.Description = description
	return h, nil
}

// ReadBody returns the text of the skill without its head, and the paths of its other files, relative to the folder, as
// slashed paths.
func (s Skill) ReadBody() (body string, files []string, err error) {
	text, err := s.ReadFile(FileName)
	if err != nil {
		return "", nil, err
	}
	_, body = SplitHead(text)
	err = filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is not listed
		case d.IsDir() && path != s.Dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir():
			return nil
		case len(files) >= maxFiles:
			return fs.SkipAll
		}
		if rel, err := filepath.Rel(s.Dir, path); err == nil && rel != FileName {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	slices.Sort(files)
	return body, files, err
}

// ReadFile returns the text of a file of the skill. It refuses files outside of the folder, also behind links.
func (s Skill) ReadFile(path string) (string, error) {
	text, err := plainfile.ReadInside(cmp.Or(s.Root, s.Dir), s.Dir, filepath.FromSlash(path), largestFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the skill %s has no file %q", s.Name, path)
	case err != nil:
		return "", fmt.Errorf("the file %q cannot be read: %w", path, err)
	case !utf8.Valid(text):
		return "", fmt.Errorf("the file %q is not text", path)
	}
	return string(text), nil
}
