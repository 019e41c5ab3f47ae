package script

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "\n", "f:1:1: error: the transcript is empty; it must be a list of replies"},
		{"comment", "# hi\n", "f:1:1: error: the transcript is empty; it must be a list of replies"},
		{"empty list", "[]", "f:1:1: error: the list of replies is empty"},
		{"mapping", "replies: []", "f:1:1: error: a transcript must be a list, not a mapping"},
		{"text", "hello", `f:1:1: error: a transcript must be a list, not a single value`},
		{"syntax", "- text: [", "f:2:1: error: while parsing a flow node: did not find expected node content"},
		{"two documents", "- text: a\n---\n- text: b\n", "f:2:1: error: the file contains more than one YAML document (remove everything from the second --- on)"},
		{"control character", "- text: \x01\n", "f:1:9: error: control character U+0001 is not allowed (remove it, or write it as an escape in double quotes)"},
		{"all at once", "- txt: a\n- text: {{a}}\n  match: []\n- turn: 0\n  text: b\n  text: c\n- error: {clas: x, status: 4}\n- hello\n", strings.Join([]string{
			`f:1:3: error: unknown key "txt" in a reply (did you mean text?)`,
			"f:2:9: error: [1].text: invalid type: map, expected a string (quote it: \"{{a}}\"; YAML reads braces without quotes as a map)",
			`f:3:10: error: an empty match fits every request; leave it out`,
			`f:4:9: error: expected a whole number of at least 1, found "0"`,
			"f:6:3: error: [2]: duplicate key `text` (first on line 5)",
			`f:7:11: error: unknown key "clas" in error (did you mean class?)`,
			`f:7:28: error: expected a whole number of at least 400, found "4"`,
			`f:8:3: error: expected a reply as a mapping, found "hello"`,
		}, "\n")},
		{"says nothing", "- match: a", "f:1:3: error: the reply is empty; set text, reasoning, tool_calls or error"},
		{"says too much", "- {error: x, text: a}", "f:1:3: error: the reply has an error and something else; a failure is the whole reply"},
		{"texts", "- text: [a]\n  reasoning: {a: b}\n- match: ['', [a]]\n  text: a", strings.Join([]string{
			"f:1:9: error: expected text, found a list",
			"f:2:14: error: expected text, found a mapping; put quotes around text that starts with a brace",
			"f:3:11: error: an empty match fits every request; leave it out",
			"f:3:15: error: expected text, found a list",
		}, "\n")},
		{"numbers", "- {text: a, delay_ms: -1, usage: {input: 1.5, out: 3}, repeat: yes}", strings.Join([]string{
			`f:1:23: error: expected a whole number of at least 0, found "-1"`,
			`f:1:42: error: expected a whole number of at least 0, found "1.5"`,
			`f:1:47: error: unknown key "out" in usage (did you mean output?)`,
			`f:1:64: error: expected true or false, found "yes"`,
		}, "\n")},
		{"usage", "- {text: a, usage: 3}", `f:1:20: error: expected usage as a mapping, found "3"`},
		{"calls", "- tool_calls: {name: f}\n- tool_calls: [{args: {}}, f, {name: f, args: [1]}, {name: f, args: }]", strings.Join([]string{
			"f:1:15: error: tool_calls must be a list, not a mapping",
			"f:2:16: error: the tool call has no name",
			`f:2:28: error: expected a tool call as a mapping, found "f"`,
			"f:2:47: error: expected the arguments as a mapping, found a list",
			"f:2:69: error: expected the arguments as a mapping, found nothing",
		}, "\n")},
		{"arguments", "- tool_calls:\n  - name: f\n    args:\n      a: .inf\n      b: !!binary aGk=\n      [c]: 1\n      a: 2\n      <<: {d: 1}\n      e: 99999999999999999999_9\n", strings.Join([]string{
			"f:4:10: error: the number .inf has no form in JSON; put quotes around it if it is text",
			"f:5:10: error: [0].tool_calls[0].args.b: unsupported tag `!!binary`",
			"f:6:7: error: [0].tool_calls[0].args: invalid type: sequence, expected a string key",
			"f:7:7: error: [0].tool_calls[0].args: duplicate key `a` (first on line 4)",
			"f:8:7: error: merge keys are not supported here",
		}, "\n")},
		{"cycle", "- tool_calls:\n  - name: f\n    args: &a {b: *a}\n", "f:3:18: error: [0].tool_calls[0].args.b: alias *a refers to a value that contains it"},
		{"errors", "- error:\n- error: []\n- error: {}\n- error: {class: odd}\n", strings.Join([]string{
			"f:1:9: error: expected the text of an error, or a mapping with its class or status",
			"f:2:10: error: expected error as a mapping, found a list",
			"f:3:10: error: the error needs a class or a status",
			`f:4:18: error: unknown class "odd"; the classes are auth, rate_limited, overloaded, context_length, bad_request, network, timeout, server`,
		}, "\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.in))
			var e *LoadError
			if !errors.As(err, &e) {
				t.Fatalf("error is %v", err)
			}
			if d := cmp.Diff(strings.Split(c.want, "\n"), strings.Split(err.Error(), "\n")); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
		})
	}
}

func TestAliasesAndNumbers(t *testing.T) {
	tr := parse(t, `
- match: &m [x]
  tool_calls: [{name: f, args: &a {n: 1_000, o: 0o17, h: -0x1F, p: +5, f: .5, e: 1e5, "s": "1", true: 2, é: "<&>"}}]
- match: *m
  tool_calls: [{name: f, args: {again: *a}}]
`)
	const first = `{"n":1000,"o":15,"h":-31,"p":5,"f":0.5,"e":1e5,"s":"1","true":2,"é":"<&>"}`
	for i, want := range []string{first, `{"again":` + first + `}`} {
		if got := string(tr.entries[i].calls[0].Args); got != want {
			t.Errorf("arguments %d are %s, want %s", i, got, want)
		}
	}
}

func TestBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("- tool_calls:\n  - name: f\n    args:\n      a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := 1; i < 9; i++ {
		n, m := string(rune('0'+i)), string(rune('0'+i-1))
		b.WriteString("      a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+m+",", 10), ",") + "]\n")
	}
	_, err := Parse("f", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "too much text") || len(err.Error()) > 200 {
		t.Errorf("error is %v", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	path := filepath.Join(dir, "t.yaml")
	if err := os.WriteFile(path, []byte("- text: a\n- {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || err.Error() != path+":2:3: error: the reply is empty; set text, reasoning, tool_calls or error" {
		t.Errorf("error is %v", err)
	}
	if err := os.WriteFile(path, []byte("- text: a"), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, tr, user("x")); got != "a" {
		t.Errorf("got %q", got)
	}
}

// FuzzParse: any text is a transcript or has faults, and a transcript whose
// entries are written again stays the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"- text: a\n", "- match: [a, b]\n  turn: 2\n  request: '12'\n  reasoning: |\n    a\n     b\n  repeat: true\n  usage: {input: 1}\n  stop: length\n  text: ''\n",
		"- tool_calls:\n  - {id: x, name: f, args: {a: [1, 1.10, ~, true, {b: c}], \"é\\n\": '\"'}}\n", "- error: boom\n- error: {class: network, code: reset, retry_after_ms: 3, message: m}\n",
		"- &a {text: b}\n- *a\n", "- tool_calls: [{name: f, args: &a {b: *a}}]\n", "- text: \"\\u2028 \\t x\\n\\n\"\n", "[]", "a: b", "- {text: {{x}}}", "- \t", "\ufeff- text: a", "- text: >+\n\n  a\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Parse("f", data)
		var e *LoadError
		if err != nil && (!errors.As(err, &e) || len(e.Findings) == 0) {
			t.Fatalf("error %v has no faults", err)
		}
		if err != nil {
			return
		}
		for _, e := range tr.entries {
			kept := &entry{turn: e.turn, digest: e.digest, text: e.text, reasoning: e.reasoning, calls: e.calls, err: e.err, usage: e.usage, stop: e.stop}
			if e.err != nil {
				kept = &entry{turn: e.turn, digest: e.digest, err: e.err}
			}
			if _, err := renderEntry(kept, nil); err != nil {
				t.Errorf("%+v: %v", kept, err)
			}
		}
	})
}
