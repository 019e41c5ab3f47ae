package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

func TestTodoTools(t *testing.T) {
	steps := []struct{ name, args, want string }{
		{"todo__list", `{}`, `{"goal":"","todos":[]}`},
		{"todo__init", `{"goal":"Ship"}`, `{"status":"ok","message":"Initialized new todo list"}`},
		{"todo__list", `{}`, `{"goal":"","todos":[]}`},
		{"todo__add", `{"task":"build"}`, `{"status":"ok","id":1}`},
		{"todo__add", `{"task":"  "}`, `{"error":"task description is required"}`},
		{"todo__add", `{"task":"test"}`, `{"status":"ok","id":2}`},
		{"todo__done", `{"id":"1"}`, `{"status":"ok","message":"Marked todo 1 as done"}`},
		{"todo__done", `{"id":7}`, `{"error":"Todo 7 not found"}`},
		{"todo__done", `{"id":"x"}`, `{"error":"id is required and must be a number"}`},
		{"todo__update", `{"id":2,"task":"test it"}`, `{"status":"ok","message":"Updated todo 2"}`},
		{"todo__list", `{}`, `{"goal":"Ship","todos":[{"id":1,"desc":"build","done":true},{"id":2,"desc":"test it","done":false}]}`},
		{"todo__clear", `{}`, `{"status":"ok","message":"Todo list cleared"}`},
	}
	var messages []llm.Message
	for i, s := range steps {
		if i%2 == 0 { // two calls a reply: a list lives from step to step, and within one
			messages = append(messages, llm.Message{Role: llm.RoleAssistant})
		}
		last := &messages[len(messages)-1]
		last.Parts = append(last.Parts, call(string(rune('a'+i)), s.name, s.args).Parts...)
	}
	res := run(t, agent.Config{Model: countReplies(append(messages, say("ok"))...), Continue: agent.Continue{Max: 5}}, "Go.")
	var got, want []string
	for _, line := range shape(agent.History(res.State)) {
		if strings.HasPrefix(line, "result ") {
			got = append(got, line)
		}
	}
	for i, s := range steps {
		want = append(want, "result "+string(rune('a'+i))+": "+s.want)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

func TestContinue(t *testing.T) {
	m := countReplies(
		both(call("a", "todo__init", `{"goal":"Ship"}`), call("b", "todo__add", `{"task":"build"}`), call("c", "todo__add", `{"task":"test"}`)),
		say("I stop."), call("d", "todo__done", `{"id":1}`), say("I stop again."), call("e", "todo__clear", `{}`), call("f", "todo__add", `{"task":"more"}`), say("Enough."))
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Continue: agent.Continue{Max: 2, Prompt: "Go on."}})}
	var told []agent.ContinuationSent
	var res graph.Result
	for ev, err := range r.Run(context.Background(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if c, ok := b.Value.(agent.ContinuationSent); ok {
				told = append(told, c)
			}
		case graph.RunEnded:
			res = b.Result
		}
	}
	if d := cmp.Diff([]agent.ContinuationSent{{Count: 1, Max: 2, Open: 2}, {Count: 2, Max: 2, Open: 1}}, told); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	var sent []string
	for _, m := range agent.History(res.State) {
		if m.Role == llm.RoleUser {
			sent = append(sent, m.Text())
		}
	}
	want := []string{"Go.", "Go on.\n\nGoal: Ship\nProgress: 0/2 completed\n  ○ 1. build\n  ○ 2. test",
		"Go on.\n\nGoal: Ship\nProgress: 1/2 completed\n  ✓ 1. build\n  ○ 2. test"}
	if d := cmp.Diff(want, sent); d != "" {
		t.Errorf("continuations (-want +got):\n%s", d)
	}
	if agent.LastResponse(res.State) != "Enough." || agent.Todo.Get(res.State).Open() != 1 {
		t.Errorf("response %q with %d open items: the limit is hard", agent.LastResponse(res.State), agent.Todo.Get(res.State).Open())
	}
}
