package spec

import (
	"fmt"
	"math"
	"slices"

	"raddle.dev/internal/base/jsonvalue"
)

// ReducerNames are the reducers in the order in which messages list them.
var ReducerNames = []string{"append", "extend", "concat", "sum", "max", "min", "merge", "overwrite"}

// ReduceFunc combines the current and an incoming value. present reports
// whether there is a current value; null counts as one.
type ReduceFunc func(current any, present bool, incoming any) (any, error)

// ReducersByKey are the reducers that a graph file can use. They never change their
// arguments.
var ReducersByKey = map[string]ReduceFunc{
	"append":    appendReducer,
	"extend":    extendReducer,
	"concat":    concatReducer,
	"sum":       numberReducer("sum", func(a, b float64) float64 { return a + b }),
	"max":       numberReducer("max", math.Max),
	"min":       numberReducer("min", math.Min),
	"merge":     mergeReducer,
	"overwrite": func(_ any, _ bool, incoming any) (any, error) { return incoming, nil },
}

func wrongKind(reducer, want, which string, v any) error {
	return fmt.Errorf("reducer '%s' requires %s for the %s value, got %s", reducer, want, which, jsonvalue.TypeName(v))
}

func currentArray(reducer string, current any, present bool) ([]any, error) {
	list, ok := current.([]any)
	if present && !ok {
		return nil, wrongKind(reducer, "an array (or absent)", "current", current)
	}
	return list, nil
}

func appendReducer(current any, present bool, incoming any) (any, error) {
	list, err := currentArray("append", current, present)
	if err != nil {
		return nil, err
	}
	return slices.Concat(list, []any{incoming}), nil
}

func extendReducer(current any, present bool, incoming any) (any, error) {
	list, err := currentArray("extend", current, present)
	if err != nil {
		return nil, err
	}
	more, ok := incoming.([]any)
	if !ok {
		return nil, wrongKind("extend", "an array", "incoming", incoming)
	}
	if len(list) == 0 {
		return more, nil
	}
	return slices.Concat(list, more), nil
}

func concatReducer(current any, present bool, incoming any) (any, error) {
	text, ok := current.(string)
	if present && !ok {
		return nil, wrongKind("concat", "a string (or absent)", "current", current)
	}
	more, ok := incoming.(string)
	if !ok {
		return nil, wrongKind("concat", "a string", "incoming", incoming)
	}
	if text == "" {
		return more, nil
	}
	return text + "\n" + more, nil
}

// numberReducer returns a reducer that computes with 64-bit floats; whole
// results become integers. If there is no current value, the result is the
// incoming one.
func numberReducer(name string, fold func(a, b float64) float64) ReduceFunc {
	return func(current any, present bool, incoming any) (any, error) {
		old, ok := jsonvalue.AsFloat(current)
		if present && !ok {
			return nil, wrongKind(name, "a number", "current", current)
		}
		result, ok := jsonvalue.AsFloat(incoming)
		if !ok {
			return nil, wrongKind(name, "a number", "incoming", incoming)
		}
		if present {
			result = fold(old, result)
		}
		if math.IsInf(result, 0) || math.IsNaN(result) {
			return nil, fmt.Errorf("reducer '%s' computed a number that is out of range", name)
		}
		if result == math.Trunc(result) && math.Abs(result) < 1<<63 {
			return int64(result), nil
		}
		return result, nil
	}
}

func mergeReducer(current any, present bool, incoming any) (any, error) {
	old, ok := current.(*jsonvalue.Object)
	if present && !ok {
		return nil, wrongKind("merge", "an object (or absent)", "current", current)
	}
	more, ok := incoming.(*jsonvalue.Object)
	if !ok {
		return nil, wrongKind("merge", "an object", "incoming", incoming)
	}
	merged := old.Clone()
	for key, v := range more.All() {
		merged.Set(key, v)
	}
	return merged, nil
}
