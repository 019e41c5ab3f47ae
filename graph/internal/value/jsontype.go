package value

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// JSONTypeFor returns the JSON type that can be decoded into a Go type, or "" if any may
// be.
func JSONTypeFor(t reflect.Type) string {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "" // it decodes any JSON that it accepts
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), t == reflect.TypeFor[[]byte]():
		return "string"
	}
	if IntegerSizes[t.Kind().String()] > 0 {
		return "number"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return ""
}

// JSONTypeOf returns the name of the type of a JSON text.
func JSONTypeOf(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '[':
		return "array"
	case '{':
		return "object"
	case 'n':
		return "null"
	}
	return "number"
}
