package gemini

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// keptKeywords are the keywords that Gemini documents for JSON schemas. It ignores or refuses others, depending on the
// model.
var keptKeywords = []string{"type", "title", "description", "enum", "format", "items", "minItems", "maxItems", "minimum", "maximum", "anyOf",
	"properties", "required", "additionalProperties"}

// keptFormats are the formats of texts that Gemini accepts.
var keptFormats = []string{"date-time", "date", "time"}

// narrowSchema returns a repaired schema of arguments with the keywords that Gemini accepts, or nil if it describes
// nothing: Gemini refuses an object without properties. A schema in which nothing has to change keeps the order of its
// properties.
func narrowSchema(schema json.RawMessage) any {
	decode := func() (node object) {
		d := json.NewDecoder(bytes.NewReader(schema))
		d.UseNumber()
		if d.Decode(&node) != nil {
			return nil
		}
		return node
	}
	fixed := narrowNode(decode())
	told := []string{"type", "additionalProperties"}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(fixed)), func(key string) bool { return !slices.Contains(told, key) }) {
		return nil
	}
	if reflect.DeepEqual(fixed, decode()) {
		return schema
	}
	return fixed
}

func narrowNode(node object) object {
	fixed := object{}
	if v, ok := node["const"]; ok && node["enum"] == nil {
		node["enum"] = []any{v}
	}
	if v, ok := node["oneOf"]; ok && node["anyOf"] == nil {
		node["anyOf"] = v
	}
	for _, key := range keptKeywords {
		v, ok := node[key]
		if !ok {
			continue
		}
		switch key {
		case "properties":
			v = narrowProperties(v)
		case "items", "additionalProperties":
			if child, ok := v.(object); ok {
				v = narrowNode(child)
			}
		case "anyOf":
			v = narrowAlternatives(v)
		case "enum":
			v = narrowValues(v)
		case "format":
			v = narrowFormat(v, fixed)
		}
		if v != nil {
			fixed[key] = v
		}
	}
	if fixed["type"] == nil && fixed["enum"] != nil {
		fixed["type"] = "string" // Gemini knows values of this type only
	}
	return fixed
}

// narrowProperties returns nil for no properties.
func narrowProperties(v any) any {
	properties, _ := v.(object)
	if len(properties) == 0 {
		return nil
	}
	for name, child := range properties {
		if c, ok := child.(object); ok {
			properties[name] = narrowNode(c)
		}
	}
	return properties
}

func narrowAlternatives(v any) any {
	list, _ := v.([]any)
	for i, branch := range list {
		if b, ok := branch.(object); ok {
			list[i] = narrowNode(b)
		}
	}
	return list
}

// narrowValues leaves out the empty text, and returns nil for values that are neither texts nor numbers.
func narrowValues(v any) any {
	list, _ := v.([]any)
	list = slices.DeleteFunc(list, func(v any) bool { return v == "" || v == nil })
	for _, v := range list {
		switch v.(type) {
		case string, json.Number:
		default:
			return nil
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// narrowFormat moves a format that Gemini refuses into the description.
func narrowFormat(v any, fixed object) any {
	text, _ := v.(string)
	if slices.Contains(keptFormats, text) {
		return text
	}
	if d, ok := fixed["description"].(string); ok {
		fixed["description"] = d + " (format: " + text + ")"
	} else {
		fixed["description"] = "Format: " + text
	}
	return nil
}
