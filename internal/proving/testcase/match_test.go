package testcase

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// readExpected reads what a case expects.
func readExpected(t *testing.T, expect string) Expect {
	t.Helper()
	f, err := Read("a.test.yaml", []byte("tests:\n  - name: a\n    expect: "+expect+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f.Cases[0].Expect
}

// list joins the messages of failures.
func list(failed []Failure) string {
	var messages []string
	for _, f := range failed {
		messages = append(messages, f.Message)
	}
	return strings.Join(messages, "; ")
}

// TestMatcher says of values whether they are as expected, and why not.
func TestMatcher(t *testing.T) {
	const none = "\x00" // there is no value
	for _, c := range []struct {
		expect, value, want string // value is JSON
	}{
		{"high", `"high\n"`, ""},
		{"high", `"low"`, `expected "high", got "low"`},
		{"3", `3`, ""},
		{"3", `3.0`, ""},
		{"3", `"3"`, ""},
		{"'3'", `3`, `expected the text "3", got the number 3`},
		{"{a: [1, 2]}", `"{\"a\": [1, 2]}"`, ""},
		{"[2, {a: 1.0}]", `[2.0, {"a": 1}]`, ""},
		{"{a: [1, 2]}", `"{\"a\": [1.0, 2]}"`, ""},
		{"[2, 3]", `[2]`, "expected [2,3], got [2]"},
		{"{a: 1, b: 2}", `{"a": 1, "c": 2}`, `expected {"a":1,"b":2}, got {"a":1,"c":2}`},
		{"{a: 1}", `{"a": 2}`, `expected {"a":1}, got {"a":2}`},
		{"null", `null`, ""},
		{"null", none, "expected null, there is no value"},
		{"{absent: true}", none, ""},
		{"{absent: true}", `[1]`, "expected no value, got [1]"},
		{"{absent: false}", none, "expected a value, there is none"},
		{"{absent: false}", `null`, ""},
		{"{contains: [a, b]}", `"xa"`, `expected a text that contains "b", got "xa"`},
		{"{contains: '\"k\":1'}", `{"k": 1}`, ""},
		{"{contains: x}", none, `expected a text that contains "x", there is no value`},
		{"{never: [a]}", `"bab"`, `expected a text without "a", got "bab"`},
		{"{pattern: '^a+$'}", `"aab"`, `expected a text that matches ^a+$, got "aab"`},
		{"{pattern: '^a+$'}", none, "expected a text that matches ^a+$, there is no value"},
		{"{above: 1, below: 2.5}", `" 2 "`, ""},
		{"{above: 1}", `1`, "expected a number above 1, got 1"},
		{"{below: 2}", `2.0`, "expected a number below 2, got 2.0"},
		{"{above: 1}", `"many"`, `expected a number, got "many"`},
		{"{above: 1}", `"NaN"`, `expected a number, got "NaN"`},
		{"{below: 1}", `true`, "expected a number, got true"},
		{"{schema: {type: object, required: [a]}}", `"{\"a\": 1}"`, ""},
		{"{above: 1}", none, "expected a value, there is no value"},
		{"{equal: 1, never: '1'}", `1`, `expected a text without "1", got "1"`},
	} {
		m := readExpected(t, "{output: "+c.expect+"}").Output
		var v any
		if c.value != none {
			var err error
			if v, err = jsonvalue.Parse([]byte(c.value)); err != nil {
				t.Fatal(err)
			}
		}
		failed := m.Check("output", v, c.value != none)
		if got := list(failed); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.expect, c.value, got, c.want)
		}
		for _, f := range failed {
			if f.What != "output" || f.Pos.Line != 3 || f.Actual != nil && f.At != m.Pos {
				t.Errorf("%s of %q: %+v", c.expect, c.value, f)
			}
		}
	}
	schema := readExpected(t, "{output: {schema: {type: object, required: [a]}}}").Output
	why := `expected a value of the schema, got "{}": `
	if got := list(schema.Check("output", "{}", true)); !strings.HasPrefix(got, why) {
		t.Errorf("a value that does not have the schema: %s", got)
	}
	long := strings.Repeat("é", 200) + "here"
	never := readExpected(t, "{output: {never: here}}").Output
	got := list(never.Check("output", long, true))
	if !strings.Contains(got, "…é") || !strings.HasSuffix(got, `éhere"`) {
		t.Errorf("a text that is far back: %s", got)
	}
}

// TestSequence compares the things that happened with those that a case expects.
func TestSequence(t *testing.T) {
	args := func(text string) any {
		v, err := jsonvalue.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	happened := []Event{
		{Name: "read", Full: "team/read", Args: args(`{"path": "a.md", "lines": [1, 5]}`)},
		{Name: "write", Args: args(`{"path": "b.md"}`)},
		{Name: "read", Args: args(`{"path": "c.md"}`)},
	}
	for expect, want := range map[string]string{
		"[read, write, read]":                                   "",
		"[team/read, {write: {path: b.md}}, read]":              "",
		"[read, write]":                                         "expected nothing more, got read (entry 3 of 2)",
		"[read, write, read, ask]":                              "expected ask, got nothing more (entry 4 of 4)",
		"[write, read, read]":                                   "expected write, got read (entry 1 of 3)",
		"[]":                                                    "expected nothing more, got read (entry 1 of 0)",
		"{contains: [read, read]}":                              "",
		"{contains: [write, {read: {path: c.md}}]}":             "",
		"{contains: [{read: {'lines[1]': {above: 4}}}]}":        "",
		"{contains: [{read: {path: c.md}}, write]}":             "expected write after read, got read, write, read",
		"{contains: [{write: {path: x}}]}":                      `write: argument path: expected "x", got "b.md"`,
		"{contains: write, never: ask}":                         "",
		"{never: [{read: {path: z.md}}, {read: {path: c.md}}]}": "expected no read, got read, write, read",
		"[read, {write: {'lines[0]': 1}}, read]": "write: argument lines[0]: expected 1, there is no value" +
			" (entry 2 of 3)",
	} {
		s := readExpected(t, "{calls: "+expect+"}").Calls
		failed := s.Check("calls", happened, nil)
		if got := list(failed); got != want {
			t.Errorf("%s: %q, want %q", expect, got, want)
		}
		for _, f := range failed {
			if f.Want == f.Got && f.Actual != nil {
				t.Errorf("%s: %+v would replace what is not shown", expect, f)
			}
		}
	}
	isTeam := func(e *Event) bool { return e.Full != "" }
	s := readExpected(t, "{calls: {equal: [read], never: [ask]}}").Calls
	if got := list(s.Check("calls", happened, isTeam)); got != "" {
		t.Errorf("of the events that count: %s", got)
	}
	s = readExpected(t, "{calls: {contains: [read]}}").Calls
	if got := list(s.Check("calls", nil, nil)); got != "expected read, got nothing" {
		t.Errorf("nothing happened: %s", got)
	}
	question := readExpected(t, "{questions: [ask: {contains: Page?}]}").Questions
	asked := []Event{{Name: "ask", Text: "Whom?"}}
	want := `expected a text that contains "Page?", got "Whom?" (entry 1 of 1)`
	if got := list(question.Check("questions", asked, nil)); got != want {
		t.Errorf("a question with another text: %s", got)
	}
}

// TestTextsOf compares the requests of a node with what is expected of one of them, or of each.
func TestTextsOf(t *testing.T) {
	sent := []string{"the first\n", "the second"}
	for expect, want := range map[string]string{
		"the second":                       "",
		"{contains: second, never: third}": "",
		"{contains: the, never: second}":   `expected a text without "second", got "the second"`,
		"third":                            `expected "third", got "the first" (none of 2 requests fits; this is the first)`,
		"[the first, {contains: sec}]":     "",
		"[the first, third]":               `expected "third", got "the second"`,
		"[the first]":                      "expected 1 request, got 2",
	} {
		texts := readExpected(t, "{prompts: {n: "+expect+"}}").Prompts[0]
		failed := texts.Check("prompts", sent)
		if got := list(failed); got != want {
			t.Errorf("%s: %q, want %q", expect, got, want)
		}
		for _, f := range failed {
			rewrites := expect == "[the first, third]"
			if !strings.HasPrefix(f.What, "prompts.n") || (f.Actual != nil) != rewrites {
				t.Errorf("%s: %+v", expect, f)
			}
		}
		if got := list(texts.Check("prompts", nil)); got != "expected a request, the node sent none" {
			t.Errorf("%s, without a request: %q", expect, got)
		}
	}
}

// TestLookup finds values by their paths.
func TestLookup(t *testing.T) {
	v, err := jsonvalue.Parse([]byte(`{"a": {"b": [[1, 2], {"c": "d"}]}, "x.y": 3, "": 4}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a.b[0][1]": "2", "a.b[1].c": "d", "x.y": "3", "": "4", "a.b[0]": "[1,2]",
		"a.b[2]": "none", "a.c": "none", "a[0]": "none", "a.b.c": "none", "a.b[1].c.d": "none", "x": "none",
		"a..b": "none", ".a": "none",
		"a.b[-1]": "none", "a.b[0": "none", "a.b[0]c": "none", "a.b[x]": "none", "a.b[]": "none",
	} {
		got := "none"
		if found, ok := Lookup(v, path); ok {
			got = Text(found)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
	if first, ok := Lookup([]any{"a"}, "[0]"); !ok || first != "a" {
		t.Errorf("an index alone: %v, %v", first, ok)
	}
}

// TestEncodeExpectations writes each form of an expectation so that it is read as the same.
func TestEncodeExpectations(t *testing.T) {
	for _, expect := range []string{
		"{output: {equal: 1, absent: false}}",
		"{output: {equal: 1, absent: true}}",
		"{output: {equal: {contains: x}}}",
		"{output: {equal: a, never: [b]}}",
		"{output: {above: -0.5, below: 10000000000000000000000}}",
		"{output: {pattern: '^x: #$', schema: {type: [object, 'null']}}}",
		"{path: []}",
		"{path: {equal: [], never: [a]}}",
		"{calls: [a: {}]}",
		"{questions: {contains: [a: {equal: 'yes'}, b: 3]}}",
		"{prompts: {a: [], b: [x], c: {never: x}}}",
		"{state: {'a[0].b': [], c: {}, d: null, e: 'no', f: '07', g: 1e3}}",
	} {
		before := readExpected(t, expect)
		text, err := Encode([]*Case{{Name: "a", Expect: before}})
		if err != nil {
			t.Errorf("%s: %v", expect, err)
			continue
		}
		f, err := Read("b.test.yaml", text)
		if err != nil {
			t.Errorf("%s: %v\n%s", expect, err, text)
			continue
		}
		again, err := Encode(f.Cases)
		if err != nil || string(again) != string(text) {
			t.Errorf("%s is written as\n%s\nand then as\n%s%v", expect, text, again, err)
		}
		if diff := cmp.Diff(before, f.Cases[0].Expect, comparable...); diff != "" {
			t.Errorf("%s: %s\n%s", expect, diff, text)
		}
	}
}

// TestReplaceEverything replaces every value of a file that can be replaced: it is read with the new ones.
func TestReplaceEverything(t *testing.T) {
	d := strictyaml.Read("", []byte(everything))
	values := []any{"plain", "two\nlines\n", "a: #b", int64(7), nil, []any{"x", []any{}}, jsonvalue.NewObject()}
	replaced := 0
	for line := range strings.Count(everything, "\n") {
		for col := range 60 {
			at := strictyaml.Pos{Line: line + 1, Col: col + 1}
			if findValue(d.Root, nil, at, false) == nil {
				continue
			}
			v := values[replaced%len(values)]
			got, n, err := Replace([]byte(everything), []Failure{{At: at, Actual: v}})
			switch {
			case v == nil:
				if n != 0 || err != nil || string(got) != everything {
					t.Errorf("%v: without a value, %d, %v", at, n, err)
				}
			case err != nil:
				if n != 0 || string(got) != everything || !slices.Contains(strings.Fields(err.Error()), "hand") {
					t.Errorf("%v: %d, %v", at, n, err)
				}
				continue
			case n != 1 || strings.Count(string(got), "tests:") != 1:
				t.Errorf("%v: %d written\n%s", at, n, got)
			}
			replaced++
		}
	}
	if replaced < 100 {
		t.Errorf("%d values could be replaced", replaced)
	}
}
