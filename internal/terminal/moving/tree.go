package moving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v4"
)

// A tree is a table of a file, in whichever language that is written. A value of another type than a caller expects is
// in the list of things, and counts as not there.
type tree struct {
	source *source
	path   string // of the file
	prefix string // of keys in messages
	values map[string]any
}

// readYAML reads a file of YAML.
func (s *source) readYAML(path string) (tree, bool) {
	return s.parseFile(path, largestText, func(text []byte) (any, error) {
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil || v != nil {
			return v, err
		}
		return map[string]any{}, nil
	})
}

// readJSON reads a file of JSON, also with comments and trailing commas.
func (s *source) readJSON(path string, most int64) (tree, bool) {
	return s.parseFile(path, most, func(text []byte) (any, error) {
		var v any
		if len(bytes.TrimSpace(text)) == 0 {
			return map[string]any{}, nil
		}
		err := json.Unmarshal(plainJSON(text), &v)
		return v, err
	})
}

// readTOML reads a file of TOML.
func (s *source) readTOML(path string) (tree, bool) {
	return s.parseFile(path, largestText, func(text []byte) (any, error) {
		var v map[string]any
		err := toml.Unmarshal(text, &v)
		return v, err
	})
}

func (s *source) parseFile(path string, most int64, decode func([]byte) (any, error)) (tree, bool) {
	text, ok := s.readText(path, most)
	if !ok {
		return tree{}, false
	}
	v, err := decode(text)
	if err != nil {
		s.leaveThing(kindOther, path, path, "it cannot be understood: "+err.Error())
		return tree{}, false
	}
	values, ok := v.(map[string]any)
	if !ok {
		s.leaveThing(kindOther, path, path, "it is not a table of settings")
		return tree{}, false
	}
	return tree{source: s, path: path, values: values}, true
}

// plainJSON returns a text without comments and trailing commas.
func plainJSON(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text)-1)
			out = append(out, text[i:end+1]...)
			i = end
		case bytes.HasPrefix(text[i:], []byte("//")):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			out = append(out, '\n')
		case bytes.HasPrefix(text[i:], []byte("/*")):
			end := bytes.Index(text[i+2:], []byte("*/"))
			if end < 0 {
				return out
			}
			i += end + len("/*/")
		case text[i] == ']' || text[i] == '}':
			out = append(bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(",")), text[i])
		default:
			out = append(out, text[i])
		}
	}
	return out
}

// listKeys returns the names of the values that are not null, sorted.
func (t tree) listKeys() (names []string) {
	for _, key := range slices.Sorted(maps.Keys(t.values)) {
		if t.values[key] != nil {
			names = append(names, key)
		}
	}
	return names
}

func (t tree) hasKey(key string) bool { return t.values[key] != nil }

// reportType reports a value of an unexpected type.
func (t tree) reportType(key, want string) {
	t.source.leaveThing(kindSetting, t.prefix+key, t.path, "its value is not "+want)
}

// getText returns a text. Numbers and truth values count as texts.
func (t tree) getText(key string) string {
	switch v := t.values[key].(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int, int64, uint64:
		return fmt.Sprint(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	t.reportType(key, "a single text")
	return ""
}

// getFlag returns whether a value is true.
func (t tree) getFlag(key string) bool {
	on, ok := t.values[key].(bool)
	if !ok && t.hasKey(key) {
		t.reportType(key, "true or false")
	}
	return on
}

// getList returns a list of texts.
func (t tree) getList(key string) (texts []string) {
	if !t.hasKey(key) {
		return nil
	}
	items, ok := t.values[key].([]any)
	if !ok {
		t.reportType(key, "a list")
		return nil
	}
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			t.reportType(key, "a list of texts")
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// getTable returns a table; an empty one if there is none.
func (t tree) getTable(key string) tree {
	sub := tree{source: t.source, path: t.path, prefix: t.prefix + key + ".", values: map[string]any{}}
	if !t.hasKey(key) {
		return sub
	}
	values, ok := t.values[key].(map[string]any)
	if !ok {
		t.reportType(key, "a table")
		return sub
	}
	sub.values = values
	return sub
}

// getTables returns the tables of a list of them.
func (t tree) getTables(key string) (list []tree) {
	items, ok := t.values[key].([]any)
	if typed, isTyped := t.values[key].([]map[string]any); isTyped {
		ok = true
		for _, each := range typed {
			items = append(items, each)
		}
	}
	if !ok {
		if t.hasKey(key) {
			t.reportType(key, "a list")
		}
		return nil
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", key, i)
		values, ok := item.(map[string]any)
		if !ok {
			t.reportType(at, "a table")
			continue
		}
		list = append(list, tree{source: t.source, path: t.path, prefix: t.prefix + at + ".", values: values})
	}
	return list
}

// getTexts returns the texts of a table.
func (t tree) getTexts(key string) map[string]string {
	all := map[string]string{}
	sub := t.getTable(key)
	for _, name := range sub.listKeys() {
		all[name] = sub.getText(name)
	}
	return all
}
