package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
)

// AddClient adds a client to config.yaml of a directory, and creates the file if there is none. Everything else in the
// file stays as it is. A file with errors is not changed.
func AddClient(dir string, c Client, env environ.Environ) (path string, err error) {
	path = filepath.Join(dir, FileName)
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	if err := checkText(path, text, env, true); err != nil {
		return path, err
	}
	changed, ok := insertClient(path, text, c)
	if !ok || checkText(path, changed, env, true) != nil {
		return path, failure.NewInvalid("add it by hand: raddle config edit", "%s: the clients are written in a way that raddle cannot change; add this one:\n%s",
			FileName, strings.Join(clientLines(c, "  ", false), "\n"))
	}
	return path, WritePrivate(path, changed)
}

// clientLines returns a client as an item of a list, or as a member of a mapping.
func clientLines(c Client, indent string, member bool) []string {
	first := indent + "- name: " + quoteScalar("name", c.Name)
	deeper := indent + "  "
	if member {
		first = indent + quoteScalar("name", c.Name) + ":"
	}
	return []string{first, deeper + "type: " + quoteScalar("type", c.Type), deeper + "api_base: " + quoteScalar("api_base", c.Base)}
}

// insertClient returns a text with one more client. It reports whether the result has that client and no other change.
func insertClient(path string, text []byte, c Client) (changed []byte, ok bool) {
	before := strictyaml.Read(path, text).Root
	key, list := findKey(before, "clients")
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var added []string
	at := len(lines)
	switch {
	case key == nil:
		added = append([]string{"clients:"}, clientLines(c, "  ", false)...)
	case list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 || list.Line <= key.Line:
		return nil, false
	default:
		indent := strings.Repeat(" ", list.Column-1)
		added = clientLines(c, indent, list.Kind == yaml.MappingNode)
		at = endOfValue(before, key, lines)
	}
	var b bytes.Buffer
	for _, line := range lines[:at] {
		b.WriteString(line)
	}
	if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(strings.Join(added, "\n") + "\n")
	for _, line := range lines[at:] {
		b.WriteString(line)
	}
	after := strictyaml.Read(path, b.Bytes()).Root
	return b.Bytes(), hasOnlyAdded(before, after, c)
}

// endOfValue returns the number of the lines up to the end of the value of a key at the top, without blank lines and
// comments behind it.
func endOfValue(root, key *yaml.Node, lines []string) int {
	end := len(lines)
	for i := 0; i < len(root.Content); i += 2 {
		if line := root.Content[i].Line - 1; line > key.Line-1 {
			end = min(end, line)
		}
	}
	for end > key.Line {
		if line := strings.TrimSpace(lines[end-1]); line != "" && line[0] != '#' {
			break
		}
		end--
	}
	return end
}

// hasOnlyAdded reports whether two files differ in nothing but one more client.
func hasOnlyAdded(before, after *yaml.Node, c Client) bool {
	const key = "clients"
	if !slices.Equal(otherValues(before, key), otherValues(after, key)) {
		return false
	}
	values := func(root *yaml.Node) (values []string) {
		l := settingLister{}
		if _, list := findKey(root, key); list != nil {
			l.addNode(key, list)
		}
		for _, s := range l.list {
			values = append(values, s.Key+"="+s.Value)
		}
		return values
	}
	was := values(before)
	is := values(after)
	rest := slices.DeleteFunc(slices.Clone(is), func(v string) bool { return slices.Contains(was, v) })
	own := "clients." + c.Name + "."
	want := []string{own + "name=" + c.Name, own + "type=" + c.Type, own + "api_base=" + c.Base}
	missing := slices.ContainsFunc(was, func(v string) bool { return !slices.Contains(is, v) })
	slices.Sort(rest)
	return !missing && !slices.ContainsFunc(rest, func(v string) bool { return !slices.Contains(want, v) }) && len(rest) >= len(want)-1
}
