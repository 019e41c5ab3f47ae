package agui

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An operation is one change of a JSON value (RFC 6902).
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// diffValues returns the operations that make one JSON value of another. Objects are compared member by member, and
// a list that only grows gets its new items; everything else is replaced.
func diffValues(was, is json.RawMessage) []operation {
	return appendDiff(nil, "", was, is)
}

func appendDiff(ops []operation, path string, was, is json.RawMessage) []operation {
	if bytes.Equal(was, is) {
		return ops
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(was, &a) == nil && json.Unmarshal(is, &b) == nil && a != nil && b != nil {
		return appendMembers(ops, path, a, b)
	}
	var old, list []json.RawMessage
	if json.Unmarshal(was, &old) == nil && json.Unmarshal(is, &list) == nil && old != nil && list != nil && len(list) >= len(old) {
		if more, ok := appendItems(ops, path, old, list); ok {
			return more
		}
	}
	return append(ops, operation{Op: "replace", Path: path, Value: is})
}

// appendMembers compares two objects.
func appendMembers(ops []operation, path string, was, is map[string]json.RawMessage) []operation {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, kept := is[name]; !kept {
			ops = append(ops, operation{Op: "remove", Path: path + "/" + escapePointer(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		at := path + "/" + escapePointer(name)
		if old, known := was[name]; known {
			ops = appendDiff(ops, at, old, is[name])
		} else {
			ops = append(ops, operation{Op: "add", Path: at, Value: is[name]})
		}
	}
	return ops
}

// appendItems compares two lists. ok is false if more than half of the old items differ: then it is shorter to replace
// the list.
func appendItems(ops []operation, path string, was, is []json.RawMessage) (more []operation, ok bool) {
	changed := 0
	for i, old := range was {
		if !bytes.Equal(old, is[i]) {
			changed++
			ops = appendDiff(ops, path+"/"+strconv.Itoa(i), old, is[i])
		}
	}
	for _, item := range is[len(was):] {
		ops = append(ops, operation{Op: "add", Path: path + "/-", Value: item})
	}
	return ops, 2*changed <= len(was)
}

// escapePointer returns a name as a part of a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
