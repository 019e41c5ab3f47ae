package jsonvalue

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncode(t *testing.T) {
	tests := []struct {
		v    any
		want string
	}{
		{nil, "null"},
		{true, "true"},
		{int64(-7), "-7"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{"", `""`},
		{"a\"\\/\b\f\n\r\t\x00\x1f\x7f", `"a\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f\""},
		{"<a href='x'>&é☃\u2028\u2029😀", "\"<a href='x'>&é☃\u2028\u2029😀\""},
		{"bad\xffutf", "\"bad\ufffdutf\""},
		{[]any{}, "[]"},
		{[]any(nil), "[]"},
		{&Object{}, "{}"},
		{(*Object)(nil), "{}"},
		{NewObject(Member{"z", []any{int64(1), nil}}, Member{"a", NewObject(Member{"k", "v"})}), `{"z":[1,null],"a":{"k":"v"}}`},
	}
	for _, tt := range tests {
		got, err := Append(nil, tt.v)
		if err != nil || string(got) != tt.want {
			t.Errorf("AppendJSON(%#v) = %s, %v, want %s", tt.v, got, err, tt.want)
		}
	}
}

func TestEncodeFloats(t *testing.T) {
	for want, f := range map[string]float64{
		"0.0": 0, "-0.0": NegativeZero, "1.0": 1, "-3.0": -3, "2.5": 2.5, "0.1": 0.1, "10.0": 10,
		"1000000000000000.0": 1e15, "9007199254740993.0": 9007199254740993, "1e16": 1e16, "1e21": 1e21,
		"-1.5e300": -1.5e300, "0.00001": 1e-5, "1e-6": 1e-6, "1.25e-7": 1.25e-7, "5e-324": 5e-324,
		"1.7976931348623157e308": math.MaxFloat64, "1.2345678901234568e17": 123456789012345678,
		"null": math.NaN(), "123456789012345.6": 123456789012345.6,
	} {
		if want == "9007199254740993.0" {
			want = "9007199254740992.0"
		}
		if got := Compact(f); got != want {
			t.Errorf("Compact(%g) = %s, want %s", f, got, want)
		}
	}
	if got := Compact(math.Inf(-1)); got != "null" {
		t.Errorf("infinity is written as %s", got)
	}
}

func TestEncodeRefusesOtherTypes(t *testing.T) {
	for _, v := range []any{1, float32(1), map[string]any{}, []string{"a"}, struct{}{}} {
		if text, err := Append(nil, []any{NewObject(Member{"k", v})}); err == nil {
			t.Errorf("%T was written as %s", v, text)
		}
		if got := Compact(v); got != "null" {
			t.Errorf("Compact(%T) = %s", v, got)
		}
	}
}

func TestPretty(t *testing.T) {
	v := NewObject(
		Member{"type", "object"}, Member{"empty", []any{}}, Member{"none", &Object{}},
		Member{"list", []any{int64(1), []any{"<"}, NewObject(Member{"k", 1.0})}},
	)
	want := `{
  "type": "object",
  "empty": [],
  "none": {},
  "list": [
    1,
    [
      "<"
    ],
    {
      "k": 1.0
    }
  ]
}`
	if diff := cmp.Diff(want, Pretty(v)); diff != "" {
		t.Error(diff)
	}
}

func TestEqual(t *testing.T) {
	parse := func(text string) any {
		v, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	values := []string{
		`null`, `true`, `false`, `0`, `0.5`, `1`, `1.0`, `18446744073709551615`, `1e300`, `""`, `"1"`, `[]`, `[1]`, `[1,2]`,
		`[1.0]`, `{}`, `{"a":1}`, `{"a":1.0}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":[{}]}`,
	}
	for i, a := range values {
		for j, b := range values {
			if got := Equal(parse(a), parse(b)); got != (i == j) {
				t.Errorf("Equal(%s, %s) = %t", a, b, got)
			}
		}
	}
	if !Equal(parse(`{"a":1,"b":{"c":[2]}}`), parse(`{"b":{"c":[2]},"a":1}`)) {
		t.Error("the order of members counts")
	}
	if !Equal(parse(`0.0`), parse(`-0`)) || Equal(1, 1) {
		t.Error("zero, or a Go type that is no state value")
	}
}

func TestObject(t *testing.T) {
	o := &Object{}
	keys := strings.Split("a b c d e f g h i j k l", " ")
	for i, k := range keys {
		o.Set(k, int64(i))
	}
	o.Set("c", "new")
	if v, ok := o.Get("c"); !ok || v != "new" || o.Len() != len(keys) {
		t.Errorf("c is %v of %d", v, o.Len())
	}
	c := o.Clone()
	if !c.Delete("a") || c.Delete("a") || !c.Delete("k") {
		t.Error("Delete reports the wrong thing")
	}
	c.Set("a", true)
	c.Set("c", "changed")
	var order []string
	for k := range c.All() {
		order = append(order, k)
	}
	if diff := cmp.Diff(strings.Split("b c d e f g h i j l a", " "), order); diff != "" {
		t.Error(diff)
	}
	if v, _ := o.Get("c"); v != "new" || o.Len() != len(keys) {
		t.Error("changing a clone changed the object")
	}
	for range o.All() {
		break
	}
	var none *Object
	if _, ok := none.Get("x"); ok || none.Len() != 0 || none.Clone().Len() != 0 || none.Delete("x") {
		t.Error("nil is not an empty object")
	}
}

func TestObjectJSON(t *testing.T) {
	var o Object
	if err := json.Unmarshal([]byte(`{"b":1,"a":{"d":2.0,"c":[]}}`), &o); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&o)
	if err != nil || string(text) != `{"b":1,"a":{"d":2.0,"c":[]}}` {
		t.Errorf("%s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`[1]`), &o); err == nil {
		t.Error("a list is not an object")
	}
}

func TestTypeName(t *testing.T) {
	for want, v := range map[string]any{
		"null": nil, "bool": false, "number": int64(1), "string": "", "array": []any{}, "object": &Object{}, "int": 1,
	} {
		if got := TypeName(v); got != want {
			t.Errorf("TypeName(%#v) = %s, want %s", v, got, want)
		}
	}
}
