package strictyaml

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/wording"
)

// maxExpanded limits the size of a file with its aliases expanded.
const maxExpanded = 4 * MaxFileSize

// inspector walks a YAML tree once and adds a finding for every node that
// cannot be used. Such nodes are marked as broken, so that later readers skip
// them without another message and can recurse safely.
type inspector struct {
	d        *Document
	path     []pathStep
	open     map[*yaml.Node]bool    // anchored nodes around the current one
	measured map[*yaml.Node]measure // anchored nodes that are finished
	expanded int                    // the size that aliases add to the file
	tooLarge bool                   // that size is above the limit
}

// pathStep is one step from the root to a node: a key, or an index after "".
type pathStep struct {
	key   string
	index int
}

// maxPathText is the length above which paths are cut in messages.
const maxPathText = 12

func pathText(path []pathStep) string {
	var b strings.Builder
	for i, s := range path {
		if i == maxPathText && len(path) > i+1 {
			b.WriteString("...")
			break
		}
		switch {
		case s.key == "":
			fmt.Fprintf(&b, "[%d]", s.index)
		case i == 0:
			b.WriteString(s.key)
		default:
			b.WriteString("." + s.key)
		}
	}
	return b.String()
}

// measure is the size of a node with its aliases expanded.
type measure struct {
	weight int // approximate size in bytes
	height int // levels below it
}

func inspectTree(d *Document) {
	in := &inspector{d: d, open: map[*yaml.Node]bool{}, measured: map[*yaml.Node]measure{}}
	in.inspectNode(d.Root, 0)
}

// markBroken marks a node that already has a finding.
func markBroken(n *yaml.Node) {
	*n = yaml.Node{Kind: yaml.ScalarNode, Tag: tagBroken, Style: yaml.TaggedStyle, Line: n.Line, Column: n.Column}
}

func IsBroken(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == tagBroken }

func (in *inspector) addFault(n *yaml.Node, f Finding) {
	if in.d.isFull() {
		markBroken(n)
		return
	}
	f.Pos = Pos{in.d.Path, n.Line, n.Column}
	f.Message = PrefixPath(pathText(in.path), f.Message)
	in.d.Add(f)
	markBroken(n)
}

// PrefixPath puts the path of a field before a message.
func PrefixPath(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

func (in *inspector) inspectNode(n *yaml.Node, depth int) measure {
	if depth > jsonvalue.MaxDepth {
		in.addFault(n, Finding{Code: "yaml-depth", Message: fmt.Sprintf("more than %d nested levels", jsonvalue.MaxDepth)})
		return measure{}
	}
	if n.Anchor != "" && n.Kind != yaml.AliasNode {
		in.open[n] = true
		defer delete(in.open, n)
	}
	m := measure{weight: 16 + len(n.Value)}
	switch n.Kind {
	case yaml.AliasNode:
		return in.inspectAlias(n, depth)
	case yaml.ScalarNode:
		in.inspectScalar(n)
	case yaml.SequenceNode:
		in.checkCollectionTag(n, "seq")
		for i, child := range n.Content {
			m.addChild(in.inspectChild(child, pathStep{index: i}, depth))
		}
	case yaml.MappingNode:
		in.checkCollectionTag(n, "map")
		in.inspectKeys(n)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m.addChild(in.inspectChild(n.Content[i+1], pathStep{key: n.Content[i].Value}, depth))
		}
	}
	if n.Anchor != "" {
		in.measured[n] = m
	}
	return m
}

func (m *measure) addChild(child measure) {
	m.weight = min(m.weight+child.weight, 2*maxExpanded)
	m.height = max(m.height, child.height+1)
}

func (in *inspector) inspectChild(n *yaml.Node, s pathStep, depth int) measure {
	in.path = append(in.path, s)
	m := in.inspectNode(n, depth+1)
	in.path = in.path[:len(in.path)-1]
	return m
}

func (in *inspector) inspectAlias(n *yaml.Node, depth int) measure {
	target := n.Alias
	m, known := in.measured[target]
	switch {
	case in.open[target]:
		in.addFault(n, Finding{Code: "yaml-alias-cycle", Message: fmt.Sprintf("alias *%s refers to a value that contains it", n.Value)})
	case !known: // the anchored node was broken
		markBroken(n)
	case depth+m.height > jsonvalue.MaxDepth:
		in.addFault(n, Finding{Code: "yaml-depth", Message: fmt.Sprintf("alias *%s makes more than %d nested levels", n.Value, jsonvalue.MaxDepth)})
	case in.tooLarge: // it has been reported
		markBroken(n)
	case in.expanded+m.weight > maxExpanded:
		in.tooLarge = true
		in.addFault(n, Finding{Code: "yaml-alias-size", Message: "repetition limit exceeded: the aliases of this file expand to too much text"})
	default:
		in.expanded += m.weight
		return m
	}
	return measure{}
}

func (in *inspector) inspectScalar(n *yaml.Node) {
	switch coreTag(n) {
	case "?", "map", "seq":
		in.addFault(n, Finding{Code: "yaml-tag", Message: fmt.Sprintf("unsupported tag `%s`", n.Tag)})
		return
	}
	if _, ok := DecodeScalar(n); !ok {
		in.addFault(n, Finding{Code: "yaml-tag", Message: fmt.Sprintf("invalid value: it does not fit the tag `%s`", n.Tag)})
	}
}

func (in *inspector) checkCollectionTag(n *yaml.Node, want string) {
	if tag := coreTag(n); tag != "" && tag != want {
		in.addFault(n, Finding{Code: "yaml-tag", Message: fmt.Sprintf("unsupported tag `%s`", n.Tag)})
	}
}

// inspectKeys checks the keys of a mapping: each must be a scalar and occur once.
// Invalid keys are marked as broken.
func (in *inspector) inspectKeys(n *yaml.Node) {
	if len(n.Content) == 2 && in.rejectUnquotedTemplate(n) {
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode && key.Alias != nil && key.Alias.Kind == yaml.ScalarNode {
			alias := *key
			*key = *key.Alias
			key.Line = alias.Line
			key.Column = alias.Column
			key.Anchor = ""
		}
		if key.Kind != yaml.ScalarNode {
			in.addFault(key, Finding{Code: "yaml-key", Message: fmt.Sprintf("invalid type: %s, expected a string key", describeNode(key))})
			continue
		}
		if key.Anchor != "" {
			in.measured[key] = measure{weight: 16 + len(key.Value)}
		}
		if first, twice := seen[key.Value]; twice {
			name := key.Value
			in.addFault(key, Finding{Code: "yaml-duplicate-key", Message: fmt.Sprintf("duplicate key `%s` (first on line %d)", name, first)})
			key.Value = name // its readers may need to know which key it was
			continue
		}
		seen[key.Value] = key.Line
	}
}

// rejectUnquotedTemplate recognizes {{path}} without quotes, which YAML reads as a map whose
// key is a map.
func (in *inspector) rejectUnquotedTemplate(n *yaml.Node) bool {
	inner := n.Content[0]
	if n.Style&yaml.FlowStyle == 0 || inner.Kind != yaml.MappingNode || inner.Style&yaml.FlowStyle == 0 ||
		len(inner.Content) != 2 || inner.Content[0].Kind != yaml.ScalarNode || !IsEmpty(n.Content[1]) {
		return false
	}
	in.addFault(n, Finding{
		Code: "unquoted-template", Message: "invalid type: map, expected a string",
		Hint: fmt.Sprintf("quote it: \"{{%s}}\"; YAML reads braces without quotes as a map", inner.Content[0].Value),
	})
	return true
}

// describeNode describes a node as type errors do.
func describeNode(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "sequence"
	case yaml.MappingNode:
		return "map"
	case yaml.AliasNode:
		return describeNode(n.Alias)
	}
	switch v, _ := DecodeScalar(n); x := v.(type) {
	case nil:
		return "unit value"
	case bool:
		return fmt.Sprintf("boolean `%t`", x)
	case string:
		return fmt.Sprintf("string %q", wording.CutText(x, 60, "..."))
	case float64:
		return fmt.Sprintf("floating point `%s`", jsonvalue.AppendFloat(nil, x))
	default:
		return fmt.Sprintf("integer `%v`", x)
	}
}
