package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/wording"
)

// ReportFault adds a problem at a node; nil: at the top of the file. The message must not contain
// values of files that hold secrets.
func (d *Document) ReportFault(n *yaml.Node, hint, format string, args ...any) {
	at := Pos{d.Path, 1, 1}
	if n != nil && n.Line > 0 {
		at.Line = n.Line
		at.Col = n.Column
	}
	d.Add(Finding{Code: "invalid-value", Message: fmt.Sprintf(format, args...), Hint: hint, Pos: at})
}

// ReadKeys calls each for every member of a mapping, in the order of the file. what is the mapping in
// messages. If known is not nil, any other key is a fault. A node that is empty has no members; any
// other one that is not a mapping is a fault.
func (d *Document) ReadKeys(n *yaml.Node, what string, known []string, each func(key string, value *yaml.Node)) {
	mapping := ResolveAlias(n)
	if IsBroken(mapping) || IsEmpty(mapping) {
		return
	}
	if mapping.Kind != yaml.MappingNode {
		d.ReportFault(n, "", "%s must be a mapping, not %s", what, NameKind(mapping))
		return
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		switch {
		case IsBroken(key):
		case known != nil && !slices.Contains(known, key.Value):
			d.ReportFault(key, cmp.Or(d.Replaced[key.Value], wording.SuggestNearest(key.Value, known, "")), "unknown key %q in %s", key.Value, what)
		default:
			each(key.Value, mapping.Content[i+1])
		}
	}
}

// ReadItems returns the items of a list that are not reported yet. what is the list in messages. A node
// that is empty has no items; any other one that is not a list is a fault.
func (d *Document) ReadItems(n *yaml.Node, what string) (items []*yaml.Node) {
	list := ResolveAlias(n)
	switch {
	case IsBroken(list) || IsEmpty(list):
		return nil
	case list.Kind != yaml.SequenceNode:
		d.ReportFault(n, "", "%s must be a list, not %s", what, NameKind(list))
		return nil
	}
	for _, item := range list.Content {
		if item = ResolveAlias(item); !IsBroken(item) {
			items = append(items, item)
		}
	}
	return items
}

// ReadText returns one value as text; "" for a node that is empty. what is the value in messages. A node that is no
// scalar is a fault.
func (d *Document) ReadText(n *yaml.Node, what string) string {
	n = ResolveAlias(n)
	switch {
	case IsBroken(n) || IsEmpty(n):
		return ""
	case n.Kind != yaml.ScalarNode:
		d.ReportFault(n, "", "%s must be a text, not %s", what, NameKind(n))
		return ""
	}
	return n.Value
}

// ReadName is ReadText for a text that must not be missing: a node that is empty is a fault.
func (d *Document) ReadName(n *yaml.Node, what string) string {
	if IsEmpty(ResolveAlias(n)) {
		d.ReportFault(n, "", "%s must be a text, not nothing", what)
	}
	return d.ReadText(n, what)
}

// ReadTexts returns a text, or the texts of a list, which must not be missing.
func (d *Document) ReadTexts(n *yaml.Node, what string) (texts []string) {
	if ResolveAlias(n).Kind != yaml.SequenceNode {
		return []string{d.ReadText(n, what)}
	}
	for i, item := range d.ReadItems(n, what) {
		texts = append(texts, d.ReadName(item, fmt.Sprintf("%s[%d]", what, i)))
	}
	return texts
}

// NameKind says in words what a node is, without its value.
func NameKind(n *yaml.Node) string {
	n = ResolveAlias(n)
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case IsEmpty(n):
		return "nothing"
	}
	return "a single value"
}

// FileError lists what is wrong with a file.
type FileError struct{ Findings []Finding }

// Error returns one line for each finding, with its position.
func (e *FileError) Error() string { return JoinFindings(e.Findings, "") }

// ListFindings returns the findings.
func (e *FileError) ListFindings() []Finding { return e.Findings }

// JoinFindings returns findings as lines, each with its position and its hint. Each line begins with
// indent.
func JoinFindings(list []Finding, indent string) string {
	lines := make([]string, len(list))
	for i, f := range list {
		lines[i] = indent + f.String()
	}
	return strings.Join(lines, "\n")
}
