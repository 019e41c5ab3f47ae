// Package structure is the form in which a journal holds the shape of a graph: its nodes, edges and keys, as JSON, so
// that a run can be drawn, and compared with the graph of another version, without the code of its graph.
package structure

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Key describes one key of a graph's state.
type Key struct {
	Name    string `json:"name"`
	Reducer string `json:"reducer"` // last, append, merge, sum, max, min, concat, or fold for one of the user
	Tag     string `json:"tag"`     // names the type, or the codec
	// Shape is a hash of what the type consists of: see shapeOf; absent: a codec of the user decides.
	Shape string `json:"shape,omitempty"`
}

// NewKey describes a key.
func NewKey(name, reducer, tag string, t reflect.Type, codec bool) Key {
	k := Key{Name: name, Reducer: reducer, Tag: tag}
	if !codec {
		k.Shape = shapeOf(t)
	}
	return k
}

// Recorded is the form itself.
type Recorded[S any] struct {
	Graph S `json:"graph"`
	// Keys are those of the graph, under "", and of its children, under the path of the node with a slash at its end; a
	// named child has a # and its kind before the slash.
	Keys map[string][]Key `json:"keys,omitempty"`
	// Versions are those of the graph and of its children, by the same paths; nil: an earlier version did not write them.
	Versions map[string]string `json:"versions,omitempty"`
	// Cut reports that parts were left out, because all of it would have been larger than MaxSize.
	Cut bool `json:"cut,omitempty"`
}

// MaxSize is the size in bytes that a structure has in a journal at most.
const MaxSize = 128 << 10

// PackGraph returns the form of a graph: the whole of it, or without descriptions, or without children and keys,
// whichever is first small enough; nil if none is.
func PackGraph(graph any, keys map[string][]Key, versions map[string]string) []byte {
	whole, err := json.Marshal(Recorded[any]{Graph: graph, Keys: keys, Versions: versions})
	if err != nil || len(whole) <= MaxSize {
		return whole
	}
	for _, without := range [][]string{{"doc"}, {"doc", "child", "children", "keys"}} {
		var tree map[string]any
		if json.Unmarshal(whole, &tree) != nil {
			return nil
		}
		removeFields(tree, without)
		tree["cut"] = true
		if b, err := json.Marshal(tree); err == nil && len(b) <= MaxSize {
			return b
		}
	}
	return nil
}

// removeFields removes the fields with some names, at any depth. The names in children are those of graphs, and stay.
func removeFields(v any, names []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range names {
			delete(v, name)
		}
		for name, field := range v {
			if named, ok := field.(map[string]any); ok && name == "children" {
				field = slices.Collect(maps.Values(named))
			}
			removeFields(field, names)
		}
	case []any:
		for _, item := range v {
			removeFields(item, names)
		}
	}
}

// UnpackGraph reads what PackGraph has written; nil if there is nothing.
func UnpackGraph[S any](b []byte) (*Recorded[S], error) {
	if len(b) == 0 {
		return nil, nil
	}
	r := new(Recorded[S])
	return r, json.Unmarshal(b, r)
}

// same is written instead of a structure that the thread has already.
var same = []byte("=")

// Shorten returns what a record has of a structure: a short mark if it is the one that the thread has already.
func Shorten(is, was []byte) []byte {
	if len(is) > 0 && bytes.Equal(was, is) {
		return same
	}
	return is
}

// Resolve returns the structure of which a record has what Shorten has returned; nil if that is empty.
func Resolve(is, was []byte) []byte {
	switch {
	case len(is) == 0:
		return nil
	case bytes.Equal(is, same):
		return was
	}
	return is
}
