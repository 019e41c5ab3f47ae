package permission

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/plainfile"
)

// fileHead begins a file of rules that did not exist.
const fileHead = `# Rules from answers of "always". Delete what is no longer wanted.
`

// RememberRules adds rules to the list allow of a file of rules, which need not exist. The file is
// replaced as a whole, so a crash leaves the old one or the new one. If two processes write rules
// at the same moment, the rules of one may be lost.
func RememberRules(path string, rules []string) error {
	if err := AddRules(path, ListAllow, rules); err != nil {
		return fmt.Errorf("remember permissions: %w", err)
	}
	return nil
}

// These are the names of the lists of a file of rules.
const (
	ListAllow = "allow"
	ListAsk   = "ask"
	ListDeny  = "deny"
)

// AddRules is [RememberRules] for one of the lists.
func AddRules(path, list string, rules []string) error {
	text, err := plainfile.Read(path, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if text, err = appendTo(path, text, list, rules); err != nil {
		return err
	}
	return replaceFile(path, text)
}

// List returns the rules of the list with a name, in the order of the file; nil for another name.
func (r Rules) List(name string) []Rule {
	return map[string][]Rule{ListAllow: r.Allow, ListAsk: r.Ask, ListDeny: r.Deny}[name]
}

// replaceFile writes a new file next to the old one and renames it to the old name.
// The new file is on the disk before it gets the name.
func replaceFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".permissions-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it no longer exists if the rename succeeded
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// AppendRules returns the text of a file of rules with further rules at the end of its
// list allow, and all else as it was, comments included. What the list has
// already is left out. The file's name is for messages.
// It reads the result again, and returns an error if that does not have exactly the old rules and
// the new ones: a file can be written in ways that the insertion does not expect.
func AppendRules(file string, text []byte, rules []string) ([]byte, error) {
	return appendTo(file, text, ListAllow, rules)
}

// appendTo is [AppendRules] for one of the lists.
func appendTo(file string, text []byte, list string, rules []string) ([]byte, error) {
	before, err := LoadRules(file, text)
	if err != nil {
		return nil, err
	}
	old := before.List(list)
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
		return slices.ContainsFunc(old, func(r Rule) bool { return r.Text == rule })
	})
	if len(rules) == 0 {
		return text, nil
	}
	out := insertRules(text, list, rules)
	after, err := LoadRules(file, out)
	grown := after.List(list)
	if err != nil || len(grown) != len(old)+len(rules) || countRules(after) != countRules(before)+len(rules) {
		return nil, fmt.Errorf("%s: the list %s is written in a form that cannot be added to: put each rule on a line of its own", file, list)
	}
	for i, rule := range rules {
		if got := grown[len(old)+i].Text; got != rule {
			return nil, fmt.Errorf("%s: the rule %q would be read as %q", file, rule, got)
		}
	}
	return out, nil
}

func countRules(r Rules) int { return len(r.Allow) + len(r.Ask) + len(r.Deny) }

// insertRules puts rules where a list ends, as far as that can be seen.
// The rules get the indentation of the list. A file without the list gets one at its end.
func insertRules(text []byte, list string, rules []string) []byte {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(fileHead)
	}
	at := len(text)
	head := list + ":\n"
	indent := "  "
	if line, column, found := listEnd(text, list); found {
		at = lineEnd(text, line)
		head = ""
		indent = strings.Repeat(" ", max(column, 0))
	}
	var b strings.Builder
	if at > 0 && text[at-1] != '\n' {
		b.WriteByte('\n')
	}
	b.WriteString(head)
	for _, rule := range rules {
		b.WriteString(indent + "- " + strconv.Quote(rule) + "\n")
	}
	return slices.Concat(text[:at], []byte(b.String()), text[at:])
}

// listEnd finds the last line of a list, and the column of its dashes.
func listEnd(text []byte, name string) (line, column int, found bool) {
	var doc yaml.Node
	if loader, err := yaml.NewLoader(bytes.NewReader(text)); err != nil || loader.Load(&doc) != nil || len(doc.Content) != 1 {
		return 0, 0, false
	}
	top := doc.Content[0]
	for i := 0; i+1 < len(top.Content); i += 2 {
		key := top.Content[i]
		list := top.Content[i+1]
		switch {
		case key.Value != name:
		case len(list.Content) == 0:
			return key.Line, 2, true
		default:
			last := list.Content[len(list.Content)-1]
			return last.Line, list.Column - 1, true
		}
	}
	return 0, 0, false
}

// lineEnd returns the offset behind the newline of a line, counted from one.
func lineEnd(text []byte, line int) int {
	at := 0
	for range line {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}
