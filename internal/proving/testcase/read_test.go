package testcase

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm/script"
)

// everything uses every key of the format.
const everything = `
prompt: shared
variables: {team: shop, level: 3}
nodes:
  classify: {severity: high}
  reply: We are on it.
answers: {page: "yes"}
tests:
  - name: short
  - name: long
    prompt: Checkout is down
    variables: {level: 4}
    initial_state: {report: text, list: [1, 2.0]}
    nodes:
      reply: [first, {as: data}, [a, list]]
    replies:
      - plain text
      - match: invoice
        node: find
        turn: 1
        after: [a, b]
        repeat: true
        delay_ms: 5
        reasoning: because
        text: found
        tool_calls:
          - {name: fs_read, args: {path: a.md}}
        usage: {input: 10, output: 2}
      - error: {status: 429, message: slow down}
    tools:
      one: result
      data: {rows: [1]}
      many:
        - {match: a.md, text: A}
        - {error: it broke}
    real: [fs_read, "list_*"]
    searches:
      lookup: [a text, {source: a.md, text: another}]
      documents: []
    answers:
      note: [one, two]
      user__ask: [[a, b]]
    faults: {owner: fail, reply: [none, timeout, malformed]}
    expect:
      status: failed
      exit_code: 65
      error: {contains: broke}
      path: [classify, reply]
      state:
        summary: text
        list[0]: {above: 0, below: 2}
        "owner.name": {absent: true}
        deep: {equal: {contains: x}}
      prompts:
        reply: {contains: down, never: [up, upper]}
        classify: [{pattern: "^Cl.*"}, exact text]
      instructions: {classify: {contains: judge}}
      calls:
        - fs_read: {path: a.md}
        - one
      questions: {contains: [page: {contains: Page?}, note], never: user__ask}
      model_calls: {below: 5}
      cost: {below: 0.01}
      output: {schema: {type: object}}
`

func TestRead(t *testing.T) {
	f, err := Read("a.test.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Cases) != 2 {
		t.Fatal(len(f.Cases))
	}
	short, long := f.Cases[0], f.Cases[1]
	if short.Prompt != "shared" || len(short.Nodes) != 2 || short.Pos.Line != 9 {
		t.Errorf("%+v", short)
	}
	names := []string{}
	for _, n := range long.Nodes {
		names = append(names, n.Node)
	}
	if got := strings.Join(names, " "); got != "reply classify" {
		t.Errorf("nodes %s: what the case has comes first, and the file adds the rest", got)
	}
	if want := []strictyaml.Pair{{Key: "level", Value: "4"}, {Key: "team", Value: "shop"}}; !cmp.Equal(long.Variables, want) {
		t.Errorf("variables %v", long.Variables)
	}
	if got := long.Nodes[0].Outputs; len(got) != 3 || got[0] != "first" || Text(got[1]) != `{"as":"data"}` || Text(got[2]) != `["a","list"]` {
		t.Errorf("outputs %v", got)
	}
	r := long.Replies[1]
	if r.Node != "find" || r.Turn != 1 || !r.Repeat || string(r.Calls[0].Args) != `{"path":"a.md"}` || long.Replies[0].Text != "plain text" || long.Replies[2].Err == nil {
		t.Errorf("replies %+v", long.Replies)
	}
	want := []ToolStub{
		{Tool: "one", Results: []ToolResult{{Text: "result"}}},
		{Tool: "data", Results: []ToolResult{{Text: `{"rows":[1]}`, JSON: true}}},
		{Tool: "many", Results: []ToolResult{{Match: "a.md", Text: "A"}, {Text: "it broke", Error: true}}},
	}
	if diff := cmp.Diff(want, long.Tools, cmpopts.IgnoreTypes(strictyaml.Pos{})); diff != "" {
		t.Error(diff)
	}
	e := long.Expect
	if e.Status != "failed" || *e.ExitCode.Equal != int64(65) || e.Path.Exact[1].Name != "reply" || e.Calls.Exact[0].Args[0].Path != "path" ||
		e.Questions.Contains[0].Text.Contains[0] != "Page?" || e.Questions.Never[0].Name != "user__ask" || !e.Prompts[1].InOrder || *e.Cost.Below != 0.01 {
		t.Errorf("%+v", e)
	}
	if deep := e.State[3]; Text(*deep.Equal) != `{"contains":"x"}` {
		t.Errorf("deep %+v", deep)
	}
}

// comparable ignores what Encode does not write: positions, and that a prompt was set.
var comparable = []cmp.Option{
	cmpopts.IgnoreTypes(strictyaml.Pos{}), cmpopts.IgnoreUnexported(Setup{}, Matcher{}), cmpopts.IgnoreTypes(&jsonschema.Resolved{}), cmpopts.IgnoreFields(script.Reply{}, "Line"),
	cmp.Comparer(func(a, b *jsonvalue.Object) bool { return jsonvalue.Equal(a, b) }),
	cmp.Comparer(func(a, b *regexp.Regexp) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	}),
}

func TestEncode(t *testing.T) {
	f, err := Read("a.test.yaml", []byte(everything))
	if err != nil {
		t.Fatal(err)
	}
	f.Cases[0].Prompt = "several lines\n  indented\n\nand # no comment: here\n"
	f.Cases[0].Nodes[0].Outputs = []any{"- item", "", "null", "{{a}}", "trailing \nspace", "tab\tand\nline", "3", int64(3), 3.5, true, nil}
	text, err := Encode(f.Cases)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read("b.test.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(f.Cases, again.Cases, comparable...); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
}

func TestReadErrors(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"empty":     {"", "a.test.yaml:1:1: error: the file is empty; it must have a list `tests`"},
		"no tests":  {"prompt: x\n", "a.test.yaml:1:1: error: the file has no `tests` (add `tests:` with a list of cases)"},
		"misspelt":  {"tests:\n  - name: a\n    promt: x\n", "a.test.yaml:3:5: error: unknown key \"promt\" in a test (did you mean prompt?)"},
		"no name":   {"tests:\n  - prompt: x\n", "a.test.yaml:2:5: error: the test has no name (add `name: ...`)"},
		"two names": {"tests:\n  - name: a\n  - name: a\n", "a.test.yaml:3:5: error: the name \"a\" is that of another case, in line 2"},
		"several at once": {"tests:\n  - name: a\n    expect: {status: don, path: 3x, pat: []}\n    faults: {x: crash}\n",
			"a.test.yaml:3:22: error: unknown status \"don\"; it is one of done, failed, waiting (did you mean done?)\n" +
				"a.test.yaml:3:37: error: unknown key \"pat\" in expect (did you mean path?)\n" +
				"a.test.yaml:4:17: error: unknown fault \"crash\"; the faults are fail, timeout, malformed, none"},
		"pattern": {"tests:\n  - name: a\n    expect: {output: {pattern: \"(\"}}\n", "a.test.yaml:3:32: error: the pattern is not a regular expression: error parsing regexp: missing closing ): `(` (the syntax is that of Go: https://pkg.go.dev/regexp/syntax)"},
		"path":    {"tests:\n  - name: a\n    expect: {state: {\"a[x]\": 1}}\n", "a.test.yaml:3:22: error: the path \"a[x]\" has an index that is not a number in brackets (write key.member[0])"},
		"reply":   {"tests:\n  - name: a\n    replies: [{node: x}]\n", "a.test.yaml:3:15: error: the reply is empty; set text, reasoning, tool_calls or error"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("a.test.yaml", []byte(test.text))
			if err == nil || err.Error() != test.want {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

// FuzzRead writes what it has read, and reads it again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("tests: [{name: a, nodes: {x: |\n  text}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Read("a.test.yaml", text)
		if err != nil {
			return
		}
		written, err := Encode(file.Cases)
		if err != nil {
			t.Skip(err) // a text that YAML cannot hold
		}
		again, err := Read("b.test.yaml", written)
		if err != nil {
			t.Fatalf("%v\n%s", err, written)
		}
		if len(again.Cases) != len(file.Cases) {
			t.Errorf("%d cases, want %d", len(again.Cases), len(file.Cases))
		}
	})
}
