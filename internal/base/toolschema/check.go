package toolschema

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// CheckArguments returns why arguments do not match a schema, or nil. A schema that cannot be used, for example because
// it refers to another document, checks nothing: the tool itself decides.
func CheckArguments(schema, args json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	doc, err := decodeJSON(schema)
	if err != nil {
		return nil
	}
	correctTypes(doc)
	var s jsonschema.Schema
	if json.Unmarshal(encodeJSON(doc), &s) != nil {
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return fmt.Errorf("they cannot be read: %w", err)
	}
	return resolved.Validate(value)
}

// correctTypes corrects the names of types in a schema and in all schemas in it, and removes those that do not exist:
// they would refuse every value.
func correctTypes(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			correctTypes(item)
		}
	case object:
		switch t := v["type"].(type) {
		case string:
			if names := typeNames(t); len(names) > 0 {
				v["type"] = names[0]
			} else {
				delete(v, "type")
			}
		case []any, object:
		default:
			delete(v, "type")
		}
		for key, child := range v {
			if !slices.Contains(valueKeywords, key) {
				correctTypes(child)
			}
		}
	}
}

// valueKeywords are the keywords that hold values, not schemas.
var valueKeywords = []string{"default", "const", "enum", "examples"}
