package shape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"raddle.dev/tool"
)

// Tool makes a tool of a Go function. In, a struct, is the form of its arguments: its
// JSON Schema comes from the type, with the tags json and, for what the model should
// know of a field, jsonschema; a field tagged json:",omitempty" or ",omitzero" is
// optional. The description is for the model.
//
// Arguments that do not fit the schema do not reach fn: the model reads what is
// wrong with them. Out is what the model reads: a string as text, everything else as
// JSON, a tool.Result as it is, and an empty struct as done. fn must stop when its context ends, and may be
// called concurrently; graph.EffectKey of its context is the key of the call. The
// error of fn is given to the model, unless it ends the run.
//
// The tool declares no effect: set Effect, Parallel and Touches of what Tool returns
// where something is known of them. Tool fails for types that have no JSON Schema,
// and where In is no struct.
func Tool[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error)) (tool.Tool, error) {
	fail := func(err error) (tool.Tool, error) { return tool.Tool{}, fmt.Errorf("tool %q: %w", name, err) }
	switch t := reflect.TypeFor[In](); {
	case name == "":
		return fail(errors.New("it needs a name"))
	case fn == nil:
		return fail(errors.New("it needs a function"))
	case t.Kind() != reflect.Struct:
		return fail(fmt.Errorf("its arguments are a %s: they must be a struct, whose fields have the names of the arguments", t))
	}
	args, err := Of[In]()
	if err != nil {
		return fail(err)
	}
	run := func(ctx context.Context, c tool.Call) (tool.Result, error) {
		in, err := args.arguments(c.Args)
		if err != nil {
			return tool.Failed("the arguments do not fit: %v", err), nil
		}
		out, err := fn(ctx, in)
		if err != nil {
			return tool.Result{}, err
		}
		return resultOf(out), nil
	}
	return tool.Tool{Name: name, Description: description, Schema: args.Schema(), Run: run}, nil
}

// arguments reads the arguments of a call.
func (s *Shape[T]) arguments(args json.RawMessage) (v T, err error) {
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

// resultOf is what a function returned as a model reads it.
func resultOf(out any) tool.Result {
	switch v := out.(type) {
	case string:
		return tool.Text(v)
	case struct{}:
		return tool.Result{}
	case tool.Result:
		return v
	}
	return tool.JSON(out)
}
