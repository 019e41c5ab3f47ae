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

// ReadKey returns the value of a key in config.yaml of a directory as it is written, "" for one that is no single
// value. there is false if the file does not have the key, or cannot be read.
func ReadKey(dir, key string) (value string, there bool) {
	text, err := plainfile.Read(filepath.Join(dir, FileName), 2*strictyaml.MaxFileSize)
	if err != nil {
		return "", false
	}
	_, n := findKey(strictyaml.Read(FileName, text).Root, key)
	if n == nil || strictyaml.IsEmpty(strictyaml.ResolveAlias(n)) {
		return "", false
	}
	return strictyaml.ResolveAlias(n).Value, true
}

// HasClient reports whether config.yaml of a directory has a client with a name.
func HasClient(dir, name string) bool {
	text, err := plainfile.Read(filepath.Join(dir, FileName), 2*strictyaml.MaxFileSize)
	if err != nil {
		return false
	}
	var c Config
	r := &configReader{Document: strictyaml.Read(FileName, text), elsewhere: true}
	r.readConfig(&c)
	return slices.ContainsFunc(c.Clients, func(o Client) bool { return o.Name == name })
}

// AddKey adds a key to config.yaml of a directory, which must not have it, with a value as YAML writes it. Everything
// else in the file stays as it is. A file with errors is not changed.
func AddKey(dir, key string, value any, env environ.Environ) error {
	return changeText(dir, key, env, func(path string, text []byte) ([]byte, bool) {
		lines, err := formatEntry(map[string]any{key: value})
		if _, old := findKey(strictyaml.Read(path, text).Root, key); old != nil || err != nil {
			return nil, false
		}
		return appendLines(text, lines), true
	})
}

// AddClientEntry adds a client with its fields to config.yaml of a directory, which must have none of its name. fields
// are a mapping as YAML writes it, with the name. Everything else in the file stays as it is. A file with errors is not
// changed.
func AddClientEntry(dir, name string, fields any, env environ.Environ) error {
	return changeText(dir, "client "+name, env, func(path string, text []byte) ([]byte, bool) {
		root := strictyaml.Read(path, text).Root
		key, list := findKey(root, "clients")
		lines, err := formatEntry([]any{fields})
		switch {
		case err != nil:
			return nil, false
		case key == nil:
			return appendLines(text, append([]string{"clients:"}, indentLines(lines, "  ")...)), true
		case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0:
			return nil, false
		}
		all := strings.SplitAfter(string(text), "\n")
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		at := endOfValue(root, key, all)
		before := appendLines([]byte(strings.Join(all[:at], "")), indentLines(lines, strings.Repeat(" ", list.Column-1)))
		return append(before, strings.Join(all[at:], "")...), true
	})
}

// changeText replaces config.yaml of a directory by what change makes of it, if the result has no errors and all values
// that the file had before.
func changeText(dir, what string, env environ.Environ, change func(path string, text []byte) ([]byte, bool)) error {
	path := filepath.Join(dir, FileName)
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the configuration cannot be read: %w", err)
	}
	if err := checkText(path, text, env, true); err != nil {
		return err
	}
	changed, ok := change(path, text)
	if ok {
		if err := checkText(path, changed, env, true); err != nil {
			return err
		}
		after := otherValues(strictyaml.Read(path, changed).Root, "")
		for _, value := range otherValues(strictyaml.Read(path, text).Root, "") {
			ok = ok && slices.Contains(after, value)
		}
	}
	if !ok {
		return failure.NewInvalid("add it by hand: raddle config edit", "%s is written in a way to which raddle cannot add the %s", FileName, what)
	}
	return WritePrivate(path, changed)
}

// formatEntry returns a value as lines of YAML.
func formatEntry(value any) ([]string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n"), e.Close()
}

func indentLines(lines []string, indent string) (indented []string) {
	for _, line := range lines {
		indented = append(indented, indent+line)
	}
	return indented
}

// appendLines returns a text with further lines.
func appendLines(text []byte, lines []string) []byte {
	text = bytes.Clone(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(text, strings.Join(lines, "\n")+"\n"...)
}

// ExplainForeign returns what replaces a key of config.yaml of Loki, Coyote or aichat, or "" if raddle knows nothing
// about it. A key that raddle has itself has no explanation.
func ExplainForeign(key string) string { return replacedKeys[key] }

// TakesSetting returns an error if a key of config.yaml does not take a value, and for a key that has more than one
// value or does not exist.
func TakesSetting(key, value string) error {
	s, err := findSetting(key)
	if err != nil {
		return err
	}
	if _, isReference := environ.ParseReference(value); isReference {
		return nil
	}
	return s.set(&Config{}, value)
}
