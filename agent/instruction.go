package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/pattern"
)

// An Instruction is a system prompt with placeholders: {name} or {{name}} is
// replaced by a value, {name?} by a value that may be missing, and {scope:name}
// by a value of a scope. Use its method System as Config.System or
// Think.System. Only the instruction itself is filled in, never the messages of
// a conversation, and inserted values are not filled in again.
//
// A name consists of letters, digits and '_', and does not start with a digit;
// other braces are text. Texts are inserted as they are, all other values as
// JSON.
type Instruction struct {
	Text string
	// Values gives the values by scope, such as "user", "app", "temp" and
	// "run". A placeholder with a scope that is not listed is text. Names
	// without a scope belong to the scope ""; if that is not listed, they are
	// keys of the state.
	Values map[string]Source
	Strict bool // a missing value is an error; if not set, the placeholder stays as it is
}

// A Source returns values by name. It must be pure: its result may depend only
// on the state.
type Source func(s graph.State, name string) (value any, ok bool)

// FromKey returns a Source of the values in a key that contains a map.
func FromKey[V any](k graph.Key[map[string]V]) Source {
	return func(s graph.State, name string) (any, bool) {
		v, ok := k.Get(s)[name]
		return v, ok
	}
}

// FromMap returns a Source of values that are the same in every run.
func FromMap[V any](m map[string]V) Source {
	return func(_ graph.State, name string) (any, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// place matches possible placeholders, in two braces or in one.
var place = pattern.CompileLater(`\{\{([A-Za-z0-9_:]+\??)\}\}|\{([A-Za-z0-9_:]+\??)\}`)

var placeName = pattern.CompileLater(`^(?:([A-Za-z][A-Za-z0-9_]*):)?([A-Za-z_][A-Za-z0-9_]*)(\?)?$`)

// System fills in the instruction. With Strict, the error names every missing
// value.
func (i Instruction) System(s graph.State) (string, error) {
	var faults []error
	text := place().ReplaceAllStringFunc(i.Text, func(whole string) string {
		part := placeName().FindStringSubmatch(strings.Trim(whole, "{}"))
		if part == nil {
			return whole
		}
		scope := part[1]
		name := part[2]
		optional := part[3] != ""
		source := i.sourceFor(scope)
		if source == nil {
			return whole
		}
		v, ok := source(s, name)
		switch {
		case ok && v != nil:
			filled, err := formatValue(v)
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

func (i *Instruction) sourceFor(scope string) Source {
	if source := i.Values[scope]; source != nil || scope != "" {
		return source
	}
	return graph.State.Value
}

// formatValue returns a value in the form in which it is inserted.
func formatValue(v any) (string, error) {
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
	if json.Unmarshal([]byte(b.String()), &text) == nil { // a text whose type marshals itself
		return text, nil
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
