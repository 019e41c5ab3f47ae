package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseJSON(t *testing.T) {
	for text, want := range map[string]any{
		" null ": nil, "true": true, "\tfalse\r\n": false, "0": int64(0), "-0": NegativeZero, "-12": int64(-12), "1.0": 1.0,
		"9223372036854775807": int64(math.MaxInt64), "9223372036854775808": uint64(1 << 63), "-9223372036854775808": int64(math.MinInt64),
		"18446744073709551616": 18446744073709551616.0, "-9223372036854775809": -9223372036854775809.0, "1e2": 100.0, "1.5E-3": 0.0015,
		`"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u2028"`: "a\"\\/\b\f\n\r\té😀\u2028", `"é"`: "é",
	} {
		got, err := Parse([]byte(text))
		if err != nil || !Equal(got, want) || TypeName(got) != TypeName(want) {
			t.Errorf("ParseJSON(%s) = %#v, %v, want %#v", text, got, err, want)
		}
	}
}

func TestParseJSONKeepsOrder(t *testing.T) {
	v, err := Parse([]byte(`{"z": 1, "a": [ ], "z": {"b":2, "a":{}}, "": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := Compact(v); got != `{"z":{"b":2,"a":{}},"a":[],"":3}` {
		t.Error(got)
	}
}

func TestParseJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "the text ends too early: expected a value at line 1 column 1",
		"{\n \"a\": }":       "expected a value at line 2 column 7",
		"[1,]":               "expected a value at line 1 column 4",
		"[1 2]":              "expected , or ] at line 1 column 4",
		"{\"a\" 1}":          "expected : at line 1 column 6",
		"{a: 1}":             "expected a member's name in double quotes at line 1 column 2",
		"{\"a\":1,}":         "expected a member's name in double quotes at line 1 column 8",
		"01":                 "a number may not start with 0 at line 1 column 2",
		"-":                  "the text ends too early: expected a digit at line 1 column 2",
		"1.":                 "the text ends too early: expected a digit after the decimal point at line 1 column 3",
		"1e+":                "the text ends too early: expected a digit in the exponent at line 1 column 4",
		"1e999":              "number out of range at line 1 column 1",
		"tru":                "expected true at line 1 column 1",
		"NaN":                "expected a value at line 1 column 1",
		"\"a":                "the text ends too early: expected the closing quote of a string at line 1 column 3",
		"\"a\nb\"":           "a control character in a string must be escaped at line 1 column 3",
		"\"\\x\"":            "unknown escape at line 1 column 3",
		"\"\\u12g4\"":        "expected four hexadecimal digits at line 1 column 4",
		"\"\\u+123\"":        "expected four hexadecimal digits at line 1 column 4",
		"\"\\ud800\"":        "half of a surrogate pair at line 1 column 8",
		"\"\\ud800\\ud800\"": "half of a surrogate pair at line 1 column 14",
		"\"\xff\"":           "text that is not UTF-8 at line 1 column 3",
		"{} {}":              "unexpected text after the value at line 1 column 4",
		"// x\n1":            "expected a value at line 1 column 1",
	} {
		v, err := Parse([]byte(text))
		var bad *SyntaxError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("ParseJSON(%q) = %v, %v, want %s", text, v, err, want)
		}
	}
	if _, err := Parse(bytes.Repeat([]byte("9"), 400)); err == nil {
		t.Error("a number of 400 digits was read")
	}
}

func TestParseJSONDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat(`[{"a":`, n) + "1" + strings.Repeat("}]", n)) }
	if _, err := Parse(nested(500)); err != nil {
		t.Errorf("1000 levels: %v", err)
	}
	if _, err := Parse(nested(501)); err == nil {
		t.Error("1002 levels were read")
	}
	if _, err := Parse(bytes.Repeat([]byte("["), 4<<20)); err == nil {
		t.Error("brackets without end were read")
	}
	v, err := ParseStored(nested(20_000))
	if err != nil {
		t.Fatalf("a journal may hold 40000 levels: %v", err)
	}
	if len(Compact(v)) != len(nested(20_000)) {
		t.Error("it came back different")
	}
	flat := []byte("[" + strings.Repeat("[],", 2000) + "{}]")
	if _, err := Parse(flat); err != nil {
		t.Errorf("many empty lists are not deep: %v", err)
	}
}

// TestParseJSONAgrees holds the parser against the standard library's.
func TestParseJSONAgrees(t *testing.T) {
	for _, text := range []string{
		`{"a":[1,2,{"b":null}],"c":"\u0041"}`, `[[[]]]`, `"\ud83d\ude00"`, ` [ 1 , -2.5e3 , "x" ] `, `{"":""}`, `[`, `{]`, `"\`, `1 2`, `-`, `.5`, `+1`,
	} {
		_, err := Parse([]byte(text))
		if valid := json.Valid([]byte(text)); valid != (err == nil) {
			t.Errorf("%s: %v, but valid is %t", text, err, valid)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.0,{"b":null}],"c":"\u0041\ud83d\ude00"}`, `-0`, `1e21`, `[[],{}]`, `"\ud800"`, `{"a":1,"a":2}`, "\"\u2028\"", `18446744073709551615`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("read %q, which is not JSON", data)
		}
		text, err := Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil || !Equal(v, again) {
			t.Fatalf("%s came back as %v (%v)", text, again, err)
		}
		if second := Compact(again); second != string(text) {
			t.Fatalf("%s became %s", text, second)
		}
		pretty, err := Parse([]byte(Pretty(v)))
		if err != nil || Compact(pretty) != string(text) {
			t.Fatalf("%s is not %s", Pretty(v), text)
		}
	})
}

// stateText is a state of usual size.
func stateText() []byte {
	var b strings.Builder
	b.WriteString(`{"initial_prompt":"Write about bees.","items":[`)
	for i := range 200 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`{"id":` + Compact(int64(i)) + `,"score":0.25,"title":"A title with \"quotes\" and ünicode","tags":["a","b"],"done":false}`)
	}
	b.WriteString("]}")
	return []byte(b.String())
}

func BenchmarkParseJSON(b *testing.B) {
	text := stateText()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	v, err := Parse(stateText())
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.SetBytes(int64(len(Compact(v))))
	b.ReportAllocs()
	for b.Loop() {
		if out, err = Append(out[:0], v); err != nil {
			b.Fatal(err)
		}
	}
}
