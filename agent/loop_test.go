package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/tool"
)

// formatTranscript is a model that replays a text, and remembers what it was asked.
type formatTranscript struct {
	*script.Transcript
	mu       sync.Mutex
	requests []llm.Request
}

func replay(t testing.TB, text string) *formatTranscript {
	t.Helper()
	s, err := script.Parse("transcript.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &formatTranscript{Transcript: s}
}

// watched is the transcript as a model that keeps its requests.
func (m *formatTranscript) model() llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		m.mu.Lock()
		m.requests = append(m.requests, r)
		m.mu.Unlock()
		return m.Stream(ctx, r)
	})
}

// counted is a tool that counts its calls.
type counted struct {
	mu    sync.Mutex
	calls []string
}

func (c *counted) tool(name string, effect tool.Effect, parallel bool) tool.Tool {
	return tool.Tool{Name: name, Effect: effect, Parallel: parallel, Schema: json.RawMessage(`{"type":"object"}`),
		Run: func(_ context.Context, call tool.Call) (tool.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls = append(c.calls, name+string(call.Args))
			return tool.TextResult(name + " did " + string(call.Args)), nil
		}}
}

func compile(t testing.TB, c agent.Config) *graph.Graph {
	t.Helper()
	g, err := c.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func run(t testing.TB, c agent.Config, text string) graph.Result {
	t.Helper()
	r := &graph.Runner{Graph: compile(t, c), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(text)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// shape is a conversation as lines of text, to compare.
func shape(messages []llm.Message) (lines []string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				lines = append(lines, string(m.Role)+": "+p.Text)
			case llm.ToolCall:
				lines = append(lines, "call "+p.ID+" "+p.Name+string(p.Args))
			case llm.ToolResult:
				lines = append(lines, "result "+p.CallID+": "+llm.Message{Parts: p.Content}.Text())
			}
		}
	}
	return lines
}

func TestLoop(t *testing.T) {
	m := replay(t, `
- text: I will look.
  tool_calls:
    - {id: a, name: look, args: {n: 1}}
    - {id: b, name: look, args: {n: 2}}
    - {id: c, name: put, args: {n: 3}}
- text: Done.
`)
	var c counted
	res := run(t, agent.Config{Model: m.model(), Request: llm.Request{System: "Be good."},
		Tools: []tool.Tool{c.tool("look", tool.ReadOnly, true), c.tool("put", tool.Dangerous, false)}}, "Go.")
	if res.Status != graph.Done || agent.LastResponse(res.State) != "Done." {
		t.Errorf("status %v, response %q", res.Status, agent.LastResponse(res.State))
	}
	want := []string{"user: Go.", "assistant: I will look.", `call a look{"n":1}`, `call b look{"n":2}`, `call c put{"n":3}`,
		`result a: {"output":"look did {\"n\":1}"}`, `result b: {"output":"look did {\"n\":2}"}`, `result c: {"output":"put did {\"n\":3}"}`}
	if d := cmp.Diff(want, shape(m.requests[1].Messages)); d != "" {
		t.Errorf("second request (-want +got):\n%s", d)
	}
	if n := len(m.requests[1].Messages); n != 3 {
		t.Errorf("the round is %d messages, want 3: a user's, an assistant's and a tool's", n)
	}
	if d := cmp.Diff(append(want, "assistant: Done."), shape(agent.History(res.State))); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	if got := agent.Spent.Get(res.State); got.Calls != 2 || got.ToolCalls != 3 || got.Unpriced != 2 {
		t.Errorf("spent %+v", got)
	}
}

func TestBadCallsAreReported(t *testing.T) {
	var c counted
	for _, k := range []struct{ name, call, want string }{
		{"unknown tool", `{Name: "fly", Args: {}}`, "Unexpected call: fly"},
		{"no object", `[1]`, "has invalid arguments: [1]"},
		{"a text", `"oops"`, `has invalid arguments: "oops"`},
	} {
		t.Run(k.name, func(t *testing.T) {
			name, args := "look", k.call
			if k.name == "unknown tool" {
				name, args = "fly", "{}"
			}
			res := run(t, agent.Config{Model: countReplies(call("x", name, args), say("ok")), Tools: []tool.Tool{c.tool("look", tool.ReadOnly, true)}}, "Go.")
			got := shape(agent.History(res.State))
			if text := got[2]; !strings.HasPrefix(text, `result x: {"tool_call_error":"`) || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), k.want) {
				t.Errorf("the model reads %q, want %q in it", text, k.want)
			}
			if res.Status != graph.Done {
				t.Errorf("status %v", res.Status)
			}
		})
	}
	if c.calls != nil {
		t.Errorf("calls were made: %v", c.calls)
	}
}

// TestToolNamesAsModelsWriteThem: what models add to the name of a tool does not keep them from calling it.
func TestToolNamesAsModelsWriteThem(t *testing.T) {
	for name, found := range map[string]bool{
		"look": true, "functions.look": true, "look.sh": true, "functions.look.py": true, "look<|channel|>commentary": true, " look": true,
		"multi_tool_use.parallel": false, "look.exe": false, "functions.": false, "Look": false, "unnamed": false,
	} {
		var c counted
		run(t, agent.Config{Model: countReplies(call("x", name, "{}"), say("ok")), Tools: []tool.Tool{c.tool("look", tool.ReadOnly, true)}}, "Go.")
		if (len(c.calls) == 1) != found {
			t.Errorf("%q: %d calls were made, found must be %v", name, len(c.calls), found)
		}
	}
}

// countReplies is a model that gives prepared replies, one after the other.
func countReplies(list ...llm.Message) llm.Model {
	var mu sync.Mutex
	return agent.ModelFunc(func(_ context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			mu.Lock()
			defer mu.Unlock()
			if len(list) == 0 {
				yield(llm.Delta{}, errors.New("no reply is left"))
				return
			}
			m := list[0]
			list = list[1:]
			yield(llm.Delta{Done: &llm.Reply{Message: m}}, nil)
		}
	})
}

func say(text string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}
}

// call is a message with one call; several are joined by both.
func call(id, name, args string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}}
}

func both(list ...llm.Message) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	for _, o := range list {
		m.Parts = append(m.Parts, o.Parts...)
	}
	return m
}

func TestEmptyResultIsDone(t *testing.T) {
	silent := tool.Tool{Name: "mkdir", Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }}
	res := run(t, agent.Config{Model: countReplies(call("x", "mkdir", "{}"), say("made")), Tools: []tool.Tool{silent}}, "Go.")
	if got := shape(agent.History(res.State))[2]; got != `result x: "DONE"` {
		t.Errorf("got %q", got)
	}
	if agent.LastResponse(res.State) != "made" {
		t.Error("the turn ended early")
	}
}

func TestDuplicateIDs(t *testing.T) {
	var c counted
	m := countReplies(both(call("x", "look", `{"n":1}`), call("x", "look", `{"n":1}`), call("x", "look", `{"n":2}`), call("", "look", `{"n":3}`), call("", "look", `{"n":3}`)), say("ok"))
	res := run(t, agent.Config{Model: m, Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false)}}, "Go.")
	want := []string{"user: Go.", `call x look{"n":1}`, `call x_2 look{"n":2}`, `call call look{"n":3}`, `call call_2 look{"n":3}`,
		`result x: {"output":"look did {\"n\":1}"}`, `result x_2: {"output":"look did {\"n\":2}"}`,
		`result call: {"output":"look did {\"n\":3}"}`, `result call_2: {"output":"look did {\"n\":3}"}`, "assistant: ok"}
	if d := cmp.Diff(want, shape(agent.History(res.State))); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}

func TestIterationLimit(t *testing.T) {
	looks := make([]llm.Message, 5)
	for i := range looks {
		looks[i] = both(say("step"), call("x", "look", `{"n":`+string(rune('0'+i))+`}`))
	}
	var c counted
	r := &graph.Runner{Graph: compile(t, agent.Config{Model: countReplies(looks...), MaxIterations: 3, Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false)}}), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	var limit *graph.LimitError
	if !errors.As(err, &limit) || limit.Status != graph.VisitLimit || limit.Limit != 3 {
		t.Errorf("error %v", err)
	}
	var own *agent.IterationError
	if !errors.As(err, &own) || own.Node != "think" || own.Limit != 3 {
		t.Errorf("error %v", err)
	}
	if agent.LastResponse(res.State) != "step" || len(c.calls) != 3 {
		t.Errorf("response %q after %d calls", agent.LastResponse(res.State), len(c.calls))
	}
}

func TestToolsEdgeNeedsTheKeys(t *testing.T) {
	d := graph.Def{Name: "g", Nodes: []graph.Node{agent.Think{Model: countReplies()}.Node("think"), agent.Act{}.Node("act")}, Start: []string{"think"}}
	if err := agent.ToolsEdge(&d, "think", "act", graph.End); err == nil || !strings.Contains(err.Error(), `needs the key "messages"`) {
		t.Errorf("error %v", err)
	}
	d.Keys = agent.Keys()
	if err := agent.ToolsEdge(&d, "think", "act", graph.End); err != nil {
		t.Error(err)
	}
	if _, err := graph.Compile(d); err != nil {
		t.Error(err)
	}
}
