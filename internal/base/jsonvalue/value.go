package jsonvalue

import (
	"fmt"
	"slices"
)

// MaxDepth is the maximum depth of values in files, script output and model
// replies. It prevents recursion from exhausting the stack.
const MaxDepth = 1000

// TypeName returns the JSON type of a state value as messages name it: null,
// bool, number, string, array or object. For other Go types it returns the Go
// name.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case int64, uint64, float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case *Object:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

// Equal reports whether two state values are the same JSON value. Numbers of
// different kinds differ (1 is not 1.0), the order of members is ignored, and
// values that are not state values are never equal.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case nil, bool, string, int64, uint64, float64:
		return a == b
	case []any:
		y, ok := b.([]any)
		return ok && equalArrays(x, y)
	case *Object:
		y, ok := b.(*Object)
		return ok && equalObjects(x, y)
	}
	return false
}

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] {
		return true // shared, and values do not change
	}
	return slices.EqualFunc(a, b, Equal)
}

func equalObjects(a, b *Object) bool {
	if a == b {
		return true
	}
	if a.Len() != b.Len() {
		return false
	}
	for key, x := range a.All() {
		y, ok := b.Get(key)
		if !ok || !Equal(x, y) {
			return false
		}
	}
	return true
}

// AsFloat returns a number of any kind as a float.
func AsFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}
