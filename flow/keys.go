package flow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// valueCodec stores values of the state as compact JSON.
var valueCodec = graph.Codec[any]{
	Tag:    "json",
	Encode: jsonvalue.Append,
	Decode: func(b []byte) (any, error) { return jsonvalue.ParseStored(b) },
}

// listCodec stores a list, or what was added to it, as a compact JSON array.
var listCodec = graph.Codec[[]any]{
	Tag:    "json list",
	Encode: func(dst []byte, list []any) ([]byte, error) { return jsonvalue.Append(dst, list) },
	Decode: func(b []byte) ([]any, error) {
		v, err := jsonvalue.ParseStored(b)
		list, ok := v.([]any)
		if err == nil && !ok && v != nil {
			err = fmt.Errorf("the journal has %.40s, and the key is a list now", b)
		}
		return list, err
	},
}

// keySet creates the keys of a graph by name. Scripts write names that are not
// declared, so there is no list of them.
//
// A key with the reducer append or extend is a list of the engine, of which the
// journal stores only what was added: a log that grows over a long run is
// stored once. All other reducers combine whole values.
type keySet struct {
	file *spec.File
	mu   sync.Mutex
	keys map[string]graph.Key[any]
}

// maxKeys limits how many keys a keySet caches; a key can always be created
// again.
const maxKeys = 1000

// openKey returns the key with a name, of either kind.
func (s *keySet) openKey(name string) graph.AnyKey {
	if s.isAppendOnly(name) {
		return graph.Append[any](name).WithCodec(listCodec)
	}
	return s.stateKey(name)
}

// isAppendOnly reports whether a key is a list to which values are only added. If its
// first value is not a list, its first write fails, as its reducer requires.
func (s *keySet) isAppendOnly(name string) bool {
	switch s.file.Reducer(name) {
	case "append", "extend":
	default:
		return false
	}
	first, present := s.file.InitialState.Get(name)
	_, list := first.([]any)
	return !present || list
}

func (s *keySet) stateKey(name string) graph.Key[any] {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.keys[name]
	if !ok {
		k = newStateKey(name, spec.ReducersByKey[s.file.Reducer(name)])
		if s.keys == nil {
			s.keys = map[string]graph.Key[any]{}
		}
		if len(s.keys) < maxKeys {
			s.keys[name] = k
		}
	}
	return k
}

func newStateKey(name string, reduce spec.ReduceFunc) graph.Key[any] {
	if reduce == nil {
		return graph.Dyn(name).WithCodec(valueCodec)
	}
	return graph.Fold(name, func(old any, present bool, incoming any) (any, error) {
		return reduce(old, present, incoming)
	}).WithCodec(valueCodec)
}

// writeValue writes a value through the key's reducer.
func (s *keySet) writeValue(name string, v any) (graph.Write, error) {
	if !s.isAppendOnly(name) {
		return s.stateKey(name).Set(v), nil
	}
	added, err := spec.ReducersByKey[s.file.Reducer(name)](nil, false, v)
	if err != nil {
		return graph.Write{}, fmt.Errorf("key %q: %w", name, err)
	}
	return graph.Append[any](name).WithCodec(listCodec).Set(added.([]any)), nil
}

// replaceValue replaces a value, whatever its key's reducer.
func (s *keySet) replaceValue(name string, v any) graph.Write {
	if list, ok := v.([]any); ok && s.isAppendOnly(name) {
		return graph.Append[any](name).WithCodec(listCodec).Reset(list)
	}
	return s.stateKey(name).Reset(v)
}

// StateJSON returns a state as one compact JSON object, sorted by key.
func StateJSON(s graph.State) []byte { return appendState(nil, s) }

func appendState(b []byte, s graph.State) []byte {
	b = append(b, '{')
	first := len(b)
	for _, name := range s.Keys() {
		if name == mediaKey.Name() {
			continue // no value of the file's, and large
		}
		if len(b) > first {
			b = append(b, ',')
		}
		b = append(jsonvalue.AppendString(b, name), ':')
		v, _ := s.Value(name)
		encoded, err := jsonvalue.Append(b, v)
		if err != nil { // a value of a key of another package
			encoded = append(b, "null"...)
		}
		b = encoded
	}
	return append(b, '}')
}

// StoredJSON is StateJSON for values in the form in which a journal stores
// them. Pictures and documents of a conversation have their sizes in place of
// their bytes.
func StoredJSON(values []history.StoredValue) []byte {
	b := []byte{'{'}
	for _, v := range values {
		if v.Key == mediaKey.Name() {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(jsonvalue.AppendString(b, v.Key), ':')
		if v.Key == agent.Messages.Name() {
			b = append(b, withoutBytes(appendParts(nil, v.Tag, v.Parts))...)
		} else {
			b = appendParts(b, v.Tag, v.Parts)
		}
	}
	return append(b, '}')
}

// mediaBytes matches a picture or a document in the JSON of a conversation, up to the end of its bytes. No text
// matches: quotes are escaped there.
var mediaBytes = pattern.CompileLater(`(\{"type":"(?:image|file)"(?:,"(?:name|mime)":"(?:[^"\\]|\\.)*")*,)"data":"([A-Za-z0-9+/=]*)"`)

// withoutBytes returns the JSON of a conversation with the sizes of pictures and documents in place of their bytes.
func withoutBytes(messages []byte) []byte {
	if !bytes.Contains(messages, []byte(`"data":"`)) {
		return messages
	}
	var out []byte
	done := 0
	for _, m := range mediaBytes().FindAllSubmatchIndex(messages, -1) {
		data := messages[m[4]:m[5]]
		size := base64.StdEncoding.DecodedLen(len(data)) - bytes.Count(data[max(0, len(data)-2):], []byte("="))
		out = append(append(out, messages[done:m[3]]...), fmt.Sprintf(`"bytes":%d`, size)...)
		done = m[1]
	}
	return append(out, messages[done:]...)
}

// textTag is the tag of keys whose values are stored unchanged.
const textTag = "string"

// appendParts joins the parts of a key that the journal stores: one value, or a
// list or a mapping and what was added to it.
func appendParts(b []byte, tag string, parts [][]byte) []byte {
	switch {
	case tag == textTag || len(parts) == 1 && !json.Valid(parts[0]):
		return jsonvalue.AppendString(b, string(bytes.Join(parts, nil)))
	case len(parts) == 1:
		return append(b, parts[0]...)
	}
	bounds := "[]"
	for _, p := range parts {
		if len(p) > 0 && p[0] == '{' {
			bounds = "{}"
		}
	}
	b = append(b, bounds[0])
	first := len(b)
	for _, p := range parts {
		if len(p) < len(bounds) || p[0] != bounds[0] {
			continue // null: the list or mapping before the additions is empty
		}
		if inner := p[1 : len(p)-1]; len(inner) > 0 {
			if len(b) > first {
				b = append(b, ',')
			}
			b = append(b, inner...)
		}
	}
	if b = append(b, bounds[1]); bounds == "{}" {
		return distinctKeys(b, first-1)
	}
	return b
}

// distinctKeys keeps only the last member of each name in the object that
// starts at from.
func distinctKeys(b []byte, from int) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(b[from:], &members) != nil {
		return b
	}
	object, err := json.Marshal(members)
	if err != nil {
		return b
	}
	return append(b[:from], object...)
}

// ParseValue reads a value that a person typed, as graph.yaml would read it on
// one line: numbers, true, false, null, [lists], {maps: 1} and "quoted text";
// everything else is text. An empty input is the empty text.
func ParseValue(text string) (any, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "" || strings.Contains(trimmed, "\n") && !isBracketed(trimmed):
		return text, nil
	case !isBracketed(trimmed):
		if v, ok := strictyaml.DecodeScalar(&yaml.Node{Kind: yaml.ScalarNode, Value: trimmed}); ok {
			if _, same := v.(string); !same {
				return v, nil
			}
		}
		return text, nil
	}
	d := strictyaml.Read("", []byte(trimmed))
	if len(d.List) > 0 {
		return nil, fmt.Errorf("%s (to use it as text, put it in quotes)", d.List[0].Message)
	}
	if d.Root == nil { // a comment
		return text, nil
	}
	return strictyaml.DecodeValue(d.Root), nil
}

// isBracketed reports whether a text is written as a list, a map or quoted text.
func isBracketed(s string) bool {
	switch s[0] {
	case '[', '{':
		return true
	case '"', '\'':
		return len(s) > 1 && s[len(s)-1] == s[0]
	}
	return false
}

// Replace returns a write that replaces the value of a key of the agent's
// state, whatever the key's reducer.
func (a *Agent) Replace(name string, v any) graph.Write {
	keys := &keySet{file: a.File}
	return keys.replaceValue(name, v)
}

// StoredValue returns the JSON of one value whose parts a journal stores under
// a tag, or nil if the key is missing.
func StoredValue(tag string, parts [][]byte) []byte {
	if parts == nil {
		return nil
	}
	return appendParts(nil, tag, parts)
}

// mediaKey holds the pictures and documents that were attached to the prompt, as a message without text. The turn of a
// conversation moves them into what the user says; a graph keeps them for the nodes whose prompts have the prompt of
// the run. Its name cannot be in a file.
var mediaKey = graph.Last[llm.Message]("(attached)")
