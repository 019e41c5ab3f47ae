package agent

import (
	"encoding/json"
	"fmt"

	"raddle.dev/internal/toolschema"
	"raddle.dev/tool"
)

// CheckArguments returns why the arguments of a call do not match the schema of its tool, or
// nil. A tool that checks arguments itself decides; otherwise a schema that cannot be used, for example because it refers to another document,
// checks nothing: the tool itself decides.
func CheckArguments(t tool.Tool, args json.RawMessage) error {
	if t.Check != nil {
		if err := t.Check(args); err != nil {
			return fmt.Errorf("the arguments of %s are wrong: %w", t.Name, err)
		}
		return nil
	}
	if err := toolschema.CheckArguments(t.Schema, args); err != nil {
		return fmt.Errorf("the arguments of %s do not match its schema: %w", t.Name, err)
	}
	return nil
}
