package wire

import (
	"encoding/json"
	"slices"
)

// These are the bounds of a schema that every provider takes as a strict one.
const (
	deepestStrict        = 5
	mostStrictProperties = 100
)

// strictKeywords are the keywords that every provider accepts in a strict schema.
var strictKeywords = []string{"type", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"}

// FitsStrict reports whether providers can hold a model to a schema: each object names all its properties as required
// and allows no others, each list has items, and nothing else is restricted. A provider refuses a whole request because
// of a strict schema that does not fit.
func FitsStrict(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil || root["type"] != "object" || root["anyOf"] != nil {
		return false
	}
	left := mostStrictProperties
	return fitsStrict(root, 1, &left)
}

func fitsStrict(schema map[string]any, depth int, left *int) bool {
	if depth > deepestStrict {
		return false
	}
	for keyword := range schema {
		if !slices.Contains(strictKeywords, keyword) {
			return false
		}
	}
	if any, is := schema["anyOf"].([]any); is {
		return len(schema) == 1 && fitAll(any, depth, left)
	}
	switch schema["type"] {
	case "object":
		return fitsStrictObject(schema, depth, left)
	case "array":
		items, is := schema["items"].(map[string]any)
		return is && fitsStrict(items, depth+1, left)
	case "string", "number", "integer", "boolean", "null":
		return schema["properties"] == nil && schema["items"] == nil
	}
	return false
}

func fitAll(list []any, depth int, left *int) bool {
	for _, v := range list {
		if schema, is := v.(map[string]any); !is || !fitsStrict(schema, depth+1, left) {
			return false
		}
	}
	return len(list) > 0
}

func fitsStrictObject(schema map[string]any, depth int, left *int) bool {
	properties, is := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	if !is || schema["additionalProperties"] != false || len(required) != len(properties) {
		return false
	}
	if *left -= len(properties); *left < 0 {
		return false
	}
	for name, v := range properties {
		if property, is := v.(map[string]any); !is || !slices.Contains(required, any(name)) || !fitsStrict(property, depth+1, left) {
			return false
		}
	}
	return true
}
