package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A call takes up tools and a server, the next request has them, also after the process was lost and in the next turn, and another call puts them away. A call that
// fails changes nothing.
func TestKits(t *testing.T) {
	answer := func(name string) tool.Tool {
		return tool.Tool{Name: name, Effect: tool.ReadOnly, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			if string(c.Args) == `{"name":"missing"}` {
				return tool.FailedResult("there is none"), nil
			}
			return tool.TextResult(name + " was called"), nil
		}}
	}
	var requests []string
	lost := true
	replies := []llm.Message{call("1", "load", `{"name":"missing"}`), call("2", "load", `{"name":"git"}`), call("3", "git_command", "{}"), say("done"), call("4", "unload", `{"name":"git"}`), call("5", "git_command", "{}"), say("over")}
	model := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			requests = append(requests, offered(r))
			if at := len(requests) - 1; at == 2 && lost {
				requests = requests[:at]
				yield(llm.Delta{}, errors.New("the machine is lost"))
			} else {
				yield(llm.Delta{Done: &llm.Reply{Message: replies[at]}}, nil)
			}
		}
	})
	s := &servers{there: map[string]bool{"own": true, "forge": true}}
	c := agent.Config{Model: model, Retry: agent.Retry{Patience: -1}, Tools: []tool.Tool{answer("load"), answer("unload")}, Sources: s.sources("own"), Kits: agent.Kits{
		Change: func(name string, args json.RawMessage) map[string]agent.Kit {
			return map[string]map[string]agent.Kit{"load": {"git": {Tools: []string{"git_command", "gone"}, Sources: []string{"forge", "own"}}}, "unload": {"git": {}}}[name]
		},
		Tools: func(name string) []tool.Tool {
			if name == "gone" {
				return nil
			}
			return []tool.Tool{answer(name)}
		},
		Sources: func(names []string) agent.Sources { return s.sources(names...) },
	}}
	store := journal.NewMemory()
	drive := func() *graph.Runner { return &graph.Runner{Graph: compile(t, c), Store: store} }
	if res, err := drive().Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")}); err == nil && res.Err == nil {
		t.Fatal("the model was not lost")
	}
	lost = false
	if res, err := drive().InvokeResume(t.Context(), graph.Resume{Thread: "t"}); err != nil || res.Err != nil {
		t.Fatal(res.Err, err)
	}
	if res, err := drive().Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("more")}); err != nil || res.Err != nil {
		t.Fatal(res.Err, err)
	}
	const few, many = "load unload own_tool | ", "load unload own_tool forge_tool git_command | "
	want := []string{few + "hi", few, many + "[system note: these servers are ready now, and you can call their tools: forge]", many, many + "more", few, few}
	if fmt.Sprint(requests) != fmt.Sprint(want) {
		t.Errorf("the requests are\n%q, want\n%q", requests, want)
	}
}
