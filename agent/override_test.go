package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

func settings(r llm.Request) string {
	temperature := "none"
	if r.Temperature != nil {
		temperature = fmt.Sprint(*r.Temperature)
	}
	return fmt.Sprintf("%s %d %q %q %q %v", temperature, r.MaxTokens, r.System, r.Effort, r.Schema, r.Stop)
}

func TestOverridesAreLayered(t *testing.T) {
	a, b, deep := &asked{name: "a"}, &asked{name: "b"}, &asked{name: "deep"}
	configured := llm.Request{System: "As configured.", Temperature: new(0.9), MaxTokens: 900, Stop: []string{"END"}, Schema: json.RawMessage(`{}`)}
	inner := chain(t, agent.Think{Model: deep, Request: configured}.Node("think"), agent.Think{Model: deep, Request: configured}.Node("other"))
	g := chain(t, agent.Think{Model: a, Request: configured}.Node("a"), agent.Think{Model: b, Request: configured}.Node("b"),
		agent.Agent{Graph: chain(t, agent.Agent{Graph: inner}.Node("inner"))}.Node("helper"))
	invoke(t, g, append(agent.Turn("hi"),
		agent.Overrides.Set(map[string]agent.Override{"": {Temperature: new(0.1)}, "b": {MaxTokens: new(20), System: new(""), Stop: []string{}}}),
		agent.Overrides.Set(map[string]agent.Override{"b": {Temperature: new(0.2), Schema: new(json.RawMessage)},
			"helper": {MaxTokens: new(30), Effort: new("low"), Stop: []string{"STOP"}}, "helper/inner/think": {Effort: new("high"), System: new("Deep.")}, "think": {Effort: new("lost")}}))...)
	equal(t, "a: everywhere", settings(a.requests[0]), `0.1 900 "As configured." "" "{}" [END]`)
	equal(t, "b: its own, in two writes", settings(b.requests[0]), `0.2 20 "" "" "" []`)
	equal(t, "deep: the path", settings(deep.requests[0]), `0.1 30 "Deep." "high" "{}" [STOP]`)
	equal(t, "next to it: the agent", settings(deep.requests[1]), `0.1 30 "As configured." "low" "{}" [STOP]`)
}

func TestOverridesOutliveARestart(t *testing.T) {
	m := &asked{name: "m"}
	ask := graph.Node{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "go on?"})
		return graph.Update{}, err
	}}
	store := journal.NewMemory()
	first := &graph.Runner{Graph: chain(t, ask, agent.Think{Model: m}.Node("m")), Store: store}
	res, err := first.Invoke(t.Context(), graph.Input{Thread: "t", Set: append(agent.Turn("hi"), agent.Overrides.Set(map[string]agent.Override{"m": {MaxTokens: new(7), Tools: []string{}, Schema: new(json.RawMessage)}}))})
	if err != nil {
		t.Fatal(err)
	}
	second := &graph.Runner{Graph: chain(t, ask, agent.Think{Model: m, Request: llm.Request{Schema: json.RawMessage(`{}`)}, Tools: agent.TodoTools()}.Node("m")), Store: store}
	if _, err := second.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}}); err != nil {
		t.Fatal(err)
	}
	if r := m.requests[0]; r.MaxTokens != 7 || len(r.Tools) != 0 || len(r.Schema) != 0 {
		t.Errorf("%d tokens, %d tools and schema %q, want 7 and none", r.MaxTokens, len(r.Tools), r.Schema)
	}
}

func TestOverrideOfModelAndTools(t *testing.T) {
	var c counted
	large, small := &asked{name: "large"}, &asked{name: "small", answers: []llm.Message{call("x", "put", `{}`)}}
	g := compile(t, agent.Config{Model: large, Models: map[string]llm.Model{"small": small},
		Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false), c.tool("put", tool.Dangerous, false)}})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: append(agent.Turn("hi"), agent.Overrides.Set(map[string]agent.Override{agent.NodeThink: {Model: "small", Tools: []string{"look"}}}))})
	if err != nil {
		t.Fatal(err)
	}
	if len(large.requests) != 0 || len(small.requests[0].Tools) != 1 || small.requests[0].Tools[0].Name != "look" {
		t.Errorf("the configured model had %d requests, the other was offered %v", len(large.requests), small.requests[0].Tools)
	}
	if got := conversation(res.State); len(c.calls) != 0 || !strings.Contains(got, "Unexpected call: put") {
		t.Errorf("calls %v, conversation %s", c.calls, got)
	}
	_, err = r.Invoke(t.Context(), graph.Input{Thread: "u", Set: append(agent.Turn("hi"), agent.Overrides.Set(map[string]agent.Override{"": {Model: "tiny"}}))})
	if err == nil || !strings.Contains(err.Error(), `names the model "tiny", which it does not have; it has ["small"]`) {
		t.Errorf("error %v", err)
	}
}

func TestOverridesThatNameNothing(t *testing.T) {
	m := &asked{}
	g := chain(t, prepare("prepare"), agent.Think{Model: m}.Node("plan"), agent.Agent{Graph: loop(t, m)}.Node("helper"))
	if err := agent.CheckOverrides(g, map[string]agent.Override{"": {}, "plan": {}, "helper": {}, "/helper/think/": {}}); err != nil {
		t.Error(err)
	}
	err := agent.CheckOverrides(g, map[string]agent.Override{"plan": {}, "think": {}, "helper/act": {}, "prepare": {}})
	want := `overrides for ["helper/act" "prepare" "think"], which are not model nodes or agents of graph chain; it has ["" "helper" "helper/think" "plan"]`
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant  %s", err, want)
	}
}
