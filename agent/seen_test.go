package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// seeTool reads a file for the model, and askTool says how the conversation has seen it.
func seeTool(texts map[string]string) tool.Tool {
	return tool.Tool{Name: "see", Effect: tool.ReadOnly, Parallel: true, Sees: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		name := strings.Trim(string(c.Args), `{"f:}`)
		r := tool.TextResult("read " + name)
		r.Seen = []tool.SeenFile{{Path: name, Hash: "hash of " + texts[name], Lines: "sums", Stamp: "1", Text: texts[name]}}
		return r, nil
	}}
}

var askTool = tool.Tool{Name: "ask", Effect: tool.ReadOnly, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
	if c.Seen == nil {
		return tool.TextResult("no one reads"), nil
	}
	f := c.Seen(strings.Trim(string(c.Args), `{"f:}`))
	if f == nil {
		return tool.TextResult("not seen"), nil
	}
	text, err := json.Marshal(f)
	return tool.TextResult(string(text)), err
}}

// outcomes returns what the calls of ask have said in a conversation.
func outcomes(s graph.State) (list []string) {
	for _, m := range agent.History(s) {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && r.Name == "ask" {
				var said struct{ Output string }
				_ = json.Unmarshal([]byte(llm.Message{Parts: r.Content}.Text()), &said) // otherwise it is empty
				list = append(list, said.Output)
			}
		}
	}
	return list
}

// What a conversation has seen of files is part of it: later calls know it, in later turns and drives too, until the conversation is cleared.
func TestSeenFiles(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"a": "one", "s": "hunter2"}
	store := journal.NewMemory()
	turn := func(set []graph.Write, replies ...llm.Message) graph.State {
		t.Helper()
		g := compile(t, agent.Config{Model: countReplies(append(replies, say("Done."))...), Tools: []tool.Tool{seeTool(texts), askTool},
			Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }})
		res, err := (&graph.Runner{Store: store, Graph: g}).Invoke(t.Context(), graph.Input{Thread: "t", Set: set})
		if err != nil || res.Status != graph.Done {
			t.Fatal(res.Status, err)
		}
		return res.State
	}
	const one, secret = `{"path":"a","sha256":"hash of one","lines":"sums","stamp":"1"}`, `{"path":"s","stamp":"1"}`
	turn(agent.Turn("Go."), call("1", "ask", `{"f":"a"}`), both(call("2", "see", `{"f":"a"}`), call("3", "see", `{"f":"s"}`), call("4", "ask", `{"f":"a"}`)), call("5", "ask", `{"f":"s"}`))
	texts["a"] = "two"
	s := turn(agent.Turn("Again."), call("6", "ask", `{"f":"a"}`), call("7", "see", `{"f":"a"}`), call("8", "ask", `{"f":"a"}`))
	if d := cmp.Diff([]string{"not seen", one, secret, one, strings.ReplaceAll(one, "one", "two")}, outcomes(s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s = turn(append([]graph.Write{agent.RemoveAll()}, agent.Turn("Clear.")...), call("9", "ask", `{"f":"a"}`))
	if d := cmp.Diff([]string{"not seen"}, outcomes(s)); d != "" {
		t.Errorf("after the conversation was cleared (-want +got):\n%s", d)
	}
	for rec, err := range journal.Records(t.Context(), store, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(rec.Data), "hunter2") {
			t.Errorf("record %d has the secret", rec.Seq)
		}
	}
}

// An agent below another one has a conversation of its own, and agents without a tool that reads files have none that matters.
func TestSeenFilesOfAgents(t *testing.T) {
	t.Parallel()
	heard := ""
	listening := askTool
	listening.Run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		r, err := askTool.Run(ctx, c)
		heard = r.Text()
		return r, err
	}
	below := compile(t, agent.Config{Name: "below", Model: countReplies(call("b1", "ask", `{"f":"a"}`), say("below: done")), Tools: []tool.Tool{seeTool(nil), listening}})
	m := countReplies(call("1", "see", `{"f":"a"}`), call("2", "help", `{"request":"x"}`), call("3", "ask", `{"f":"a"}`), say("ok"))
	s := run(t, agent.Config{Model: m, Tools: []tool.Tool{seeTool(nil), askTool}, Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "help"}, Graph: below}}}, "Go.").State
	if got := outcomes(s); len(got) != 1 || !strings.Contains(got[0], `"path":"a"`) {
		t.Errorf("the upper one: %v", got)
	}
	if !strings.Contains(heard, "not seen") {
		t.Errorf("the lower one: %s", heard)
	}
	s = run(t, agent.Config{Model: countReplies(call("1", "ask", `{"f":"a"}`), say("ok")), Tools: []tool.Tool{askTool}}, "Go.").State
	if d := cmp.Diff([]string{"no one reads"}, outcomes(s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A journal of an older version has no seen files: its conversations count as having seen none.
func TestEntryWithoutSeenFiles(t *testing.T) {
	t.Parallel()
	var e agent.Entry
	if err := json.Unmarshal([]byte(`{"message":{"role":"tool","parts":[]},"by":"act"}`), &e); err != nil || e.Seen != nil {
		t.Errorf("%+v, %v", e, err)
	}
	var r tool.Result
	if err := json.Unmarshal([]byte(`{"content":[{"type":"text","text":"x"}]}`), &r); err != nil || r.Seen != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// No person is asked about a call that would change nothing; a question that was asked before stays.
func TestRefusedCallsAreNotAsked(t *testing.T) {
	t.Parallel()
	stale, calls := true, 0
	put := tool.Tool{Name: "put", Effect: tool.Idempotent, Refuse: func(tool.Call) *tool.Result {
		if !stale {
			return nil
		}
		r := tool.FailedResult("it is stale")
		r.Seen = []tool.SeenFile{{Path: "a", Hash: "h"}}
		return &r
	}, Run: func(context.Context, tool.Call) (tool.Result, error) {
		calls++
		return tool.TextResult("done"), nil
	}}
	m := countReplies(call("1", "put", "{}"), call("2", "ask", `{"f":"a"}`), call("3", "put", "{}"), say("ok"))
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Gate: &rules{}, Tools: []tool.Tool{seeTool(nil), put, askTool},
		AroundTools: []agent.ToolMiddleware{func(next agent.ToolFunc) agent.ToolFunc {
			return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
				stale = false // from the second call on
				return next(ctx, t, c)
			}
		}}})}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || res.Status != graph.Waiting || calls != 0 {
		t.Fatalf("%v, %v, %d calls", res.Status, err, calls)
	}
	if got := outcomes(res.State); len(got) != 1 || got[0] != `{"path":"a","sha256":"h"}` {
		t.Errorf("what the refused call has shown: %v", got)
	}
	stale = true
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "once"}}})
	if err != nil || res.Status != graph.Done || calls != 1 {
		t.Errorf("%v, %v, %d calls", res.Status, err, calls)
	}
}
