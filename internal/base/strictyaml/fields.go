package strictyaml

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/wording"
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
func (fs *Fields) FindField(name string) *yaml.Node {
	if !slices.Contains(fs.Known, name) {
		fs.Known = append(fs.Known, name)
	}
	n := fs.Source.FieldNode(name)
	if n == nil || IsBroken(ResolveAlias(n)) {
		return nil
	}
	return n
}

// HasValue reports whether a field is set and not null.
func (fs *Fields) HasValue(name string) bool {
	n := fs.FindField(name)
	return n != nil && !IsEmpty(ResolveAlias(n))
}

// GetField returns the node of a field to decode, or nil if there is nothing to
// decode.
func (fs *Fields) GetField(name string, p presence) *yaml.Node {
	n := fs.FindField(name)
	switch {
	case n == nil:
		if p == Required && fs.Source.FieldNode(name) == nil {
			fs.ReportMissing(name)
		}
		return nil
	case (p == Optional || p == Defaulted && fs.Forgiving) && IsEmpty(ResolveAlias(n)):
		return nil
	}
	return n
}

func (fs *Fields) ReportMissing(name string) {
	fs.Problems.Add(Finding{
		Code: "missing-field", Message: PrefixPath(fs.Path, fmt.Sprintf("missing field `%s`", name)), Pos: fs.Source.Pos, Fix: fmt.Sprintf("add `%s: ...`", name),
	})
}

// fieldPath returns the path of a field of the mapping.
func (fs *Fields) fieldPath(name string) string {
	if fs.Path == "" {
		return name
	}
	return fs.Path + "." + name
}

// AddFault reports a problem with the field name at node n.
func (fs *Fields) AddFault(n *yaml.Node, name, code, message string) {
	fs.Problems.Add(Finding{Code: code, Message: PrefixPath(fs.fieldPath(name), message), Pos: fs.Source.PositionOf(n)})
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

func (fs *Fields) WrongType(n *yaml.Node, name, want string) {
	if fs.Problems.isFull() {
		return
	}
	hint := ""
	if s := ResolveAlias(n); want == wantText && s.Kind == yaml.ScalarNode && !IsEmpty(s) {
		hint = fmt.Sprintf("quote it: %q", wording.CutText(s.Value, 60, "..."))
	}
	fs.Problems.Add(Finding{
		Code: "invalid-type", Message: PrefixPath(fs.fieldPath(name), fmt.Sprintf("invalid type: %s, expected %s", describeNode(n), want)),
		Hint: hint, Fix: fixType(name, ResolveAlias(n), want), Pos: fs.Source.PositionOf(n),
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

func (fs *Fields) DecodeText(n *yaml.Node, name string, plain bool) string {
	s, ok := ScalarText(n, plain)
	if !ok {
		fs.WrongType(n, name, wantText)
	}
	return s
}

// decodeTexts reads the elements of a list.
func (fs *Fields) decodeTexts(items []*yaml.Node, name string, plain bool) []string {
	texts := make([]string, len(items))
	for i, item := range items {
		s, ok := ScalarText(item, plain)
		if !ok && !fs.Problems.isFull() {
			fs.WrongType(item, fmt.Sprintf("%s[%d]", name, i), wantText)
		}
		texts[i] = s
	}
	return texts
}

// ReadText reads a text.
func (fs *Fields) ReadText(name string, p presence) string {
	if n := fs.GetField(name, p); n != nil {
		return fs.DecodeText(n, name, fs.Plain)
	}
	return ""
}

// ReadAlternatives reads a text, or a list of texts, which it joins with commas.
func (fs *Fields) ReadAlternatives(name string) string {
	n := fs.GetField(name, Optional)
	if n == nil {
		return ""
	}
	if list := ResolveAlias(n); list.Kind == yaml.SequenceNode {
		return strings.Join(fs.decodeTexts(list.Content, name, fs.Plain), ",")
	}
	return fs.DecodeText(n, name, fs.Plain)
}

// ReadPlainText reads a text that may be written as any plain scalar.
func (fs *Fields) ReadPlainText(name string) string {
	if n := fs.GetField(name, Optional); n != nil {
		return fs.DecodeText(n, name, true)
	}
	return ""
}

// ReadTexts reads a list of texts. The result is nil if the field is not set, and
// otherwise not nil.
func (fs *Fields) ReadTexts(name string, p presence) []string {
	n := fs.GetField(name, p)
	if n == nil {
		return nil
	}
	list := ResolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		fs.WrongType(n, name, WantList)
		return nil
	}
	return fs.decodeTexts(list.Content, name, fs.Plain)
}

// ReadPairs reads a map of texts in order. The result is nil if the field is not
// set, and otherwise not nil.
func (fs *Fields) ReadPairs(name string, p presence) []Pair {
	n := fs.GetField(name, p)
	if n == nil {
		return nil
	}
	list := ResolveAlias(n)
	if list.Kind != yaml.MappingNode {
		fs.WrongType(n, name, WantMapping)
		return nil
	}
	pairs := make([]Pair, 0, len(list.Content)/2)
	for i := 0; i+1 < len(list.Content); i += 2 {
		if key := list.Content[i]; !IsBroken(key) {
			pairs = append(pairs, Pair{key.Value, fs.DecodeText(list.Content[i+1], name+"."+key.Value, fs.Plain)})
		}
	}
	return pairs
}

// ReadNext reads one target or a list of targets.
func (fs *Fields) ReadNext() []string {
	n := fs.GetField("next", Optional)
	if n == nil {
		return nil
	}
	switch target := ResolveAlias(n); target.Kind {
	case yaml.ScalarNode:
		return []string{fs.DecodeText(n, "next", true)}
	case yaml.SequenceNode:
		return fs.decodeTexts(target.Content, "next", true)
	}
	fs.WrongType(n, "next", "a string or a list of strings")
	return nil
}

// ReadMapping returns the node of a mapping, or nil if the field is not set or not
// a mapping.
func (fs *Fields) ReadMapping(name string) *yaml.Node {
	n := fs.GetField(name, Optional)
	if n == nil {
		return nil
	}
	if ResolveAlias(n).Kind != yaml.MappingNode {
		fs.WrongType(n, name, WantMapping)
		return nil
	}
	return n
}

// ReadAny reads a value of any type, or nil if the field is not set.
func (fs *Fields) ReadAny(name string) any {
	if n := fs.GetField(name, Optional); n != nil {
		return DecodeValue(n)
	}
	return nil
}

// decodeUnsigned reads a whole number that is not negative.
func (fs *Fields) decodeUnsigned(n *yaml.Node, name, want string) uint64 {
	s := ResolveAlias(n)
	if s.Kind == yaml.ScalarNode {
		switch v, _ := DecodeScalar(s); x := v.(type) {
		case int64:
			if x >= 0 {
				return uint64(x)
			}
			fs.AddFault(n, name, "invalid-value", fmt.Sprintf("invalid value: integer `%d`, expected %s", x, want))
			return 0
		case uint64:
			return x
		}
	}
	fs.WrongType(n, name, want)
	return 0
}

func (fs *Fields) ReadSeconds(name string, def Seconds) Seconds {
	if n := fs.GetField(name, Defaulted); n != nil {
		return Seconds(fs.decodeUnsigned(n, name, wantSeconds))
	}
	return def
}

func (fs *Fields) ReadOptionalSeconds(name string) *Seconds {
	if n := fs.GetField(name, Optional); n != nil {
		return new(Seconds(fs.decodeUnsigned(n, name, wantSeconds)))
	}
	return nil
}

// ReadCount reads a number of things; a number that does not fit in an int becomes
// the largest int.
func (fs *Fields) ReadCount(name string, def int) int {
	if n := fs.GetField(name, Defaulted); n != nil {
		return clampInt(fs.decodeUnsigned(n, name, wantCount))
	}
	return def
}

func (fs *Fields) ReadOptionalCount(name string) *int {
	if n := fs.GetField(name, Optional); n != nil {
		return new(clampInt(fs.decodeUnsigned(n, name, wantCount)))
	}
	return nil
}

func clampInt(u uint64) int { return int(min(u, math.MaxInt)) }

func (fs *Fields) ReadFloat(name string) *float64 {
	n := fs.GetField(name, Optional)
	if n == nil {
		return nil
	}
	if s := ResolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := DecodeScalar(s)
		if f, ok := jsonvalue.AsFloat(v); ok {
			return &f
		}
	}
	fs.WrongType(n, name, wantNumber)
	return nil
}

func (fs *Fields) ReadFlag(name string, def bool) bool {
	if n := fs.GetField(name, Defaulted); n != nil {
		return fs.decodeBool(n, name)
	}
	return def
}

func (fs *Fields) ReadOptionalFlag(name string) *bool {
	if n := fs.GetField(name, Optional); n != nil {
		return new(fs.decodeBool(n, name))
	}
	return nil
}

// ReadSwitch reads true or false, also as on or off, in every kind of file.
func (fs *Fields) ReadSwitch(name string) *bool {
	n := fs.GetField(name, Optional)
	if n == nil {
		return nil
	}
	words := *fs
	words.Forgiving = true
	return new(words.decodeBool(n, name))
}

// switchWords are further words for true and false in a config.yaml: YAML 1.1 has them.
var switchWords = map[string]bool{"yes": true, "on": true, "no": false, "off": false}

// decodeBool reads true or false; in a config.yaml also yes, no, on and off.
func (fs *Fields) decodeBool(n *yaml.Node, name string) bool {
	if s := ResolveAlias(n); s.Kind == yaml.ScalarNode {
		v, _ := DecodeScalar(s)
		if b, ok := v.(bool); ok {
			return b
		}
		if b, ok := switchWords[strings.ToLower(s.Value)]; ok && fs.Forgiving && s.Style == 0 {
			return b
		}
	}
	fs.WrongType(n, name, "a boolean")
	return false
}
