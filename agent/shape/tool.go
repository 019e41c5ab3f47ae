package shape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"raddle.dev/tool"
)

// NewTool makes a tool from a Go function. In must be a struct, which is the form
// of the arguments: its JSON Schema comes from the type, with json tags and,
// for descriptions of its fields for the model, jsonschema tags; a field tagged
// json:",omitempty" or ",omitzero" is optional. description is for the model.
//
// If the arguments do not match the schema, fn is not called, and the model
// sees what is wrong. The model receives Out: a string as text, a tool.Result
// as it is, an empty struct as "DONE", everything else as JSON. fn must stop
// when its context ends and may be called concurrently; graph.EffectKey of its
// context is the key of the call. The model sees an error of fn, unless the
// error ends the run.
//
// The returned tool declares no effect: set its Effect, Parallel and Touches if
// you know them. NewTool fails for types that have no JSON Schema, and if In is
// not a struct.
func NewTool[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error)) (tool.Tool, error) {
	fail := func(err error) (tool.Tool, error) { return tool.Tool{}, fmt.Errorf("tool %q: %w", name, err) }
	switch t := reflect.TypeFor[In](); {
	case name == "":
		return fail(errors.New("it needs a name"))
	case fn == nil:
		return fail(errors.New("it needs a function"))
	case t.Kind() != reflect.Struct:
		return fail(fmt.Errorf("its arguments are a %s: they must be a struct, whose fields have the names of the arguments", t))
	}
	args, err := New[In]()
	if err != nil {
		return fail(err)
	}
	run := func(ctx context.Context, c tool.Call) (tool.Result, error) {
		in, err := args.parseArguments(c.Args)
		if err != nil {
			return tool.FailedResult("the arguments do not fit: %v", err), nil
		}
		out, err := fn(ctx, in)
		if err != nil {
			return tool.Result{}, err
		}
		return resultOf(out), nil
	}
	return tool.Tool{Name: name, Description: description, Schema: args.Schema(), Run: run}, nil
}

// parseArguments decodes the arguments of a call.
func (s *Shape[T]) parseArguments(args json.RawMessage) (v T, err error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var value any
	if err = json.Unmarshal(args, &value); err != nil {
		return v, err
	}
	if err = s.resolved.Validate(value); err != nil {
		return v, err
	}
	err = json.Unmarshal(args, &v)
	return v, err
}

// resultOf returns the result of a function in the form in which a model sees
// it.
func resultOf(out any) tool.Result {
	switch v := out.(type) {
	case string:
		return tool.TextResult(v)
	case struct{}:
		return tool.Result{}
	case tool.Result:
		return v
	}
	return tool.JSONResult(out)
}
