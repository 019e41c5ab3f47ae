package structure

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type plain struct {
	Name string
	Next *plain
	note string
}

type renamed struct {
	Title string
	Next  *renamed
}

type tagged struct {
	Other string `json:"Name"`
	Next  *tagged
}

type retyped struct {
	Name int
	Next *retyped
}

type omitted struct {
	Name string `json:",omitempty"`
	Next *omitted
}

// The shape of a type is what its stored values depend on: another name or type of a field is another shape, another name of the type
// or a field that is not stored is not.
func TestShapes(t *testing.T) {
	_ = plain{}.note
	for name, c := range map[string]struct {
		a, b reflect.Type
		same bool
	}{
		"itself":                 {reflect.TypeFor[plain](), reflect.TypeFor[plain](), true},
		"a renamed field":        {reflect.TypeFor[plain](), reflect.TypeFor[renamed](), false},
		"a field with a tag":     {reflect.TypeFor[plain](), reflect.TypeFor[tagged](), true},
		"a field of other type":  {reflect.TypeFor[plain](), reflect.TypeFor[retyped](), false},
		"an option of a field":   {reflect.TypeFor[plain](), reflect.TypeFor[omitted](), false},
		"a list and its element": {reflect.TypeFor[[]plain](), reflect.TypeFor[plain](), false},
		"a list and an array":    {reflect.TypeFor[[]int](), reflect.TypeFor[[2]int](), false},
		"keys of maps":           {reflect.TypeFor[map[string]int](), reflect.TypeFor[map[int]int](), false},
		"values of maps":         {reflect.TypeFor[map[string]plain](), reflect.TypeFor[map[string]renamed](), false},
		"two sizes":              {reflect.TypeFor[int32](), reflect.TypeFor[int64](), false},
		"a form of its own":      {reflect.TypeFor[time.Time](), reflect.TypeFor[json.RawMessage](), false},
		"an interface":           {reflect.TypeFor[any](), reflect.TypeFor[any](), true},
	} {
		if is := shapeOf(c.a) == shapeOf(c.b); is != c.same {
			t.Errorf("%s: the same shape: %v", name, is)
		}
	}
}

// A structure that the thread has is recorded as one byte.
func TestShortenAndResolve(t *testing.T) {
	first, second := PackGraph(map[string]string{"name": "a"}, nil, nil), PackGraph(map[string]string{"name": "b"}, nil, nil)
	for name, c := range map[string]struct {
		recorded, was, want []byte
		size                int
	}{
		"an older record": {nil, first, nil, 0},
		"none":            {Shorten(nil, first), first, nil, 0},
		"the first":       {Shorten(first, nil), nil, first, len(first)},
		"the same":        {Shorten(first, first), first, first, 1},
		"another":         {Shorten(second, first), first, second, len(second)},
	} {
		if got := Resolve(c.recorded, c.was); string(got) != string(c.want) || len(c.recorded) != c.size {
			t.Errorf("%s: %q in %d bytes, want %q in %d", name, got, len(c.recorded), c.want, c.size)
		}
	}
	r, err := UnpackGraph[map[string]string](first)
	if err != nil || r.Graph["name"] != "a" {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := UnpackGraph[map[string]string](nil); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}
