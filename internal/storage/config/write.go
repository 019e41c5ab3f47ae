package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// SetValue sets a key with one value in config.yaml of a directory, and creates the file if there is none. Everything
// else in the file stays as it is, with comments, blank lines and the order of keys. A file with errors is not changed.
func SetValue(dir, key, value string, env environ.Environ) (path string, err error) {
	path = filepath.Join(dir, FileName)
	s, err := findSetting(key)
	if err != nil {
		return path, err
	}
	effective := value
	known := true
	if ref, ok := environ.ParseReference(value); ok {
		effective, known = env.Lookup(ref.Name)
	}
	if err := s.set(&Config{}, effective); known && err != nil {
		return path, failure.NewUsage("", "%s: %v", key, err)
	}
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return path, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	if err := checkText(path, text, env, true); err != nil {
		return path, err
	}
	changed, ok := replaceValue(path, text, key, value)
	if !ok || checkText(path, changed, env, true) != nil {
		return path, failure.NewInvalid("change it by hand: raddle config edit", "%s: the key %q is written in a way that raddle cannot change", FileName, key)
	}
	return path, WritePrivate(path, changed)
}

// findSetting returns a key whose value is one word or number.
func findSetting(key string) (setting, error) {
	if i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key }); i >= 0 {
		return settings[i], nil
	}
	root, _, _ := strings.Cut(key, ".")
	if slices.Contains(configKeys(), root) {
		return setting{}, failure.NewUsage("change it by hand: raddle config edit", "%q has more than one value", root)
	}
	next := wording.SuggestNearest(key, configKeys(), "")
	if next == "" {
		next = "raddle config explain lists the keys"
	}
	return setting{}, failure.NewUsage(next, "config.yaml has no key %q", key)
}

// CheckFile returns the errors of config.yaml in a directory as a [*FileError]. A missing file has none.
func CheckFile(dir string, env environ.Environ) error {
	path := filepath.Join(dir, FileName)
	text, err := plainfile.Read(path, 2*strictyaml.MaxFileSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return checkText(path, text, env, false)
}

// checkText returns the errors of a file. elsewhere says that variables which it names may be set in another
// environment.
func checkText(path string, text []byte, env environ.Environ, elsewhere bool) error {
	var c Config
	r := &configReader{Document: strictyaml.Read(path, text), env: env, elsewhere: elsewhere}
	if r.readConfig(&c); len(r.List) > 0 {
		strictyaml.SortFindings(r.List)
		return &FileError{Findings: r.List}
	}
	return nil
}

// replaceValue returns a text with another value of a key at its top. It reports whether the result has that value and
// no other change.
func replaceValue(path string, text []byte, key, value string) (changed []byte, ok bool) {
	quoted := quoteScalar(key, value)
	before := strictyaml.Read(path, text).Root
	_, old := findKey(before, key)
	switch {
	case old == nil:
		changed = bytes.Clone(text)
		if len(changed) > 0 && changed[len(changed)-1] != '\n' {
			changed = append(changed, '\n')
		}
		changed = append(changed, key+": "+quoted+"\n"...)
	default:
		start, end, found := findScalar(text, old)
		if !found {
			return nil, false
		}
		changed = slices.Concat(text[:start], []byte(quoted), text[end:])
	}
	after := strictyaml.Read(path, changed).Root
	_, written := findKey(after, key)
	return changed, written != nil && written.Kind == yaml.ScalarNode && written.Value == value && slices.Equal(otherValues(before, key), otherValues(after, key))
}

// otherValues returns the values of a file with their paths, without those of a key.
func otherValues(root *yaml.Node, key string) (values []string) {
	l := settingLister{}
	for i := 0; root != nil && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != key {
			l.addNode(root.Content[i].Value, root.Content[i+1])
		}
	}
	for _, s := range l.list {
		values = append(values, s.Key+"="+s.Value)
	}
	return values
}

// findKey returns the key and the value of a member of a mapping, nil if there is none.
func findKey(n *yaml.Node, key string) (name, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// findScalar returns where a scalar begins and ends in a text. It finds only scalars on one line, without tag and
// anchor.
func findScalar(text []byte, n *yaml.Node) (start, end int, ok bool) {
	if n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return 0, 0, false
	}
	for range n.Line - 1 {
		i := bytes.IndexByte(text[start:], '\n')
		if i < 0 {
			return 0, 0, false
		}
		start += i + 1
	}
	line, _, _ := bytes.Cut(text[start:], []byte{'\n'})
	skipped := 0
	for i := range string(line) { // columns count characters
		if skipped == n.Column-1 {
			rest := string(line[i:])
			length := scalarLength(rest, n.Value)
			return start + i, start + i + length, length > 0
		}
		skipped++
	}
	return 0, 0, false
}

// scalarLength returns the length of the scalar at the beginning of a text, 0 if it does not end there.
func scalarLength(text, value string) int {
	switch {
	case text == "":
		return 0
	case text[0] == '\'':
		for i := 1; i < len(text); i++ {
			if text[i] != '\'' {
				continue
			}
			if i+1 < len(text) && text[i+1] == '\'' {
				i++ // a quoted quote
				continue
			}
			return i + 1
		}
	case text[0] == '"':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
	case strings.HasPrefix(text, value):
		return len(value)
	}
	return 0
}

// quoteScalar returns a value as YAML, in quotes only if it needs them.
func quoteScalar(key, value string) string {
	double, _ := json.Marshal(value) // every text of JSON is one of YAML
	for _, form := range []string{value, "'" + strings.ReplaceAll(value, "'", "''") + "'"} {
		_, n := findKey(strictyaml.Read(FileName, []byte(key+": "+form+"\n")).Root, key)
		if n != nil && n.Kind == yaml.ScalarNode && n.Value == value && !strictyaml.IsEmpty(n) && !strings.ContainsAny(value, "\r\n") {
			return form
		}
	}
	return string(double)
}

// WritePrivate replaces a file at once, so that a reader sees the old or the new text and never a part. A new file and
// its new directories are for the user only; an existing file keeps its permissions. A link stays, and the file it
// points to is replaced.
func WritePrivate(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() { // a rename would replace a device or a pipe
			return fmt.Errorf("write %s: it is not a regular file", path)
		}
		mode = info.Mode().Perm()
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
