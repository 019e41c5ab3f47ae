package testcase

import (
	"strings"
	"testing"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// TestReplace replaces the value of the key `here`, which is marked by where it is in the text.
func TestReplace(t *testing.T) {
	object := jsonvalue.NewObject(jsonvalue.Member{Key: "a", Value: int64(1)}, jsonvalue.Member{Key: "b", Value: []any{"x, y"}})
	for name, test := range map[string]struct {
		text  string
		value any
		want  string
	}{
		"plain":            {"here: old # why\nnext: 1\n", "new", "here: new # why\nnext: 1\n"},
		"quoted":           {"here: \"old # text\" # why\n", "new: 1", "here: \"new: 1\" # why\n"},
		"number":           {"a:\n  here: 3\n", int64(4), "a:\n  here: 4\n"},
		"to several lines": {"a:\n  - name: x\n    here: old\n    next: 1\n", "one\ntwo\n", "a:\n  - name: x\n    here: |\n      one\n      two\n    next: 1\n"},
		"block":            {"a:\n  here: |\n    one\n\n    # two\n  # about next\n  next: 1\n", "new", "a:\n  here: new\n  # about next\n  next: 1\n"},
		"block to block":   {"here: |\n  one\n  two\n\n# end\n", "three\nfour", "here: |-\n  three\n  four\n\n# end\n"},
		"plain over lines": {"here: one\n  two\n  three\nnext: 1\n", "new", "here: new\nnext: 1\n"},
		"flow list":        {"here: [a, \"b]\",\n  c] # why\n", []any{"a", "d"}, "here: [a, d] # why\n"},
		"block list":       {"a:\n  here:\n    - a # first\n    - b\n\n  next: 1\n", []any{"c"}, "a:\n  here: [c]\n\n  next: 1\n"},
		"list at the key":  {"a:\n  here:\n  - a\n  - b\n  next: 1\n", []any{"c"}, "a:\n  here: [c]\n  next: 1\n"},
		"in braces":        {"a: {here: old, next: [1]} # why\n", "new, one", "a: {here: \"new, one\", next: [1]} # why\n"},
		"last in braces":   {"a: {next: 1, here: {b: c}}\n", "new", "a: {next: 1, here: new}\n"},
		"lines in braces":  {"a: {here: old}\n", "a\nb", "a: {here: \"a\\nb\"}\n"},
		"mapping":          {"here:\n  a: 1\n  b: 2\nnext: 1\n", object, "here: {a: 1, b: [\"x, y\"]}\nnext: 1\n"},
		"no line break":    {"here: old", "new", "here: new"},
		"not ASCII":        {"ä: {ö: \"ü\", here: é}\n", "ß", "ä: {ö: \"ü\", here: ß}\n"},
		"an anchor":        {"here: &x old\nnext: *x\n", "new", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := strictyaml.Read("", []byte(test.text))
			at := findHere(t, d)
			got, n, err := Replace([]byte(test.text), []Failure{{At: at, Actual: test.value}, {At: at, Actual: test.value}, {}})
			if test.want == "" {
				if err == nil || n != 0 || string(got) != test.text {
					t.Errorf("%d, %v\n%s", n, err, got)
				}
				return
			}
			if err != nil || n != 1 || string(got) != test.want {
				t.Errorf("%d, %v\n%s\nwant\n%s", n, err, got, test.want)
			}
		})
	}
}

// findHere returns the position of the value of the key here.
func findHere(t *testing.T, d *strictyaml.Document) (at strictyaml.Pos) {
	t.Helper()
	m := strictyaml.Mapping{Node: d.Root}
	if n := m.FieldNode("here"); n != nil {
		return strictyaml.Pos{Line: n.Line, Col: n.Column}
	}
	for _, above := range d.Root.Content {
		for _, each := range append(above.Content, above) {
			m = strictyaml.Mapping{Node: each}
			if n := m.FieldNode("here"); n != nil {
				return strictyaml.Pos{Line: n.Line, Col: n.Column}
			}
		}
	}
	t.Fatal("there is no key here")
	return at
}

// TestReplaceSeveral replaces values from the end to the beginning.
func TestReplaceSeveral(t *testing.T) {
	text := "a: 1\nb:\n- x\n- y # kept\nc: {d: 2}\n"
	got, n, err := Replace([]byte(text), []Failure{
		{At: strictyaml.Pos{Line: 1, Col: 4}, Actual: "several\nlines"}, {At: strictyaml.Pos{Line: 5, Col: 8}, Actual: int64(3)}, {At: strictyaml.Pos{Line: 4, Col: 3}, Actual: "z"},
	})
	if want := "a: |-\n  several\n  lines\nb:\n- x\n- z # kept\nc: {d: 3}\n"; err != nil || n != 3 || string(got) != want {
		t.Errorf("%d, %v\n%s", n, err, got)
	}
	if !strings.Contains(string(got), "# kept") {
		t.Error("a comment is lost")
	}
}
