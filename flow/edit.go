package flow

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/graph"
	"raddle.dev/internal/strictyaml"
)

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
	ring := &keySet{file: a.File}
	return ring.replaceValue(name, v)
}

// StoredValue returns the JSON of one value whose parts a journal stores under
// a tag, or nil if the key is missing.
func StoredValue(tag string, parts [][]byte) []byte {
	if parts == nil {
		return nil
	}
	return appendParts(nil, tag, parts)
}
