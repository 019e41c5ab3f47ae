package flow

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

// oneModel is a Models with a single one.
type oneModel struct{ model llm.Model }

func (oneModel) IsKnown(_, _ string) bool { return true }

func (m oneModel) Open(context.Context, string, string) (llm.Model, error) { return m.model, nil }

func (oneModel) Facts(_, _ string) ModelFacts { return ModelFacts{} }

// Of all effects of a run, the replies of models are found by their names: scripts may print what
// looks like one.
func TestIsReply(t *testing.T) {
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", `name: x
model: script:t
start: look
nodes:
  look: {type: script, script: look.sh, next: say}
  say:
    type: llm
    prompt: p
    output_schema: {type: object}
    next: model
  model: {type: script, script: look.sh, next: done}
  done: {type: end}
`)
	writeCaseFile(t, dir, "look.sh", `echo '{"id": "1", "text": "not said", "usage": {}}'`)
	transcript, err := script.Parse("t", []byte("- text: no JSON\n- text: no JSON either\n- text: '{\"a\": 1}'\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(dir, Host{Models: oneModel{transcript}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	store := journal.NewMemory()
	in := a.Input("")
	in.Thread = "t"
	if _, err := (&graph.Runner{Graph: g, Store: store}).Invoke(ctx, in); err != nil {
		t.Fatal(err)
	}
	names := map[int64]bool{}
	effects := 0
	for e, err := range history.Entries(ctx, store, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == journal.KindEffect {
			effects++
			names[e.Seq] = IsReply(e.ID)
		}
	}
	var said []string
	for r, err := range store.Read(ctx, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if names[r.Seq] {
			reply, err := ReadReply(r.Data)
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, reply.Text)
		}
	}
	if diff := cmp.Diff([]string{"no JSON", "no JSON either", `{"a": 1}`}, said); diff != "" || effects != 5 {
		t.Errorf("%d effects, replies (-want +got):\n%s", effects, diff)
	}
	if IsReply("") || IsReply("0.model attempt 1.0") {
		t.Error("a task is taken for a reply")
	}
	if _, err := ReadReply([]byte("[")); err == nil {
		t.Error("damaged data is read as a reply")
	}
}

// The engine's text of a failure, as journals keep it, reads like the error did.
func TestPlainReason(t *testing.T) {
	broke := errors.New("it broke")
	node := &graph.NodeError{Node: "boom", Step: 3, Attempt: 2, Err: broke}
	inner := &graph.NodeError{Node: "call", Err: &graph.StepError{Path: "call/", Tasks: []*graph.NodeError{{Path: "call/", Node: "boom", Err: broke}}}}
	tests := map[string]struct {
		err  error
		want string
	}{
		"one task":    {&graph.StepError{Tasks: []*graph.NodeError{node}}, "at node 'boom': it broke"},
		"two tasks":   {&graph.StepError{Step: 3, Tasks: []*graph.NodeError{node, node}}, "2 tasks of step 3 failed:\n  at node 'boom': it broke\n  at node 'boom': it broke"},
		"below":       {inner, "at node 'call': at node 'call/boom': it broke"},
		"exit code":   {errors.New("Script 's.sh' failed with exit code Some(3):\nno"), "Script 's.sh' failed with exit code 3:\nno"},
		"signal":      {errors.New("Script 's.sh' failed with exit code None:\n"), "Script 's.sh' was ended by a signal:\n"},
		"other words": {broke, "it broke"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := PlainReason(test.err.Error()); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestParseValue(t *testing.T) {
	tests := map[string]string{ // as JSON; "": it is refused
		"3": "3", "1.0": "1.0", "true": "true", "null": "null", " 7 ": "7", "017": `"017"`, "yes": `"yes"`, "": `""`,
		"a text": `"a text"`, " a text ": `" a text "`, "Note: this": `"Note: this"`, "- no list": `"- no list"`, "*stars*": `"*stars*"`,
		"# a title": `"# a title"`, "two\nlines: 1": `"two\nlines: 1"`, `"3"`: `"3"`, "'a''b'": `"a'b"`, `"open`: `"\"open"`, "'tis": `"'tis"`,
		"[a, 2, {b: c}]": `["a",2,{"b":"c"}]`, "{z: 1, a: [x]}": `{"z":1,"a":["x"]}`, "[a": "", "{a: [}": "", `["a"] and more`: "",
	}
	for text, want := range tests {
		v, err := ParseValue(text)
		got := ""
		if err == nil {
			got = jsonvalue.Compact(v)
		}
		if got != want {
			t.Errorf("%q is read as %s (%v), want %s", text, got, err, want)
		}
	}
}

// emptyModel ends its stream with a reply that holds nothing, as a server does
// whose stream has no choices.
type emptyModel struct{}

func (emptyModel) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Done: &llm.Reply{}}, nil) }
}

// A reply that holds nothing is a failure of the server, for llm nodes as for agents.
func TestAnEmptyReplyIsAFailure(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
model: m
start: a
nodes:
  a: {type: llm, prompt: hello, state_updates: {said: "{{output}}"}, fallback: f, next: e}
  e: {type: end, output: "done"}
  f: {type: end, output: "failed: {{said}}"}
`})
	res, err := r.driveIn(Host{Models: oneModel{emptyModel{}}})
	if out := OutcomeOf(res).Output; err != nil || !strings.HasPrefix(out, "failed:") || !strings.Contains(out, "the reply is empty") {
		t.Errorf("%q, %v", out, err)
	}
}
