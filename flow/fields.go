package flow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/wording"
)

// presence says what a missing and a null field mean.
type presence int

const (
	required  presence = iota // missing: an error; null: the wrong type
	optional                  // missing or null: unset
	defaulted                 // missing: the default; null: the wrong type, or the default in a config.yaml
)

// fields reads the members of one mapping. Each method reads one field, reports
// what is wrong with it, and records that the key is known.
type fields struct {
	p      *problems
	src    source
	path   string // of the mapping, for messages
	plain  bool   // any scalar is accepted as text, as in top-level fields
	config bool   // of a config.yaml: yes, no, on and off are booleans, too, and null means the default
	known  []string
}

// newFields returns a reader of the members of src. path is the path of src in messages, "" for the whole file.
func newFields(p *problems, src source, path string) *fields {
	return &fields{p: p, src: src, path: path}
}

// pair is one entry of a map of texts.
type pair struct{ key, value string }

// findField returns the node of a field, or nil if the field is missing or invalid.
func (m *fields) findField(name string) *yaml.Node {
	if !slices.Contains(m.known, name) {
		m.known = append(m.known, name)
	}
	n := m.src.fieldNode(name)
	if n == nil || isBroken(resolveAlias(n)) {
		return nil
	}
	return n
}

// hasValue reports whether a field is set and not null.
func (m *fields) hasValue(name string) bool {
	n := m.findField(name)
	return n != nil && !emptyScalar(resolveAlias(n))
}

// getField returns the node of a field to decode, or nil if there is nothing to
// decode.
func (m *fields) getField(name string, p presence) *yaml.Node {
	n := m.findField(name)
	switch {
	case n == nil:
		if p == required && m.src.fieldNode(name) == nil {
			m.reportMissing(name)
		}
		return nil
	case (p == optional || p == defaulted && m.config) && emptyScalar(resolveAlias(n)):
		return nil
	}
	return n
}

func (m *fields) reportMissing(name string) {
	m.p.add(Finding{
		Code: "missing-field", Message: prefixPath(m.path, fmt.Sprintf("missing field `%s`", name)), Pos: m.src.pos,
	})
}

// fieldPath returns the path of a field of the mapping.
func (m *fields) fieldPath(name string) string {
	if m.path == "" {
		return name
	}
	return m.path + "." + name
}

// addFault reports a problem with the field name at node n.
func (m *fields) addFault(n *yaml.Node, name, code, message string) {
	m.p.add(Finding{Code: code, Message: prefixPath(m.fieldPath(name), message), Pos: m.src.positionOf(n)})
}

// These are the types that fields may have, as messages name them. The names of
// the number types are those of the file format's reference.
const (
	aString  = "a string"
	aTime    = "u64 (a whole number of seconds)"
	aCount   = "usize (a whole number)"
	aNumber  = "f64 (a number)"
	aList    = "a sequence"
	aMapping = "a map"
)

func (m *fields) wrongType(n *yaml.Node, name, want string) {
	if m.p.isFull() {
		return
	}
	hint := ""
	if s := resolveAlias(n); want == aString && s.Kind == yaml.ScalarNode && !emptyScalar(s) {
		hint = fmt.Sprintf("quote it: %q", wording.CutText(s.Value, 60, "..."))
	}
	m.p.add(Finding{
		Code: "invalid-type", Message: prefixPath(m.fieldPath(name), fmt.Sprintf("invalid type: %s, expected %s", describeNode(n), want)),
		Hint: hint, Pos: m.src.positionOf(n),
	})
}

// scalarText converts a scalar to text: only strings, or every plain scalar if
// plain is true.
func scalarText(n *yaml.Node, plain bool) (string, bool) {
	s := resolveAlias(n)
	if s.Kind != yaml.ScalarNode {
		return "", false
	}
	v, _ := scalarValue(s)
	str, ok := v.(string)
	switch {
	case ok:
		return str, true
	case isBroken(s) || plain && v == nil:
		return "", true
	case plain:
		return s.Value, true
	}
	return "", false
}

func (m *fields) decodeText(n *yaml.Node, name string, plain bool) string {
	s, ok := scalarText(n, plain)
	if !ok {
		m.wrongType(n, name, aString)
	}
	return s
}

// decodeTexts reads the elements of a list.
func (m *fields) decodeTexts(items []*yaml.Node, name string, plain bool) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		s, ok := scalarText(item, plain)
		if !ok && !m.p.isFull() {
			m.wrongType(item, fmt.Sprintf("%s[%d]", name, i), aString)
		}
		texts[i] = s
	}
	return texts
}

// readText reads a text.
func (m *fields) readText(name string, p presence) string {
	if n := m.getField(name, p); n != nil {
		return m.decodeText(n, name, m.plain)
	}
	return ""
}

// plainStr reads a text that may be written as any plain scalar.
func (m *fields) plainStr(name string) string {
	if n := m.getField(name, optional); n != nil {
		return m.decodeText(n, name, true)
	}
	return ""
}

// readTexts reads a list of texts. The result is nil if the field is not set, and
// otherwise not nil.
func (m *fields) readTexts(name string, p presence) []string {
	n := m.getField(name, p)
	if n == nil {
		return nil
	}
	list := resolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		m.wrongType(n, name, aList)
		return nil
	}
	return m.decodeTexts(list.Content, name, m.plain)
}

// readPairs reads a map of texts in order. The result is nil if the field is not
// set, and otherwise not nil.
func (m *fields) readPairs(name string, p presence) []pair {
	n := m.getField(name, p)
	if n == nil {
		return nil
	}
	list := resolveAlias(n)
	if list.Kind != yaml.MappingNode {
		m.wrongType(n, name, aMapping)
		return nil
	}
	pairs := make([]pair, 0, len(list.Content)/2)
	for i := 0; i+1 < len(list.Content); i += 2 {
		if key := list.Content[i]; !isBroken(key) {
			pairs = append(pairs, pair{key.Value, m.decodeText(list.Content[i+1], name+"."+key.Value, m.plain)})
		}
	}
	return pairs
}

// readNext reads one target or a list of targets.
func (m *fields) readNext() []string {
	n := m.getField("next", optional)
	if n == nil {
		return nil
	}
	switch target := resolveAlias(n); target.Kind {
	case yaml.ScalarNode:
		return []string{m.decodeText(n, "next", true)}
	case yaml.SequenceNode:
		return m.decodeTexts(target.Content, "next", true)
	}
	m.wrongType(n, "next", "a string or a list of strings")
	return nil
}

// mapping returns the node of a mapping, or nil if the field is not set or not
// a mapping.
func (m *fields) mapping(name string) *yaml.Node {
	n := m.getField(name, optional)
	if n == nil {
		return nil
	}
	if resolveAlias(n).Kind != yaml.MappingNode {
		m.wrongType(n, name, aMapping)
		return nil
	}
	return n
}

// readAny reads a value of any type, or nil if the field is not set.
func (m *fields) readAny(name string) any {
	if n := m.getField(name, optional); n != nil {
		return yamlValue(n)
	}
	return nil
}

// decodeUnsigned reads a whole number that is not negative.
func (m *fields) decodeUnsigned(n *yaml.Node, name, want string) uint64 {
	s := resolveAlias(n)
	if s.Kind == yaml.ScalarNode {
		switch v, _ := scalarValue(s); x := v.(type) {
		case int64:
			if x >= 0 {
				return uint64(x)
			}
			m.addFault(n, name, "invalid-value", fmt.Sprintf("invalid value: integer `%d`, expected %s", x, want))
			return 0
		case uint64:
			return x
		}
	}
	m.wrongType(n, name, want)
	return 0
}

func (m *fields) readSeconds(name string, def Seconds) Seconds {
	if n := m.getField(name, defaulted); n != nil {
		return Seconds(m.decodeUnsigned(n, name, aTime))
	}
	return def
}

func (m *fields) maybeSeconds(name string) *Seconds {
	if n := m.getField(name, optional); n != nil {
		s := Seconds(m.decodeUnsigned(n, name, aTime))
		return &s
	}
	return nil
}

// readCount reads a number of things; a number that does not fit in an int becomes
// the largest int.
func (m *fields) readCount(name string, def int) int {
	if n := m.getField(name, defaulted); n != nil {
		return clampInt(m.decodeUnsigned(n, name, aCount))
	}
	return def
}

func (m *fields) maybeCount(name string) *int {
	if n := m.getField(name, optional); n != nil {
		c := clampInt(m.decodeUnsigned(n, name, aCount))
		return &c
	}
	return nil
}

func clampInt(u uint64) int { return int(min(u, math.MaxInt)) }

func (m *fields) readFloat(name string) *float64 {
	n := m.getField(name, optional)
	if n == nil {
		return nil
	}
	if s := resolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := scalarValue(s)
		if f, ok := jsonvalue.AsFloat(v); ok {
			return &f
		}
	}
	m.wrongType(n, name, aNumber)
	return nil
}

func (m *fields) readFlag(name string, def bool) bool {
	if n := m.getField(name, defaulted); n != nil {
		return m.decodeBool(n, name)
	}
	return def
}

func (m *fields) maybeFlag(name string) *bool {
	if n := m.getField(name, optional); n != nil {
		b := m.decodeBool(n, name)
		return &b
	}
	return nil
}

// switchWords are further words for true and false in a config.yaml: YAML 1.1 has them.
var switchWords = map[string]bool{"yes": true, "on": true, "no": false, "off": false}

// decodeBool reads true or false; in a config.yaml also yes, no, on and off.
func (m *fields) decodeBool(n *yaml.Node, name string) bool {
	if s := resolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := scalarValue(s)
		if b, ok := v.(bool); ok {
			return b
		}
		if b, ok := switchWords[strings.ToLower(s.Value)]; ok && m.config && s.Style == 0 {
			return b
		}
	}
	m.wrongType(n, name, "a boolean")
	return false
}
