package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"raddle.dev/graph/internal/wire"
)

// things are stored by their name, element by element.
type things map[string]any

// shy marshals itself with a pointer receiver, and reads itself back.
type shy struct{ hidden string }

func (s *shy) MarshalText() ([]byte, error) { return []byte(s.hidden), nil }
func (s *shy) UnmarshalText(b []byte) error { s.hidden = string(b); return nil }

// TestMixedValues stores values in which interfaces keep the types of what they hold.
func TestMixedValues(t *testing.T) {
	Register[point]("test point")
	Register[things]("test things")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	roundTrip(t, []any(nil))
	roundTrip(t, []map[string]any{{"a": int64(1)}, nil, {}})
	roundTrip(t, map[int][]any{-1: {point{1, 2}}, 10: nil, 2: {at, nil}})
	roundTrip(t, map[string]fmt.Stringer{"a": at, "b": nil})
	roundTrip(t, [2]any{"a", uint64(1)})
	roundTrip(t, new(any(1.5)))
	roundTrip(t, (*[]any)(nil))
	roundTrip(t, &[]*any{nil, new(any(true))})
	roundTrip(t, [][]any{{[]string{"a"}, map[string]point{"a": {1, 2}}, []*int{new(3), nil}}})
	roundTrip[fmt.Stringer](t, at)
	roundTrip(t, []byte(nil))
	roundTrip(t, []byte{})
	roundTrip(t, int64(-9))
	roundTrip[any](t, things{"a": int64(1), "b": things{}})
	roundTrip[any](t, map[string]any{"a": []time.Duration{time.Second}, "b": json.Number("1.50")})

	// a list with more elements than are allocated at once
	roundTrip(t, [][]any{slices.Repeat([]any{1, "a"}, 5*fewElements)})
	roundTrip(t, slices.Repeat([]map[string]any{{"a": 1}}, 5*fewElements))
}

// TestMixedOrder writes equal maps as equal bytes, by their keys.
func TestMixedOrder(t *testing.T) {
	m := map[int]any{}
	for i := range 50 {
		m[i] = i
	}
	want, err := Encode(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got, err := Encode([]byte("x"), m); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

// TestDamagedValues reads what was cut off or changed: there is an error, and no panic.
func TestDamagedValues(t *testing.T) {
	b, err := Encode(nil, map[string][2]any{"a": {"text", 1}, "b": {[]string{"c"}, nil}})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(b); i++ {
		if got, err := Decode[map[string][2]any](b[:i]); err == nil {
			t.Errorf("%d of %d bytes are read as %v", i, len(b), got)
		}
		for bit := range 8 {
			flipped := bytes.Clone(b)
			flipped[i] ^= 1 << bit
			_, _ = Decode[map[string][2]any](flipped)
			_, _ = Rewrite(flipped[1:], bytes.Clone)
		}
	}
	typed := func(expr string) []byte { return wire.PutString([]byte{dynTyped}, expr) }
	for want, b := range map[string][]byte{
		"call graph.Register for it":     typed(`[]"test of no one"`),
		"a value of unknown type":        typed("map[bool]any"),
		"value of unknown type":          typed("chan int"),
		"damaged record":                 typed(strings.Repeat("[]", maxNested+2) + "int"),
		"unexpected end of JSON input":   append(wire.PutString([]byte{dynNamed}, "test point"), 0),
		`a value of type "test things":`: append(wire.PutString([]byte{dynNamed}, "test things"), 2, mixedMark, 9),
		"parsing time":                   wire.PutString([]byte{dynTime}, "soon"),
	} {
		if v, err := DecodeAny(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %v, %v; want %q", b, v, err, want)
		}
	}
	array, err := Encode(nil, [3]any{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode[[2]any](array); err == nil || !strings.Contains(err.Error(), "an array of another length") {
		t.Errorf("three elements are read as %v, %v", got, err)
	}
	number, err := EncodeAny(nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := "the journal holds a int, which is not a fmt.Stringer"
	if got, err := Decode[fmt.Stringer](number); err == nil || err.Error() != want {
		t.Errorf("a number is read as %v, %v", got, err)
	}
	list, err := Encode(nil, []any{1})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode[[]fmt.Stringer](list); err == nil || err.Error() != want {
		t.Errorf("a list of numbers is read as %v, %v", got, err)
	}
}

// TestTextsThatAreNotUTF8 stores them, and what looks as they are stored, and reads them back.
func TestTextsThatAreNotUTF8(t *testing.T) {
	Register[tree]("test tree")
	texts := []string{
		"\xff", "a\xc3", "\xe2\x82", "\ufffd", "\ufffd\xff",
		escape, escape + "ff", escape + "--\xfe", "é\xff" + escape + "2",
		"plain", "", `\ufffd`, `\ufffd` + "\x80",
	}
	for _, s := range texts {
		escaped := escapeText(s)
		if got := unescapeText(escaped); got != s || !utf8.ValidString(escaped) {
			t.Errorf("%q is escaped as %q, and becomes %q", s, escaped, got)
		}
		roundTrip(t, tree{s, []*tree{{Name: s + "."}}})
		roundTrip(t, map[string]string{s: s})
		roundTrip(t, [][]string{{s, s}})
		roundTrip[any](t, []any{s, tree{Name: s}, []string{s}})
		if j, err := MarshalAnswer([]string{s}); (err == nil) != utf8.ValidString(s) {
			t.Errorf("the answer %q is %s, %v", s, j, err)
		}
	}
	want := "the string holds text that is not UTF-8, which JSON cannot keep"
	if j, err := MarshalAnswer("a\xff"); err == nil || err.Error() != want {
		t.Errorf("%s, %v", j, err)
	}
	_, err := Encode(nil, map[string]*shy{"a": {"\xff"}})
	if err == nil || !strings.Contains(err.Error(), "not UTF-8 where its own JSON") {
		t.Errorf("a text in its own JSON: %v", err)
	}
}

// TestRewriteOpaque leaves alone what only the program that wrote it knows, and changes no number.
func TestRewriteOpaque(t *testing.T) {
	Register[things]("test things")
	shout := func(b []byte) []byte { return append(bytes.ToUpper(b), '!') }
	for _, v := range []any{
		map[string]int{"a": 1}, []any{"a", []string{"b"}}, map[string]any{"a": map[string]point{}}, []any{things{"a": "b"}},
	} {
		b, err := EncodeAny(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if out, ok := Rewrite(b, shout); ok || !bytes.Equal(out, b) {
			t.Errorf("%v: %q becomes %q, %v", v, b, out, ok)
		}
	}
	numbers := []any{1.5, uint64(1 << 63), int64(-1), true, nil, -7}
	b, err := EncodeAny(nil, map[string]any{"a": numbers, "b": "c"})
	if err != nil {
		t.Fatal(err)
	}
	out, ok := Rewrite(b, shout)
	got, err := DecodeAny(out)
	if want := map[string]any{"A!": numbers, "B!": "C!"}; !ok || err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, %v", got, ok, err)
	}
}
