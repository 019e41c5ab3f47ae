package toolschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"raddle.dev/internal/base/pattern"
)

// safeName matches the names of arguments that every provider accepts.
var safeName = pattern.CompileLater(`^[a-zA-Z0-9_.-]{1,64}$`)

// Names maps the names of arguments that a model reads to those that their tool expects. It holds only those that
// differ.
type Names map[string]string

// SafeNames replaces the names of arguments that providers refuse in a repaired schema. Names inside of arguments stay:
// no provider checks them.
func SafeNames(schema json.RawMessage) (json.RawMessage, Names) {
	root, err := decodeJSON(schema)
	node, ok := root.(object)
	if err != nil || !ok {
		return schema, nil
	}
	properties, _ := node["properties"].(object)
	names := Names{}
	safe := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if safeName().MatchString(name) {
			continue
		}
		next := inventName(name, func(s string) bool { return properties[s] != nil || names[s] != "" })
		names[next], safe[name] = name, next
	}
	if len(names) == 0 {
		return schema, nil
	}
	for name, next := range safe {
		if property, ok := properties[name].(object); ok {
			addDescription(property, fmt.Sprintf("Its name for the tool is %q.", name))
		}
		properties[next] = properties[name]
		delete(properties, name)
	}
	if required, ok := node["required"].([]any); ok {
		for i, v := range required {
			if name, ok := v.(string); ok && safe[name] != "" {
				required[i] = safe[name]
			}
		}
	}
	return encodeJSON(node), names
}

// unsafeRunes matches the characters that providers refuse in the name of an argument.
var unsafeRunes = pattern.CompileLater(`[^a-zA-Z0-9_.-]`)

// inventName returns a name that providers accept and that is not taken.
func inventName(name string, taken func(string) bool) string {
	const longest = 64
	base := unsafeRunes().ReplaceAllString(name, "_")
	if base == "" {
		base = "_"
	}
	for n := 1; ; n++ {
		end := ""
		if n > 1 {
			end = fmt.Sprintf("_%d", n)
		}
		if next := base[:min(len(base), longest-len(end))] + end; !taken(next) {
			return next
		}
	}
}

// RestoreNames returns arguments with the names that their tool expects.
func (n Names) RestoreNames(args json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if len(n) == 0 || json.Unmarshal(args, &fields) != nil || fields == nil {
		return args
	}
	restored := make(map[string]json.RawMessage, len(fields))
	for name, value := range fields {
		if original, ok := n[name]; ok {
			name = original
		}
		restored[name] = value
	}
	return encodeJSON(restored)
}
