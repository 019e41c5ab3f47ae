package flow

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
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

// find returns the node of a field, or nil if the field is missing or invalid.
func (m *fields) find(name string) *yaml.Node {
	if !slices.Contains(m.known, name) {
		m.known = append(m.known, name)
	}
	n := m.src.value(name)
	if n == nil || isBroken(resolve(n)) {
		return nil
	}
	return n
}

// has reports whether a field is set and not null.
func (m *fields) has(name string) bool {
	n := m.find(name)
	return n != nil && !emptyScalar(resolve(n))
}

// get returns the node of a field to decode, or nil if there is nothing to
// decode.
func (m *fields) get(name string, p presence) *yaml.Node {
	n := m.find(name)
	switch {
	case n == nil:
		if p == required && m.src.value(name) == nil {
			m.missing(name)
		}
		return nil
	case (p == optional || p == defaulted && m.config) && emptyScalar(resolve(n)):
		return nil
	}
	return n
}

func (m *fields) missing(name string) {
	m.p.add(Finding{
		Code: "missing-field", Message: at(m.path, fmt.Sprintf("missing field `%s`", name)), Pos: m.src.pos,
	})
}

// field returns the path of a field of the mapping.
func (m *fields) field(name string) string {
	if m.path == "" {
		return name
	}
	return m.path + "." + name
}

// fail reports a problem with the field name at node n.
func (m *fields) fail(n *yaml.Node, name, code, message string) {
	m.p.add(Finding{Code: code, Message: at(m.field(name), message), Pos: m.src.place(n)})
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
	if m.p.full() {
		return
	}
	hint := ""
	if s := resolve(n); want == aString && s.Kind == yaml.ScalarNode && !emptyScalar(s) {
		hint = fmt.Sprintf("quote it: %q", wording.CutText(s.Value, 60, "..."))
	}
	m.p.add(Finding{
		Code: "invalid-type", Message: at(m.field(name), fmt.Sprintf("invalid type: %s, expected %s", unexpected(n), want)),
		Hint: hint, Pos: m.src.place(n),
	})
}

// scalarText converts a scalar to text: only strings, or every plain scalar if
// plain is true.
func scalarText(n *yaml.Node, plain bool) (string, bool) {
	s := resolve(n)
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

func (m *fields) text(n *yaml.Node, name string, plain bool) string {
	s, ok := scalarText(n, plain)
	if !ok {
		m.wrongType(n, name, aString)
	}
	return s
}

// texts reads the elements of a list.
func (m *fields) texts(items []*yaml.Node, name string, plain bool) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		s, ok := scalarText(item, plain)
		if !ok && !m.p.full() {
			m.wrongType(item, fmt.Sprintf("%s[%d]", name, i), aString)
		}
		texts[i] = s
	}
	return texts
}

// str reads a text.
func (m *fields) str(name string, p presence) string {
	if n := m.get(name, p); n != nil {
		return m.text(n, name, m.plain)
	}
	return ""
}

// plainStr reads a text that may be written as any plain scalar.
func (m *fields) plainStr(name string) string {
	if n := m.get(name, optional); n != nil {
		return m.text(n, name, true)
	}
	return ""
}

// strings reads a list of texts. The result is nil if the field is not set, and
// otherwise not nil.
func (m *fields) strings(name string, p presence) []string {
	n := m.get(name, p)
	if n == nil {
		return nil
	}
	list := resolve(n)
	if list.Kind != yaml.SequenceNode {
		m.wrongType(n, name, aList)
		return nil
	}
	return m.texts(list.Content, name, m.plain)
}

// pairs reads a map of texts in order. The result is nil if the field is not
// set, and otherwise not nil.
func (m *fields) pairs(name string, p presence) []pair {
	n := m.get(name, p)
	if n == nil {
		return nil
	}
	list := resolve(n)
	if list.Kind != yaml.MappingNode {
		m.wrongType(n, name, aMapping)
		return nil
	}
	pairs := make([]pair, 0, len(list.Content)/2)
	for i := 0; i+1 < len(list.Content); i += 2 {
		if key := list.Content[i]; !isBroken(key) {
			pairs = append(pairs, pair{key.Value, m.text(list.Content[i+1], name+"."+key.Value, m.plain)})
		}
	}
	return pairs
}

// next reads one target or a list of targets.
func (m *fields) next() []string {
	n := m.get("next", optional)
	if n == nil {
		return nil
	}
	switch target := resolve(n); target.Kind {
	case yaml.ScalarNode:
		return []string{m.text(n, "next", true)}
	case yaml.SequenceNode:
		return m.texts(target.Content, "next", true)
	}
	m.wrongType(n, "next", "a string or a list of strings")
	return nil
}

// mapping returns the node of a mapping, or nil if the field is not set or not
// a mapping.
func (m *fields) mapping(name string) *yaml.Node {
	n := m.get(name, optional)
	if n == nil {
		return nil
	}
	if resolve(n).Kind != yaml.MappingNode {
		m.wrongType(n, name, aMapping)
		return nil
	}
	return n
}

// any reads a value of any type, or nil if the field is not set.
func (m *fields) any(name string) any {
	if n := m.get(name, optional); n != nil {
		return yamlValue(n)
	}
	return nil
}

// unsigned reads a whole number that is not negative.
func (m *fields) unsigned(n *yaml.Node, name, want string) uint64 {
	s := resolve(n)
	if s.Kind == yaml.ScalarNode {
		switch v, _ := scalarValue(s); x := v.(type) {
		case int64:
			if x >= 0 {
				return uint64(x)
			}
			m.fail(n, name, "invalid-value", fmt.Sprintf("invalid value: integer `%d`, expected %s", x, want))
			return 0
		case uint64:
			return x
		}
	}
	m.wrongType(n, name, want)
	return 0
}

func (m *fields) seconds(name string, def Seconds) Seconds {
	if n := m.get(name, defaulted); n != nil {
		return Seconds(m.unsigned(n, name, aTime))
	}
	return def
}

func (m *fields) maybeSeconds(name string) *Seconds {
	if n := m.get(name, optional); n != nil {
		s := Seconds(m.unsigned(n, name, aTime))
		return &s
	}
	return nil
}

// count reads a number of things; a number that does not fit in an int becomes
// the largest int.
func (m *fields) count(name string, def int) int {
	if n := m.get(name, defaulted); n != nil {
		return clampInt(m.unsigned(n, name, aCount))
	}
	return def
}

func (m *fields) maybeCount(name string) *int {
	if n := m.get(name, optional); n != nil {
		c := clampInt(m.unsigned(n, name, aCount))
		return &c
	}
	return nil
}

func clampInt(u uint64) int { return int(min(u, math.MaxInt)) }

func (m *fields) float(name string) *float64 {
	n := m.get(name, optional)
	if n == nil {
		return nil
	}
	if s := resolve(n); s.Kind == yaml.ScalarNode {
		v, _ := scalarValue(s)
		if f, ok := asFloat(v); ok {
			return &f
		}
	}
	m.wrongType(n, name, aNumber)
	return nil
}

func (m *fields) flag(name string, def bool) bool {
	if n := m.get(name, defaulted); n != nil {
		return m.boolean(n, name)
	}
	return def
}

func (m *fields) maybeFlag(name string) *bool {
	if n := m.get(name, optional); n != nil {
		b := m.boolean(n, name)
		return &b
	}
	return nil
}

// switchWords are further words for true and false in a config.yaml: YAML 1.1 has them.
var switchWords = map[string]bool{"yes": true, "on": true, "no": false, "off": false}

// boolean reads true or false; in a config.yaml also yes, no, on and off.
func (m *fields) boolean(n *yaml.Node, name string) bool {
	if s := resolve(n); s.Kind == yaml.ScalarNode {
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
