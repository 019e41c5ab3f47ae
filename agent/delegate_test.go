package agent_test

import (
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
)

func TestAnAgentAsATool(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var c counted
	helper := &asked{name: "helper", answers: []llm.Message{
		both(call("h1", "put", `{}`), call("h2", "user__input", `{"question":"which?"}`)), call("h3", "user__confirm", `{"question":"sure?"}`)}}
	boss := &asked{name: "boss", answers: []llm.Message{both(call("a", "helper", `{"request":"find it"}`), call("b", "helper", `{"task":1}`))}}
	runner := func() *graph.Runner {
		inner := &graph.Runner{Graph: loop(t, helper, append(agent.UserTools(false), c.tool("put", "dangerous", false))...), Store: store}
		return &graph.Runner{Graph: loop(t, boss, agent.AgentTool(llm.ToolSpec{Name: "helper"}, inner)), Store: store}
	}
	res, err := runner().Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	for _, k := range []struct{ prompt, answer string }{{"which?", "that"}, {"sure?", "yes"}} {
		if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || res.Questions[0].Prompt != k.prompt {
			t.Fatalf("status %v, error %v, questions %v; want %s", res.Status, err, res.Questions, k.prompt)
		}
		res, err = runner().InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: k.answer}}})
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	equal(t, "the caller", boss.seen(1), `user: Go. | call a helper{"request":"find it"} | call b helper{"task":1} | `+
		`result a: {"output":"helper 3"} | result b: {"tool_call_error":"'request' is required and must be a text"}`)
	if got := helper.seen(2); len(c.calls) != 1 || len(helper.requests) != 3 || !strings.Contains(got, "that") || !strings.HasPrefix(got, "user: find it") {
		t.Errorf("%d calls, %d requests, the last %s", len(c.calls), len(helper.requests), got)
	}
}
