package wire

import (
	"bytes"
	"encoding/json"
)

// encodeBody returns the JSON of a request, with the members that the user has configured. What comes from the request
// keeps its bytes, unless a member is merged into it.
func encodeBody(body any, members map[string]any) ([]byte, error) {
	data, err := encodePlain(body)
	if err != nil || len(members) == 0 {
		return data, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for name, value := range members {
		if fields[name], err = mergeValue(fields[name], value); err != nil {
			return nil, err
		}
	}
	return encodePlain(fields)
}

// encodePlain returns the JSON of a value without escapes for HTML.
func encodePlain(v any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return data.Bytes(), err
}

// mergeValue returns value, or if it and old are objects, old with the members of value.
func mergeValue(old json.RawMessage, value any) (json.RawMessage, error) {
	members, isObject := value.(map[string]any)
	var fields map[string]json.RawMessage
	if !isObject || json.Unmarshal(old, &fields) != nil || fields == nil {
		return encodePlain(value)
	}
	for name, v := range members {
		merged, err := mergeValue(fields[name], v)
		if err != nil {
			return nil, err
		}
		fields[name] = merged
	}
	return encodePlain(fields)
}
