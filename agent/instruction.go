package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"raddle.dev/graph"
)

// An Instruction is a system prompt with places to be filled in: {name}, or
// {{name}}, stands for a value, {name?} for one that may be missing, and
// {scope:name} for a value of a scope. Its method System is what Config.System
// and Think.System want. Only instructions are filled in, never what somebody
// says; and what is filled in is not looked at again.
//
// A name begins with a letter or '_', and goes on with these and digits: other
// braces are text. Texts are filled in as they are, everything else as JSON.
type Instruction struct {
	Text string
	// Values gives the values by scope, such as "user", "app", "temp" and "run".
	// A scope that is not listed is no scope: its places are text. Names without a
	// scope are of the scope "", which is the keys of the state where it is not
	// listed.
	Values map[string]Source
	Strict bool // a value that is missing is an error; else its place is left as it is
}

// A Source gives values by name. It must be pure: what it depends on is the state.
type Source func(s graph.State, name string) (value any, ok bool)

// FromKey is the values in a key that holds a map.
func FromKey[V any](k graph.Key[map[string]V]) Source {
	return func(s graph.State, name string) (any, bool) {
		v, ok := k.Get(s)[name]
		return v, ok
	}
}

// FromMap is values that are the same in every run.
func FromMap[V any](m map[string]V) Source {
	return func(_ graph.State, name string) (any, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// place finds what may be a place: in two braces, or in one.
var place = regexp.MustCompile(`\{\{([A-Za-z0-9_:]+\??)\}\}|\{([A-Za-z0-9_:]+\??)\}`)

var placeName = regexp.MustCompile(`^(?:([A-Za-z][A-Za-z0-9_]*):)?([A-Za-z_][A-Za-z0-9_]*)(\?)?$`)

// System fills the instruction in. With Strict the error names all that is
// missing.
func (i Instruction) System(s graph.State) (string, error) {
	var faults []error
	text := place.ReplaceAllStringFunc(i.Text, func(whole string) string {
		part := placeName.FindStringSubmatch(strings.Trim(whole, "{}"))
		if part == nil {
			return whole
		}
		scope, name, optional := part[1], part[2], part[3] != ""
		source := i.source(scope)
		if source == nil {
			return whole
		}
		v, ok := source(s, name)
		switch {
		case ok && v != nil:
			filled, err := asText(v)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", whole, err))
			}
			return filled
		case optional:
			return ""
		case i.Strict:
			faults = append(faults, fmt.Errorf("%s has no value; set it before the node runs, or write {%s?} if it may be missing", whole, strings.Trim(whole, "{}")))
		}
		return whole
	})
	if faults != nil {
		return "", fmt.Errorf("fill in the instruction: %w", errors.Join(faults...))
	}
	return text, nil
}

func (i *Instruction) source(scope string) Source {
	if source := i.Values[scope]; source != nil || scope != "" {
		return source
	}
	return graph.State.Value
}

// asText is a value as it is filled in.
func asText(v any) (string, error) {
	if text, ok := v.(string); ok {
		return text, nil
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	var text string
	if json.Unmarshal([]byte(b.String()), &text) == nil { // a text of a type of its own
		return text, nil
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
