package testcase

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testfile"
)

// TestPlacesOfErrors says where in a file each wrong expectation is.
func TestPlacesOfErrors(t *testing.T) {
	for expect, want := range map[string]string{
		"{output: {above: many}}":            "3:30: error: expected a number, found a single value",
		"{output: {absent: 1}}":              "3:31: error: expected true or false, found a single value",
		"{output: {schema: [1]}}":            "3:31: error: the schema is not a JSON schema: ",
		"{output: {schema: {$ref: '#/no'}}}": "3:31: error: the schema is not a JSON schema: ",
		"{state: {'a..b': 1}}":               `3:22: error: the path "a..b" has an empty name (write key.member[0])`,
		"{calls: [{a: {}, b: {}}]}":          "3:22: error: a call must be one name, or one name with what is expected of it",
		"{calls: [{a: {'[': 1}}]}":           `3:27: error: the path "[" has an index that is not a number in brackets`,
		"{path: [[a]]}":                      "3:21: error: a node must be a text, not a list",
		"{path: [a, '']}":                    "",
		"{path: [a, null]}":                  "3:24: error: a node must be a text, not nothing",
		"{output: {contains: [a, {b: c}]}}":  "3:37: error: contains[1] must be a text, not a mapping",
	} {
		_, err := Read("a.test.yaml", []byte("tests:\n  - name: a\n    expect: "+expect+"\n"))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), "a.test.yaml:"+want) {
			t.Errorf("%s: %v, want %s", expect, err, want)
		}
	}
	_, err := Read("a.test.yaml", []byte("at: soon\ntests: [{name: a}]\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "a.test.yaml:1:5: error: at: ") {
		t.Errorf("a time: %v", err)
	}
	_, err = Encode([]*Case{{}})
	if err == nil || !strings.Contains(err.Error(), "the cases cannot be written: ") {
		t.Errorf("a case without a name: %v", err)
	}
}

// TestInherit replaces what the file says about all cases by what a case says, by name.
func TestInherit(t *testing.T) {
	f, err := Read("a.test.yaml", []byte(`
prompt: shared
at: 2h
initial_state: {a: 1, b: [1]}
replies: [shared]
real: [one]
nodes: {x: shared, y: shared}
tests:
  - name: plain
  - name: own
    prompt: ""
    at: +49h
    initial_state: {b: 2, c: 3}
    replies: [{node: x, text: own}]
    real: [two, one]
`))
	if err != nil {
		t.Fatal(err)
	}
	plain := f.Cases[0]
	own := f.Cases[1]
	if plain.Prompt != "shared" || plain.Passes() != 2*time.Hour || Text(plain.State) != `{"a":1,"b":[1]}` {
		t.Errorf("%+v", plain.Setup)
	}
	if own.Prompt != "" || own.Passes() != 49*time.Hour || Text(own.State) != `{"a":1,"b":2,"c":3}` {
		t.Errorf("%+v", own.Setup)
	}
	if len(own.Nodes) != 1 || own.Nodes[0].Node != "y" {
		t.Errorf("a node with own replies has the outputs of the file: %+v", own.Nodes)
	}
	if len(own.Replies) != 2 || own.Replies[0].Text != "own" || !slices.Equal(own.Real, []string{"two", "one"}) {
		t.Errorf("%+v", own.Setup)
	}
	if (&Setup{}).Passes() != 0 {
		t.Error("time passes that is not given")
	}
}

// TestFind lists the files of a directory, and not those below it.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.test.yaml", "a.test.yaml", "c.yaml", "d.test.yaml/e.test.yaml"} {
		testfile.WriteFile(t, filepath.Join(dir, name), "tests: [{name: n}]\n")
	}
	files, err := Find(dir)
	if err != nil || !slices.Equal(files, []string{filepath.Join(dir, "a.test.yaml"), filepath.Join(dir, "b.test.yaml")}) {
		t.Errorf("%q, %v", files, err)
	}
	alone := filepath.Join(dir, "missing.test.yaml")
	if files, err := Find(alone); err != nil || !slices.Equal(files, []string{alone}) {
		t.Errorf("%q, %v", files, err)
	}
	if _, err := Load(alone); err == nil {
		t.Error("a file that is missing is read")
	}
	if f, err := Load(files[0]); err != nil || f.Path != files[0] || len(f.Cases) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}
