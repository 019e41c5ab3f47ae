package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type point struct{ X, Y int }

type tree struct {
	Name string
	Subs []*tree `json:",omitempty"`
}

type hidden struct {
	Shown  string
	hidden []int
	Left   []int `json:"-"`
}

type level int8

// TestAnyValues stores values of each type and reads them back with the type that they had.
func TestAnyValues(t *testing.T) {
	Register[point]("test point")
	Register[[]point]("test points")
	zone := time.FixedZone("", 3600)
	for _, v := range []any{
		nil, true, false, 0, -1, math.MaxInt, math.MinInt, int64(-5), uint64(math.MaxUint64), 0.0, -2.5, math.Inf(1), "", "é\n", []byte{}, []byte{0, 255},
		time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 6, zone), []any{}, []any{1, "a", nil, []any{2.5}},
		map[string]any{}, map[string]any{"b": 1, "a": map[string]any{"c": []any{true}}}, point{1, -2}, []point{{1, 2}}, []string{"a", ""}, []int{1, 2},
		map[string]int{"a": 1}, map[string][]string{"a": {"b"}}, []map[string]any{{"a": 1}}, []bool{true},
	} {
		b, err := EncodeAny(nil, v)
		if err != nil {
			t.Errorf("%T %v: %v", v, v, err)
			continue
		}
		got, err := DecodeAny(b)
		if err != nil || !reflect.DeepEqual(got, v) {
			t.Errorf("%T %#v is read as %T %#v, %v", v, v, got, got, err)
		}
		again, err := EncodeAny([]byte("before"), got)
		if err != nil || !bytes.Equal(again, append([]byte("before"), b...)) {
			t.Errorf("%T %v has two forms: %q and %q, %v", v, v, b, again, err)
		}
		for cut := range b {
			if got, err := DecodeAny(b[:cut]); err == nil && reflect.DeepEqual(got, v) && v != nil {
				t.Errorf("%T %v is read from %d of %d bytes", v, v, cut, len(b))
			}
		}
	}
	if got, err := DecodeAny([]byte{dynFloat, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1}); err != nil || !math.IsNaN(got.(float64)) {
		t.Errorf("not a number is read as %v, %v", got, err)
	}
}

// TestValuesThatCannotBeStored says of each why.
func TestValuesThatCannotBeStored(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	for want, v := range map[string]any{
		"does it contain itself":  loop,
		"call graph.Register":     hidden{},
		"chan int cannot be stor": make(chan int),
		"func() cannot be stored": func() {},
	} {
		if _, err := EncodeAny(nil, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", v, err, want)
		}
	}
	for want, b := range map[string][]byte{
		"unknown type":        {'?'},
		"call graph.Register": append([]byte{dynNamed, 4}, "nope\x00"...),
		"nested":              bytes.Repeat([]byte{dynList, 1}, deepest+2),
		"":                    {},
	} {
		if v, err := DecodeAny(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q is read as %v, %v; want %q", b, v, err, want)
		}
	}
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "already names") {
			t.Errorf("a name for two types: %v", p)
		}
	}()
	Register[point]("test name of two")
	Register[tree]("test name of two")
}

// TestTypedValues stores values by their types.
func TestTypedValues(t *testing.T) {
	roundTrip(t, 7)
	roundTrip(t, "a")
	roundTrip(t, level(-3))
	roundTrip(t, []string{"a", "b"})
	roundTrip(t, map[string]int{"a": 1})
	roundTrip(t, point{1, 2})
	roundTrip(t, tree{"a", []*tree{{Name: "b"}}})
	roundTrip(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	roundTrip(t, json.RawMessage(`{"a":1}`))
	roundTrip(t, []any{"a", nil, true})
	roundTrip[any](t, nil)
	if got, err := Decode[int]([]byte(`"a"`)); err == nil {
		t.Errorf("a text is read as %d", got)
	}
	if err := CheckType[chan int](); err == nil {
		t.Error("a channel is a type that can be stored")
	}
	if err := CheckType[map[string][]point](); err != nil {
		t.Error(err)
	}
}

func roundTrip[T any](t *testing.T, v T) {
	t.Helper()
	b, err := Encode(nil, v)
	if err != nil {
		t.Errorf("%T %v: %v", v, v, err)
		return
	}
	got, err := Decode[T](b)
	if err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%T %#v is read as %#v, %v", v, v, got, err)
	}
}

// TestClip appends to what a state holds: no one else sees it.
func TestClip(t *testing.T) {
	spare := append(make([]int, 0, 10), 1, 2)
	kept := []int{1, 2}
	for _, c := range []struct {
		name string
		v    any
		same bool // the value is returned as it is
	}{
		{"a number", 1, true},
		{"a slice", kept, true},
		{"a slice with room", spare, false},
		{"a list", []any{kept}, true},
		{"a list of one with room", []any{spare}, false},
		{"a map", map[string]any{"a": kept}, true},
		{"a map of one with room", map[string]any{"a": []any{map[string]any{"b": spare}}}, false},
		{"bytes with room", make([]byte, 1, 2), false},
		{"texts with room", make([]string, 1, 2), false},
		{"a struct", tree{Subs: []*tree{}}, true},
		{"a struct with room", tree{Subs: make([]*tree, 0, 1)}, false},
		{"a pointer to one with room", &tree{Subs: make([]*tree, 0, 1)}, false},
		{"a pointer to one that hides fields", &hidden{hidden: spare}, true},
		{"what JSON leaves out", hidden{Left: spare}, true},
		{"a time", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), true},
		{"a time with a zone", time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("X", 60)), false},
		{"an array", [1][]int{kept}, true},
		{"an array with room", [1][]int{spare}, false},
		{"a deep list", nest(spare, 40), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if changes := (&spareSearch{}).holdsSpare(c.v, 0); changes == c.same {
				t.Errorf("holdsSpare = %t", changes)
			}
			got := Clip(c.v)
			if (&spareSearch{}).holdsSpare(got, 0) {
				t.Errorf("there is still room in %#v", got)
			}
			if _, isTime := c.v.(time.Time); !isTime && !reflect.DeepEqual(got, c.v) {
				t.Errorf("%#v becomes %#v", c.v, got)
			}
		})
	}
	clipped := ClipAs(spare)
	if _ = append(clipped, 9); cap(clipped) != 2 || spare[:3][2] == 9 {
		t.Errorf("appending to a clipped slice changes another one: cap %d", cap(clipped))
	}
}

// nest puts a value into lists.
func nest(v any, levels int) any {
	for range levels {
		v = []any{v}
	}
	return v
}

// TestCopy changes a copy everywhere, and the value stays as it was.
func TestCopy(t *testing.T) {
	shared := []int{1, 2}
	loop := map[string]any{"n": []any{1}}
	loop["self"] = loop
	was := map[string]any{"list": []any{shared, map[string]any{"a": "b"}}, "tree": &tree{Name: "x", Subs: []*tree{{Name: "y"}}}, "loop": loop}
	got, ok := Copy(was).(map[string]any)
	if !ok || len(got) != 3 {
		t.Fatalf("%#v", got)
	}
	got["list"].([]any)[0].([]int)[0] = 9
	got["list"].([]any)[1].(map[string]any)["a"] = "c"
	got["tree"].(*tree).Subs[0].Name = "z"
	inner := got["loop"].(map[string]any)
	inner["n"].([]any)[0] = 9
	if reflect.ValueOf(inner["self"]).Pointer() != reflect.ValueOf(inner).Pointer() {
		t.Error("a value that contains itself no longer does")
	}
	text := fmt.Sprint(shared, was["list"], was["tree"].(*tree).Subs[0].Name, loop["n"])
	if want := "[1 2] [[1 2] map[a:b]]y[1]"; text != want {
		t.Errorf("the value has become %s, want %s", text, want)
	}
	if Copy(nil) != nil || Copy(3) != 3 {
		t.Error("a copy of what shares nothing is another value")
	}
}

// TestNormalTimes compares times as they are and as they are read back.
func TestNormalTimes(t *testing.T) {
	at := time.Date(2026, 7, 8, 9, 10, 11, 12, time.UTC)
	for _, v := range []time.Time{at, at.In(time.FixedZone("", 3600)), at.In(time.FixedZone("CET", 3600)), at.In(time.FixedZone("Z", 0)), at.Local(), time.Now(), {}} {
		n := NormalTime(v)
		if !n.Equal(v) || !isNormal(n) || NormalTime(n) != n {
			t.Errorf("%v becomes %v", v, n)
		}
		_, offset := v.Zone()
		if _, now := n.Zone(); now != offset {
			t.Errorf("%v has the offset %d, then %d", v, offset, now)
		}
		b, err := EncodeAny(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeAny(b); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%v is read as %v, %v; want %v", v, got, err, n)
		}
	}
}

// TestJSONTypes names the types that questions have.
func TestJSONTypes(t *testing.T) {
	for want, types := range map[string][]reflect.Type{
		"string":  {reflect.TypeFor[string](), reflect.TypeFor[[]byte]()},
		"boolean": {reflect.TypeFor[bool]()},
		"number":  {reflect.TypeFor[int8](), reflect.TypeFor[uint64](), reflect.TypeFor[level](), reflect.TypeFor[float32](), reflect.TypeFor[float64]()},
		"array":   {reflect.TypeFor[[]int](), reflect.TypeFor[[2]string]()},
		"object":  {reflect.TypeFor[point](), reflect.TypeFor[map[string]int]()},
		"":        {reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage]()},
	} {
		for _, typ := range types {
			if got := JSONTypeFor(typ); got != want {
				t.Errorf("%s is %q, want %q", typ, got, want)
			}
		}
	}
	for text, want := range map[string]string{`"a"`: "string", "true": "boolean", "false": "boolean", "1": "number", "-1": "number", "[]": "array", "{}": "object", "null": "null", "": "nothing"} {
		if got := JSONTypeOf([]byte(text)); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestRewrite changes the texts in stored values, and nothing else.
func TestRewrite(t *testing.T) {
	upper := func(b []byte) []byte { return bytes.ToUpper(b) }
	Register[point]("test point")
	for _, c := range []struct {
		v, want any
		opaque  bool
	}{
		{v: "a", want: "A"},
		{v: []any{"a", 1, nil}, want: []any{"A", 1, nil}},
		{v: map[string]any{"k": "v"}, want: map[string]any{"K": "V"}},
		{v: []byte("a"), want: []byte("A")},
		{v: 7, want: 7},
		{v: time.Unix(0, 0).UTC(), want: time.Unix(0, 0).UTC()},
		{v: point{1, 2}, want: point{1, 2}},
	} {
		b, err := EncodeAny(nil, c.v)
		if err != nil {
			t.Fatal(err)
		}
		out, ok := Rewrite(slices.Clone(b), upper)
		if ok == c.opaque {
			t.Errorf("%v: ok = %t", c.v, ok)
		}
		if got, err := DecodeAny(out); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v becomes %v, %v; want %v", c.v, got, err, c.want)
		}
		if same, _ := Rewrite(slices.Clone(b), func(b []byte) []byte { return b }); !bytes.Equal(same, b) {
			t.Errorf("%v: a change of nothing gives %q, was %q", c.v, same, b)
		}
	}
	if out, ok := Rewrite(nil, upper); len(out) != 0 || !ok {
		t.Errorf("nothing becomes %q, %t", out, ok)
	}
	if out, ok := Rewrite([]byte(`{"a":"b"}`), upper); string(out) != `{"A":"B"}` || !ok {
		t.Errorf("JSON becomes %q, %t", out, ok)
	}
	if out, ok := Rewrite([]byte{mixedMark, 1, 'a'}, upper); string(out) != string([]byte{mixedMark, 1, 'a'}) || ok {
		t.Errorf("what only its program knows becomes %q, %t", out, ok)
	}
}
