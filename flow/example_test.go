package flow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
)

// replays is a flow.Models that knows transcripts only. A program opens its
// providers here.
type replays struct{}

func (replays) IsKnown(_, id string) bool            { return strings.HasPrefix(id, "script:") }
func (replays) Facts(string, string) flow.ModelFacts { return flow.ModelFacts{} }
func (replays) Open(_ context.Context, dir, id string) (llm.Model, error) {
	return script.Open(filepath.Join(dir, strings.TrimPrefix(id, "script:")))
}

// An agent's directory becomes a graph, and a prompt the input of its run.
func ExampleLoad() {
	hello, err := flow.Load("../examples/hello", flow.Host{Models: replays{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := hello.CompileGraph()
	if err != nil {
		fmt.Println(err) // what the validator refuses, or what cannot run
		return
	}
	in := hello.Input("Ada")
	in.Topics = graph.TopicEmit
	for ev, err := range (&graph.Runner{Graph: g}).Run(context.Background(), in) {
		if err != nil {
			fmt.Println(hello.Explain(err))
			return
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if done, ok := b.Value.(agent.ReplyDone); ok {
				fmt.Println("tokens:", done.Usage.Input, "in,", done.Usage.Output, "out")
			}
		case graph.RunEnded:
			fmt.Println(flow.OutcomeOf(b.Result).Output)
		}
	}
	// Output:
	// tokens: 31 in, 2 out
	// Good morning, Ada!
}

// A run that asks waits in its store. A process that loads the agent again can answer.
func ExampleAgent_Input() {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const text = `
name: publish
start: ask
nodes:
  ask:
    type: approval
    question: "Publish {{initial_prompt}}?"
    options: ["yes"]
    routes: {"yes": done}
    on_other: done
    state_updates: {said: "{{choice}}"}
  done: {type: end, output: "{{said}}"}
`
	if err := os.WriteFile(filepath.Join(dir, "graph.yaml"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	// Each call is a process of its own: it opens the store and loads the agent.
	process := func(drive func(r *graph.Runner, a *flow.Agent) (graph.Result, error)) graph.Result {
		st, err := sqlite.Open(filepath.Join(dir, "runs.db"))
		if err != nil {
			fmt.Println(err)
			return graph.Result{}
		}
		defer st.Close()
		a, err := flow.Load(dir, flow.Host{})
		if err != nil {
			fmt.Println(err)
			return graph.Result{}
		}
		g, err := a.CompileGraph()
		if err != nil {
			fmt.Println(err)
			return graph.Result{}
		}
		res, err := drive(&graph.Runner{Graph: g, Store: st}, a)
		if err != nil {
			fmt.Println(a.Explain(err))
		}
		return res
	}
	res := process(func(r *graph.Runner, a *flow.Agent) (graph.Result, error) {
		in := a.Input("the notes")
		in.Thread = "publish-1"
		return r.Invoke(ctx, in)
	})
	q := res.Questions[0]
	fmt.Println(res.Status, q.ID, q.Prompt, q.Options)

	res = process(func(r *graph.Runner, _ *flow.Agent) (graph.Result, error) {
		return r.InvokeResume(ctx, graph.Resume{Thread: "publish-1", Answers: []graph.Answer{{ID: q.ID, Value: "yes"}}})
	})
	fmt.Println(res.Status, flow.OutcomeOf(res).Output, string(flow.StateJSON(res.State)))
	// Output:
	// waiting ask Publish the notes? [yes]
	// done yes {"initial_prompt":"the notes","said":"yes"}
}

// A file can be checked without a directory around it.
func ExampleValidateFile() {
	f, err := flow.ParseGraph("graph.yaml", []byte(`
name: sketch
start: draft
nodes:
  draft: {type: llm, prompt: "Sum up {{text}}", next: done, promt: x}
  done: {type: end, output: ok}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, list := range [][]strictyaml.Finding{f.Findings, check.ValidateFile(f, check.Context{}), check.ProvePlaceholders(f), check.AdviseFile(f, nil)} {
		for _, found := range list {
			fmt.Println(found)
		}
	}
	// Output:
	// graph.yaml:5:61: warning: [draft] unknown key `nodes.draft.promt` is ignored (did you mean `prompt`?)
	// graph.yaml:5:38: warning: [draft] `prompt` reads {{text}}, but nothing sets `text` on the path draft (give it a value in initial_state: no node sets it)
}

// A Redactor removes the values that it was given, and those of variables whose names say that they are secrets.
func ExampleNewRedactor() {
	redactor := flow.NewRedactor("hunter2-hunter2")
	redactor.AddNamed("MAIL_TOKEN", "t0ps3cret")
	redactor.AddNamed("CITY", "Valletta")
	fmt.Println(redactor.Text("hunter2-hunter2 and t0ps3cret in Valletta"))
	// Output: [redacted] and [redacted] in Valletta
}

// What a person types becomes a value as graph.yaml would read it.
func ExampleParseValue() {
	for _, text := range []string{"3", "3.0", "true", "[a, 1]", "two words", `"3"`} {
		v, err := flow.ParseValue(text)
		fmt.Printf("%T %v %v\n", v, v, err)
	}
	// Output:
	// int64 3 <nil>
	// float64 3 <nil>
	// bool true <nil>
	// []interface {} [a 1] <nil>
	// string two words <nil>
	// string 3 <nil>
}
