package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/wording"
)

// presence says what a missing and a null field mean.
type presence int

const (
	Required  presence = iota // missing: an error; null: the wrong type
	Optional                  // missing or null: unset
	Defaulted                 // missing: the default; null: the wrong type, or the default in a config.yaml
)

// Fields reads the members of one mapping. Each method reads one field, reports
// what is wrong with it, and records that the key is known.
type Fields struct {
	Problems  *Problems
	Source    Mapping
	Path      string // of the mapping, for messages
	Plain     bool   // any scalar is accepted as text, as in top-level fields
	Forgiving bool   // of a config.yaml: yes, no, on and off are booleans, too, and null means the default
	Known     []string
}

// NewFields returns a reader of the members of src. path is the path of src in messages, "" for the whole file.
func NewFields(p *Problems, src Mapping, path string) *Fields {
	return &Fields{Problems: p, Source: src, Path: path}
}

// Pair is one entry of a map of texts.
type Pair struct{ Key, Value string }

// FindField returns the node of a field, or nil if the field is missing or invalid.
func (m *Fields) FindField(name string) *yaml.Node {
	if !slices.Contains(m.Known, name) {
		m.Known = append(m.Known, name)
	}
	n := m.Source.FieldNode(name)
	if n == nil || IsBroken(ResolveAlias(n)) {
		return nil
	}
	return n
}

// HasValue reports whether a field is set and not null.
func (m *Fields) HasValue(name string) bool {
	n := m.FindField(name)
	return n != nil && !IsEmpty(ResolveAlias(n))
}

// GetField returns the node of a field to decode, or nil if there is nothing to
// decode.
func (m *Fields) GetField(name string, p presence) *yaml.Node {
	n := m.FindField(name)
	switch {
	case n == nil:
		if p == Required && m.Source.FieldNode(name) == nil {
			m.ReportMissing(name)
		}
		return nil
	case (p == Optional || p == Defaulted && m.Forgiving) && IsEmpty(ResolveAlias(n)):
		return nil
	}
	return n
}

func (m *Fields) ReportMissing(name string) {
	m.Problems.Add(Finding{
		Code: "missing-field", Message: PrefixPath(m.Path, fmt.Sprintf("missing field `%s`", name)), Pos: m.Source.Pos, Fix: fmt.Sprintf("add `%s: ...`", name),
	})
}

// fieldPath returns the path of a field of the mapping.
func (m *Fields) fieldPath(name string) string {
	if m.Path == "" {
		return name
	}
	return m.Path + "." + name
}

// AddFault reports a problem with the field name at node n.
func (m *Fields) AddFault(n *yaml.Node, name, code, message string) {
	m.Problems.Add(Finding{Code: code, Message: PrefixPath(m.fieldPath(name), message), Pos: m.Source.PositionOf(n)})
}

// These are the types that fields may have, as messages name them. The names of
// the number types are those of the file format's reference.
const (
	wantText    = "a string"
	wantSeconds = "u64 (a whole number of seconds)"
	wantCount   = "usize (a whole number)"
	wantNumber  = "f64 (a number)"
	WantList    = "a sequence"
	WantMapping = "a map"
)

func (m *Fields) WrongType(n *yaml.Node, name, want string) {
	if m.Problems.isFull() {
		return
	}
	hint := ""
	if s := ResolveAlias(n); want == wantText && s.Kind == yaml.ScalarNode && !IsEmpty(s) {
		hint = fmt.Sprintf("quote it: %q", wording.CutText(s.Value, 60, "..."))
	}
	m.Problems.Add(Finding{
		Code: "invalid-type", Message: PrefixPath(m.fieldPath(name), fmt.Sprintf("invalid type: %s, expected %s", describeNode(n), want)),
		Hint: hint, Fix: fixType(name, ResolveAlias(n), want), Pos: m.Source.PositionOf(n),
	})
}

// fixType says how a field is written whose value has the wrong type.
func fixType(name string, n *yaml.Node, want string) string {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch want {
	case wantSeconds:
		if d, err := time.ParseDuration(n.Value); n.Kind == yaml.ScalarNode && err == nil && d >= time.Second {
			return fmt.Sprintf("write the seconds: `%s: %d`", last, int(d.Seconds()))
		}
		return fmt.Sprintf("write the seconds: `%s: 300`", last)
	case wantCount:
		return fmt.Sprintf("write a whole number: `%s: 3`", last)
	case wantNumber:
		return fmt.Sprintf("write a number: `%s: 0.7`", last)
	case WantList:
		return fmt.Sprintf("write a list: `%s: [a, b]`", last)
	case WantMapping:
		if last == "nodes" {
			return "write each node below its name: `answer: {type: llm, prompt: ...}`"
		}
		return fmt.Sprintf("write names with values: `%s: {name: value}`", last)
	}
	return ""
}

// ScalarText converts a scalar to text: only strings, or every plain scalar if
// plain is true.
func ScalarText(n *yaml.Node, plain bool) (string, bool) {
	s := ResolveAlias(n)
	if s.Kind != yaml.ScalarNode {
		return "", false
	}
	v, _ := DecodeScalar(s)
	str, ok := v.(string)
	switch {
	case ok:
		return str, true
	case IsBroken(s) || plain && v == nil:
		return "", true
	case plain:
		return s.Value, true
	}
	return "", false
}

func (m *Fields) DecodeText(n *yaml.Node, name string, plain bool) string {
	s, ok := ScalarText(n, plain)
	if !ok {
		m.WrongType(n, name, wantText)
	}
	return s
}

// decodeTexts reads the elements of a list.
func (m *Fields) decodeTexts(items []*yaml.Node, name string, plain bool) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		s, ok := ScalarText(item, plain)
		if !ok && !m.Problems.isFull() {
			m.WrongType(item, fmt.Sprintf("%s[%d]", name, i), wantText)
		}
		texts[i] = s
	}
	return texts
}

// ReadText reads a text.
func (m *Fields) ReadText(name string, p presence) string {
	if n := m.GetField(name, p); n != nil {
		return m.DecodeText(n, name, m.Plain)
	}
	return ""
}

// ReadPlainText reads a text that may be written as any plain scalar.
func (m *Fields) ReadPlainText(name string) string {
	if n := m.GetField(name, Optional); n != nil {
		return m.DecodeText(n, name, true)
	}
	return ""
}

// ReadTexts reads a list of texts. The result is nil if the field is not set, and
// otherwise not nil.
func (m *Fields) ReadTexts(name string, p presence) []string {
	n := m.GetField(name, p)
	if n == nil {
		return nil
	}
	list := ResolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		m.WrongType(n, name, WantList)
		return nil
	}
	return m.decodeTexts(list.Content, name, m.Plain)
}

// ReadPairs reads a map of texts in order. The result is nil if the field is not
// set, and otherwise not nil.
func (m *Fields) ReadPairs(name string, p presence) []Pair {
	n := m.GetField(name, p)
	if n == nil {
		return nil
	}
	list := ResolveAlias(n)
	if list.Kind != yaml.MappingNode {
		m.WrongType(n, name, WantMapping)
		return nil
	}
	pairs := make([]Pair, 0, len(list.Content)/2)
	for i := 0; i+1 < len(list.Content); i += 2 {
		if key := list.Content[i]; !IsBroken(key) {
			pairs = append(pairs, Pair{key.Value, m.DecodeText(list.Content[i+1], name+"."+key.Value, m.Plain)})
		}
	}
	return pairs
}

// ReadNext reads one target or a list of targets.
func (m *Fields) ReadNext() []string {
	n := m.GetField("next", Optional)
	if n == nil {
		return nil
	}
	switch target := ResolveAlias(n); target.Kind {
	case yaml.ScalarNode:
		return []string{m.DecodeText(n, "next", true)}
	case yaml.SequenceNode:
		return m.decodeTexts(target.Content, "next", true)
	}
	m.WrongType(n, "next", "a string or a list of strings")
	return nil
}

// ReadMapping returns the node of a mapping, or nil if the field is not set or not
// a mapping.
func (m *Fields) ReadMapping(name string) *yaml.Node {
	n := m.GetField(name, Optional)
	if n == nil {
		return nil
	}
	if ResolveAlias(n).Kind != yaml.MappingNode {
		m.WrongType(n, name, WantMapping)
		return nil
	}
	return n
}

// ReadAny reads a value of any type, or nil if the field is not set.
func (m *Fields) ReadAny(name string) any {
	if n := m.GetField(name, Optional); n != nil {
		return DecodeValue(n)
	}
	return nil
}

// decodeUnsigned reads a whole number that is not negative.
func (m *Fields) decodeUnsigned(n *yaml.Node, name, want string) uint64 {
	s := ResolveAlias(n)
	if s.Kind == yaml.ScalarNode {
		switch v, _ := DecodeScalar(s); x := v.(type) {
		case int64:
			if x >= 0 {
				return uint64(x)
			}
			m.AddFault(n, name, "invalid-value", fmt.Sprintf("invalid value: integer `%d`, expected %s", x, want))
			return 0
		case uint64:
			return x
		}
	}
	m.WrongType(n, name, want)
	return 0
}

func (m *Fields) ReadSeconds(name string, def Seconds) Seconds {
	if n := m.GetField(name, Defaulted); n != nil {
		return Seconds(m.decodeUnsigned(n, name, wantSeconds))
	}
	return def
}

func (m *Fields) ReadOptionalSeconds(name string) *Seconds {
	if n := m.GetField(name, Optional); n != nil {
		return new(Seconds(m.decodeUnsigned(n, name, wantSeconds)))
	}
	return nil
}

// ReadCount reads a number of things; a number that does not fit in an int becomes
// the largest int.
func (m *Fields) ReadCount(name string, def int) int {
	if n := m.GetField(name, Defaulted); n != nil {
		return clampInt(m.decodeUnsigned(n, name, wantCount))
	}
	return def
}

func (m *Fields) ReadOptionalCount(name string) *int {
	if n := m.GetField(name, Optional); n != nil {
		return new(clampInt(m.decodeUnsigned(n, name, wantCount)))
	}
	return nil
}

func clampInt(u uint64) int { return int(min(u, math.MaxInt)) }

func (m *Fields) ReadFloat(name string) *float64 {
	n := m.GetField(name, Optional)
	if n == nil {
		return nil
	}
	if s := ResolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := DecodeScalar(s)
		if f, ok := jsonvalue.AsFloat(v); ok {
			return &f
		}
	}
	m.WrongType(n, name, wantNumber)
	return nil
}

func (m *Fields) ReadFlag(name string, def bool) bool {
	if n := m.GetField(name, Defaulted); n != nil {
		return m.decodeBool(n, name)
	}
	return def
}

func (m *Fields) ReadOptionalFlag(name string) *bool {
	if n := m.GetField(name, Optional); n != nil {
		return new(m.decodeBool(n, name))
	}
	return nil
}

// switchWords are further words for true and false in a config.yaml: YAML 1.1 has them.
var switchWords = map[string]bool{"yes": true, "on": true, "no": false, "off": false}

// decodeBool reads true or false; in a config.yaml also yes, no, on and off.
func (m *Fields) decodeBool(n *yaml.Node, name string) bool {
	if s := ResolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := DecodeScalar(s)
		if b, ok := v.(bool); ok {
			return b
		}
		if b, ok := switchWords[strings.ToLower(s.Value)]; ok && m.Forgiving && s.Style == 0 {
			return b
		}
	}
	m.WrongType(n, name, "a boolean")
	return false
}
