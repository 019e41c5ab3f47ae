// Package yamlformat lays out YAML files in one way: two spaces for each level, lists below their key indented, one
// space after a colon and a dash, no quotes around a word that needs none, no more than one empty line. Comments, the order of keys and
// all values stay as they are: a text whose values would differ is refused.
package yamlformat

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

// Format returns a text in the layout of the package, with the line ends that it has. A text that is not one YAML
// document, or that cannot be laid out without another meaning, is an error.
func Format(text []byte) ([]byte, error) {
	if d := strictyaml.Read("", text); d.Fatal {
		return nil, fmt.Errorf("it is no YAML that can be read: line %d: %s", d.List[0].Pos.Line, d.List[0].Message)
	}
	body, isMarked := bytes.CutPrefix(text, []byte("\ufeff"))
	old := strings.ReplaceAll(string(body), "\r\n", "\n")
	windows := len(old) < len(body)
	if strings.ContainsAny(old, "\r\u0085\u2028\u2029") {
		return nil, errors.New("it has characters that end lines in YAML and not in editors: write them as escapes in double quotes")
	}
	before, err := parseText(old)
	if err != nil || before == nil {
		return text, err
	}
	formatted := old
	if root, err := parseText(applyEdits(old, before)); err == nil {
		formatted = applyEdits(old, before)
		formatted = layOut(formatted, root)
	}
	after, err := parseText(formatted)
	if err != nil || !isSame(before, after) || withoutLayout(old) != withoutLayout(formatted) {
		return nil, errors.New("it cannot be laid out in another way without changing its values: it is left as it is")
	}
	if windows {
		formatted = strings.ReplaceAll(formatted, "\n", "\r\n")
	}
	if isMarked {
		formatted = "\ufeff" + formatted
	}
	return []byte(formatted), nil
}

// parseText returns the content of a document, or nil if it has none.
func parseText(text string) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("it is no YAML that can be read: %w", err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// isSame reports whether two trees have the same values, in the same order, with the same anchors and tags.
func isSame(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Tag == b.Tag && a.Value == b.Value && a.Anchor == b.Anchor && slices.EqualFunc(a.Content, b.Content, isSame)
}

// withoutLayout returns the characters of a text that its layout does not decide.
func withoutLayout(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '"' || r == '\'' {
			return -1
		}
		return r
	}, text)
}

// source is a text with the offsets of its lines.
type source struct {
	text  string
	lines []int
}

func newSource(text string) *source {
	s := &source{text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// offsetOf returns the index at which a node begins, and its line from 0.
func (s *source) offsetOf(n *yaml.Node) (offset, line int) {
	line = min(max(n.Line-1, 0), len(s.lines)-1)
	offset = s.lines[line]
	for range n.Column - 1 {
		rest := s.text[offset:]
		if rest == "" || rest[0] == '\n' {
			break
		}
		_, size := utf8.DecodeRuneInString(rest)
		offset += size
	}
	return offset, line
}

// lineOf returns the line of an index.
func (s *source) lineOf(offset int) int {
	n, found := slices.BinarySearch(s.lines, offset)
	if !found {
		n--
	}
	return n
}

// An edit replaces a part of a line.
type edit struct {
	from, to int
	with     string
}

// applyEdits returns a text without needless quotes, and with one space between keys and values on a line.
func applyEdits(text string, root *yaml.Node) string {
	s := newSource(text)
	var edits []edit
	s.collectEdits(root, &edits)
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		if e.from < at {
			continue
		}
		out.WriteString(text[at:e.from] + e.with)
		at = e.to
	}
	out.WriteString(text[at:])
	return out.String()
}

// plainText matches a word that needs no quotes anywhere, unless YAML reads it as something else. Texts of several
// words keep the quotes that their author gave them.
var plainText = pattern.CompileLater(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// otherWords are texts that readers of YAML 1.1 take for something else.
var otherWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

func (s *source) collectEdits(n *yaml.Node, edits *[]edit) {
	if n.Kind == yaml.ScalarNode {
		s.unquoteScalar(n, edits)
		return
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Style&yaml.FlowStyle == 0 {
			s.closeGap(n.Content[i-1], inner, edits)
		}
		s.collectEdits(inner, edits)
	}
}

// unquoteScalar removes the quotes of a scalar that needs none.
func (s *source) unquoteScalar(n *yaml.Node, edits *[]edit) {
	from, line := s.offsetOf(n)
	if from >= len(s.text) || s.text[from] != '"' && s.text[from] != '\'' || !plainText().MatchString(n.Value) {
		return
	}
	to, _ := strictyaml.FindEndOfQuotes(s.text, from)
	if s.lineOf(to-1) != line || s.text[from+1:max(to-1, from+1)] != n.Value || slices.Contains(otherWords, strings.ToLower(n.Value)) {
		return
	}
	if value, ok := strictyaml.DecodeScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: n.Value}); !ok || value != n.Value {
		return
	}
	if rest := s.text[to:]; rest == "" || strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, ":\n") || strings.ContainsAny(rest[:1], "\n,]}") || strings.HasPrefix(rest, " ") && !strings.HasPrefix(strings.TrimLeft(rest, " "), ":") {
		*edits = append(*edits, edit{from, to, n.Value})
	}
}

// closeGap makes one space of those between a key and its value on the same line.
func (s *source) closeGap(key, value *yaml.Node, edits *[]edit) {
	from, line := s.offsetOf(key)
	to, other := s.offsetOf(value)
	if value.Kind == yaml.ScalarNode && value.Value == "" && value.Style == 0 || line != other || from >= to || to == len(s.text) || strings.ContainsAny(s.text[to:to+1], "#\n") {
		return
	}
	end := from + len(key.Value)
	if c := s.text[from]; c == '"' || c == '\'' {
		end, _ = strictyaml.FindEndOfQuotes(s.text, from)
	}
	if end < to && strings.TrimSpace(s.text[end:to]) == ":" && s.text[end:to] != ": " {
		*edits = append(*edits, edit{end, to, ": "})
	}
}

// blockHead matches the head of a block scalar.
var blockHead = pattern.CompileLater(`^[|>]([+-]?)([1-9]?)([+-]?)`)
