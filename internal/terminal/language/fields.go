package language

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"raddle.dev/internal/base/schema"
)

// A form is a part of the JSON schema of a file format.
type form struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Type        any              `json:"type"`
	Enum        []any            `json:"enum"`
	Const       any              `json:"const"`
	Default     any              `json:"default"`
	Properties  map[string]*form `json:"properties"`
	Required    []string         `json:"required"`
	Items       *form            `json:"items"`
	Others      json.RawMessage  `json:"additionalProperties"`
	AllOf       []*form          `json:"allOf"`
	AnyOf       []*form          `json:"anyOf"`
	OneOf       []*form          `json:"oneOf"`
	Definitions map[string]*form `json:"definitions"`
	If          json.RawMessage  `json:"if"`
	Then        *form            `json:"then"`
}

// forms are the schemas of the formats by name, read when they are first needed.
var forms = sync.OnceValue(func() map[string]*form {
	all := map[string]*form{}
	for _, name := range schema.Names {
		f := &form{}
		if err := json.Unmarshal([]byte(schema.Text(name)), f); err != nil {
			panic(err) // the schemas are part of the program
		}
		all[name] = f
	}
	return all
})

// formOf returns the schema of a file by its name, or nil.
func (w *Workspace) formOf(path string) *form {
	name := map[string]string{
		graphFile: "graph", configFile: "agent", "permissions.yaml": "permissions", "hooks.yaml": "hooks", "transcript.yaml": "transcript",
	}[filepath.Base(path)]
	switch {
	case strings.HasSuffix(path, testSuffix):
		name = "test"
	case name == "agent" && filepath.Dir(path) == w.p.Dirs.Config:
		name = "config"
	}
	return forms()[name]
}

// resolveForms returns a form with all that it refers to, flat: itself, and its alternatives.
func (f *form) resolveForms(root *form) (all []*form) {
	if f == nil {
		return nil
	}
	all = append(all, f)
	if name, ok := strings.CutPrefix(f.Ref, "#/definitions/"); ok {
		all = append(all, root.Definitions[name].resolveForms(root)...)
	}
	for _, list := range [][]*form{f.AllOf, f.AnyOf, f.OneOf} {
		for _, one := range list {
			if len(one.If) == 0 {
				all = append(all, one.resolveForms(root)...)
			}
		}
	}
	return all
}

// descendKeys returns the forms below the keys of a file. kind returns the type of a node by its id.
func descendKeys(root *form, keys []string, kind func(id string) string) []*form {
	now := root.resolveForms(root)
	for i, key := range keys {
		now = itemsOf(root, now)
		var next []*form
		if i == 1 && keys[0] == "nodes" && root == forms()["graph"] {
			next = root.Definitions[kind(key)].resolveForms(root)
			if next == nil {
				next = root.Definitions["node"].resolveForms(root)
			}
			now = next
			continue
		}
		for _, f := range now {
			if member := f.Properties[key]; member != nil {
				next = append(next, member.resolveForms(root)...)
				continue
			}
			var other form
			if len(f.Others) > 0 && f.Others[0] == '{' && json.Unmarshal(f.Others, &other) == nil {
				next = append(next, other.resolveForms(root)...)
			}
		}
		now = next
	}
	return now
}

// itemsOf returns forms and those of their items.
func itemsOf(root *form, list []*form) []*form {
	all := slices.Clone(list)
	for _, f := range list {
		all = append(all, f.Items.resolveForms(root)...)
	}
	return all
}

// describeField returns the documentation of the field that forms describe, as Markdown.
func describeField(key string, list []*form) string {
	if len(list) == 0 {
		return ""
	}
	lines := []string{"**" + key + "**"}
	var words []string
	for _, f := range list {
		if f.Description != "" && !slices.Contains(lines, f.Description) {
			lines = append(lines, f.Description)
		}
		for _, v := range f.Enum {
			if v != nil {
				words = append(words, fmt.Sprintf("`%v`", v))
			}
		}
		if f.Default != nil {
			lines = append(lines, fmt.Sprintf("Default: `%v`", f.Default))
		}
	}
	if len(words) > 0 {
		lines = append(lines, "One of "+strings.Join(words, ", ")+".")
	}
	if len(lines) == 1 {
		return ""
	}
	return strings.Join(lines, "\n\n")
}

// fieldsOf returns the names and forms of the members that a mapping may have, sorted, and which of them it must have.
func fieldsOf(list []*form) (names []string, members map[string]*form, required map[string]bool) {
	members, required = map[string]*form{}, map[string]bool{}
	for _, f := range list {
		for name, member := range f.Properties {
			if members[name] == nil || members[name].Description == "" {
				members[name] = member
			}
		}
		for _, name := range f.Required {
			required[name] = true
		}
	}
	return slices.Sorted(maps.Keys(members)), members, required
}

// kindOf returns the type that the lines of a node of a graph.yaml say.
func kindOf(text *Text, id string) string {
	least := -1
	for n := range text.lines {
		line, _ := text.lineAt(n)
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#':
			continue
		case least < 0:
			if indentOf(line) > 0 && (strings.HasPrefix(trimmed, id+":") || strings.HasPrefix(trimmed, `"`+id+`":`)) {
				least = indentOf(line)
				if kind := kindIn(trimmed[len(id):]); kind != "" {
					return kind
				}
			}
			continue
		case indentOf(line) <= least:
			least = -1
			continue
		}
		if kind := kindIn(trimmed); kind != "" {
			return kind
		}
	}
	return ""
}

// kindIn returns the value of type in a line, or "".
func kindIn(line string) string {
	i := strings.Index(line, "type:")
	if i < 0 || i > 0 && !strings.ContainsAny(line[i-1:i], "{ ,") {
		return ""
	}
	word := strings.TrimLeft(line[i+len("type:"):], " ")
	if end := strings.IndexAny(word, ",} "); end >= 0 {
		word = word[:end]
	}
	if forms()["graph"].Definitions[word] == nil {
		return ""
	}
	return word
}
