package testcase

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// ErrNotReplaced says that a value is written in a way that Replace cannot change.
var ErrNotReplaced = errors.New("the value is written in a way that raddle cannot change: change it by hand")

// Replace writes the values that failures have as expected values into the text of a file, and returns the text and how
// many it has written. Everything else stays as it is, with comments, blank lines and the order of keys. The error is
// [ErrNotReplaced] if a value is left.
func Replace(text []byte, failed []Failure) (changed []byte, written int, err error) {
	failed = slices.DeleteFunc(slices.Clone(failed), func(f Failure) bool { return f.Actual == nil })
	slices.SortFunc(failed, func(a, b Failure) int { // from the end, so that positions stay true
		return -comparePositions(a.At, b.At)
	})
	failed = slices.CompactFunc(failed, func(a, b Failure) bool { return a.At == b.At })
	for _, f := range failed {
		next, ok := replaceAt(text, f.At, f.Actual)
		if !ok {
			err = fmt.Errorf("%s: %w", f.At, ErrNotReplaced)
			continue
		}
		text = next
		written++
	}
	return text, written, err
}

func comparePositions(a, b strictyaml.Pos) int {
	if a.Line != b.Line {
		return a.Line - b.Line
	}
	return a.Col - b.Col
}

// replaceAt replaces the value at a position. It reports whether the result has the value there and no other change.
func replaceAt(text []byte, at strictyaml.Pos, value any) (changed []byte, ok bool) {
	d := strictyaml.Read("", text)
	w := findValue(d.Root, nil, at, false)
	if len(d.List) > 0 || w == nil || w.node.Anchor != "" || w.node.Kind == yaml.AliasNode {
		return nil, false
	}
	before := strictyaml.DecodeValue(d.Root)
	start, end, ok := w.findSpan(text)
	if !ok {
		return nil, false
	}
	changed = slices.Concat(text[:start], w.render(value), text[end:])
	after := strictyaml.Read("", changed)
	if len(after.List) > 0 || after.Root == nil {
		return nil, false
	}
	want := putAt(before, w.path, value)
	return changed, jsonvalue.Equal(want, strictyaml.DecodeValue(after.Root))
}

// writtenValue is a value of a file and where it is written.
type writtenValue struct {
	node *yaml.Node
	key  *yaml.Node // its key; nil: it is an item of a list
	flow bool       // it is inside of brackets or braces
	path []any      // keys and indexes from the root
}

// findValue finds the value at a position.
func findValue(n *yaml.Node, path []any, at strictyaml.Pos, flow bool) *writtenValue {
	if n == nil {
		return nil
	}
	flow = flow || n.Style&yaml.FlowStyle != 0
	for i, child := range n.Content {
		step := any(i)
		key := (*yaml.Node)(nil)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = n.Content[i-1]
			step = key.Value
		}
		below := append(slices.Clone(path), step)
		if child.Line == at.Line && child.Column == at.Col {
			return &writtenValue{child, key, flow, below}
		}
		if child.Kind != yaml.AliasNode {
			if found := findValue(child, below, at, flow); found != nil {
				return found
			}
		}
	}
	return nil
}

// putAt returns a value with another value at a path in it.
func putAt(v any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch step := path[0].(type) {
	case string:
		o := v.(*jsonvalue.Object).Clone()
		member, _ := o.Get(step)
		o.Set(step, putAt(member, path[1:], value))
		return o
	case int:
		list := slices.Clone(v.([]any))
		list[step] = putAt(list[step], path[1:], value)
		return list
	}
	return v
}

// indent returns the number of spaces before the key of a value, or before the dash of an item.
func (w *writtenValue) indent(text []byte) int {
	if w.key != nil {
		return w.key.Column - 1
	}
	line := lineAt(text, offsetOf(text, w.node.Line, 1))
	return len(line) - len(bytes.TrimLeft(line, " "))
}

// findSpan returns where a value begins and ends in a text. A value with a key begins behind the colon.
func (w *writtenValue) findSpan(text []byte) (start, end int, ok bool) {
	n := w.node
	at := offsetOf(text, n.Line, n.Column)
	switch {
	case w.flow || n.Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle != 0:
		end, ok = endOfFlow(text, at, w.flow)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		end, ok = endOfFlow(text, at, false)
	default:
		end = w.endOfBlock(text, at)
		ok = true
	}
	if w.key == nil {
		return at, end, ok && (w.flow || n.Kind == yaml.ScalarNode)
	}
	keyAt := offsetOf(text, w.key.Line, w.key.Column)
	colon := bytes.LastIndexByte(text[keyAt:at], ':')
	return keyAt + colon + 1, end, ok && colon >= 0
}

// endOfFlow returns the end of a scalar on one line, of a quoted text or of what is in brackets, that begins at a
// place.
func endOfFlow(text []byte, at int, inside bool) (end int, ok bool) {
	depth := 0
	for i := at; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '"' || c == '\'') && (i == at || depth > 0):
			end, closed := strictyaml.FindEndOfQuotes(text, i)
			if !closed {
				return 0, false
			}
			if depth == 0 {
				return end, true
			}
			i = end - 1
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth == 0 {
				return trimEnd(text, at, i), inside
			}
			if depth--; depth == 0 {
				return i + 1, true
			}
		case depth == 0 && inside && c == ',', depth == 0 && c == '\n', depth == 0 && c == '#' && i > at && text[i-1] == ' ':
			return trimEnd(text, at, i), true
		}
	}
	return trimEnd(text, at, len(text)), depth == 0
}

func trimEnd(text []byte, from, to int) int {
	return from + len(bytes.TrimRight(text[from:to], " \t\r\n"))
}

// endOfBlock returns the end of a block or of a plain scalar: before the first line that is not further in than its
// key, and before comments and blank lines in front of that.
func (w *writtenValue) endOfBlock(text []byte, at int) int {
	indent := w.indent(text)
	lineEnd := func(i int) int {
		if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(text)
	}
	end := lineEnd(at)
	literal := w.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if w.node.Kind == yaml.ScalarNode && !literal {
		if comment := bytes.Index(text[at:end], []byte(" #")); comment >= 0 {
			end = at + comment
		}
	}
	last := end
	for next := lineEnd(at) + 1; next < len(text); next = lineEnd(next) + 1 {
		line := lineAt(text, next)
		trimmed := bytes.TrimLeft(line, " ")
		in := len(line) - len(trimmed)
		isItem := w.node.Kind == yaml.SequenceNode && in == indent && bytes.HasPrefix(trimmed, []byte("-"))
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			continue
		case in <= indent && !isItem:
			return trimEnd(text, at, last)
		case !literal && trimmed[0] == '#':
			continue
		}
		last = lineEnd(next)
	}
	return trimEnd(text, at, last)
}

// render returns a value as it is written behind the colon of its key, or as an item.
func (w *writtenValue) render(value any) []byte {
	n := valueNode(value)
	if n.Kind != yaml.ScalarNode || w.flow {
		setFlow(n)
	}
	if n.Style == yaml.LiteralStyle && (w.flow || w.key == nil) {
		n.Style = yaml.DoubleQuotedStyle
	}
	text, err := dump(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{valueNode("k"), n}})
	if err != nil {
		return nil
	}
	written := strings.TrimRight(strings.TrimPrefix(string(text), "k:"), "\n")
	if w.key == nil {
		return []byte(strings.TrimPrefix(written, " "))
	}
	return []byte(strings.ReplaceAll(written, "\n", "\n"+strings.Repeat(" ", w.key.Column-1)))
}

// setFlow makes a value one line.
func setFlow(n *yaml.Node) {
	n.Style &^= yaml.LiteralStyle
	if n.Kind != yaml.ScalarNode {
		n.Style |= yaml.FlowStyle
	} else if strings.ContainsAny(n.Value, "\n,[]{}") {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, child := range n.Content {
		setFlow(child)
	}
}

// offsetOf returns the index of a position in a text. Columns count characters.
func offsetOf(text []byte, line, col int) int {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	for range col - 1 {
		if at < len(text) {
			_, size := utf8.DecodeRune(text[at:])
			at += size
		}
	}
	return at
}

// lineAt returns the rest of the line that a place is in.
func lineAt(text []byte, at int) []byte {
	line, _, _ := bytes.Cut(text[at:], []byte{'\n'})
	return line
}
