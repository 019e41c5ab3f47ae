package value

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// IsSame reports whether JSON is a value, or is written like a text.
func IsSame(want any, have json.RawMessage) bool {
	encoded, err := json.Marshal(want)
	if err != nil {
		return false
	}
	var a, b any
	if UnmarshalExactly(encoded, &a) != nil || UnmarshalExactly(have, &b) != nil {
		return false
	}
	if text, ok := want.(string); ok && have[0] != '"' {
		return string(have) == text && have[0] != '{' && have[0] != '['
	}
	return reflect.DeepEqual(a, b)
}

// UnmarshalExactly decodes JSON and keeps its numbers as they are written.
func UnmarshalExactly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}
