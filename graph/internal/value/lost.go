package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// FindLost returns what a stored value has and its form after reading and storing it again has not: the path of the member of an object; "": nothing
// is lost, or the value has another form than JSON. A member that is empty, false or 0 may be left out.
func FindLost(stored, again []byte) string {
	if bytes.Equal(stored, again) {
		return ""
	}
	var was, is any
	if json.Unmarshal(trimMark(stored), &was) != nil || json.Unmarshal(trimMark(again), &is) != nil {
		return ""
	}
	return findLost("", was, is)
}

// trimMark returns the JSON of a value with interfaces inside.
func trimMark(b []byte) []byte { return bytes.TrimPrefix(b, []byte{mixedMark}) }

func findLost(path string, was, is any) string {
	switch was := was.(type) {
	case map[string]any:
		object, ok := is.(map[string]any)
		if !ok {
			return describeLost(path, was)
		}
		for _, name := range slices.Sorted(maps.Keys(was)) {
			below := path + "." + name
			if path == "" {
				below = name
			}
			member, there := object[name]
			if !there {
				if isEmpty(was[name]) {
					continue
				}
				return describeLost(below, was[name])
			}
			if lost := findLost(below, was[name], member); lost != "" {
				return lost
			}
		}
		return ""
	case []any:
		list, ok := is.([]any)
		if !ok || len(list) != len(was) {
			return describeLost(path, was)
		}
		for i := range was {
			if lost := findLost(fmt.Sprintf("%s[%d]", path, i), was[i], list[i]); lost != "" {
				return lost
			}
		}
		return ""
	}
	if !reflect.DeepEqual(was, is) && !(was == nil && isEmpty(is)) {
		return describeLost(path, was)
	}
	return ""
}

func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || v == "" || v == false || v == 0.0
}

// describeLost names a member that is lost, or the value itself.
func describeLost(path string, v any) string {
	if path != "" {
		return path
	}
	j, err := json.Marshal(v)
	const most = 40
	if err != nil || len(j) > most {
		return "its value"
	}
	return "its value " + string(j)
}
