package strictyaml

import (
	"math"
	"raddle.dev/internal/base/jsonvalue"
	"testing"
)

func TestPlainScalars(t *testing.T) {
	for text, want := range map[string]any{
		"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil, "nULL": "nULL",
		"true": true, "True": true, "TRUE": true, "false": false, "tRue": "tRue",
		"yes": "yes", "no": "no", "on": "on", "off": "off", "y": "y", "N": "N",
		"0": int64(0), "-0": int64(0), "+12": int64(12), "-12": int64(-12), "9223372036854775808": uint64(1 << 63),
		"18446744073709551616": 18446744073709551616.0,
		"017":                  "017", "-017": "-017", "+00": "+00", "00": "00", "1_000": "1_000", "2001-01-01": "2001-01-01", "12:30": "12:30",
		"0x1F": int64(31), "0xffffffffffffffff": uint64(math.MaxUint64), "0x": "0x", "0xg": "0xg", "-0x1": "-0x1", "0o17": int64(15), "0o8": "0o8", "0b1": "0b1",
		"1.0": 1.0, "-1.5": -1.5, ".5": 0.5, "1.": 1.0, "1e3": 1000.0, "1E-2": 0.01, "1.5e+3": 1500.0, "00.5": 0.5, "+.5": 0.5,
		".": ".", "-": "-", "+": "+", "e1": "e1", "1e": "1e", "1e+": "1e+", "1.2.3": "1.2.3", "1e3x": "1e3x", "--1": "--1", "-.": "-.",
		".inf": math.Inf(1), "-.Inf": math.Inf(-1), "+.INF": math.Inf(1), "inf": "inf", "nan": "nan", "Infinity": "Infinity", "1e999": "1e999",
		"<<": "<<", "=": "=", "!x": "!x",
	} {
		if got := plainValue(text); got != want {
			t.Errorf("%q is %#v, want %#v", text, got, want)
		}
	}
	if f, ok := plainValue(".nan").(float64); !ok || !math.IsNaN(f) {
		t.Error(".nan is a number")
	}
}

func TestYAMLValues(t *testing.T) {
	text := `
plain: 017
quoted: "1"
single: '1.0'
literal: |
  1
folded: >-
  a
  b
tagged: !!str 1
short: ! 12
int: !!int "7"
float: !!float 1
nulltag: !!null ''
long: !<tag:yaml.org,2002:str> true
map: !!map {z: 1, a: !!seq [1.0, 1]}
1: one
true: yes
: empty
anchor: &a {deep: [x]}
alias: *a
key: &k name
*k : by alias
nan: .nan
<<: {merge: no}
`
	d := Read("v.yaml", []byte(text))
	if len(d.List) > 0 {
		t.Fatal(d.List)
	}
	want := `{"plain":"017","quoted":"1","single":"1.0","literal":"1\n","folded":"a b","tagged":"1","short":"12","int":7,"float":1.0,` +
		`"nulltag":null,"long":"true","map":{"z":1,"a":[1.0,1]},"1":"one","true":"yes","":"empty","anchor":{"deep":["x"]},` +
		`"alias":{"deep":["x"]},"key":"name","name":"by alias","nan":null,"<<":{"merge":"no"}}`
	if got := jsonvalue.Compact(DecodeValue(d.Root)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
