package agent

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"raddle.dev/tool"
)

// CheckArguments returns why the arguments of a call do not match the schema of its tool, or
// nil. A schema that cannot be used, for example because it refers to another document,
// checks nothing: the tool itself decides.
func CheckArguments(t tool.Tool, args json.RawMessage) error {
	if len(t.Schema) == 0 {
		return nil
	}
	var schema jsonschema.Schema
	if json.Unmarshal(t.Schema, &schema) != nil {
		return nil
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return fmt.Errorf("the arguments of %s cannot be read: %w", t.Name, err)
	}
	if err := resolved.Validate(value); err != nil {
		return fmt.Errorf("the arguments of %s do not match its schema: %w", t.Name, err)
	}
	return nil
}
