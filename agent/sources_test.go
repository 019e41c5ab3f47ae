package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// servers are sources of which a test says when they are there.
type servers struct {
	there  map[string]bool
	starts int
}

func (s *servers) sources(names ...string) agent.Sources {
	made := func(name string) tool.Tool {
		return tool.Tool{Name: name, Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("ok"), nil }}
	}
	return agent.Sources{Names: names,
		Start: func(_ context.Context, open []string) (map[string]bool, error) {
			s.starts++
			settled := map[string]bool{}
			for _, name := range open {
				if there, over := s.there[name]; over {
					settled[name] = there
				}
			}
			return settled, nil
		},
		Tools: func(_ context.Context, settled map[string]bool) (list []tool.Tool, err error) {
			for _, name := range names {
				if there, over := settled[name]; there {
					list = append(list, made(name+"_tool"))
				} else if !over {
					list = append(list, made("wait_"+name))
				}
			}
			return list, nil
		}}
}

// offered returns the tools of a request and its last message.
func offered(r llm.Request) string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ") + " | " + r.Messages[len(r.Messages)-1].Text()
}

// A source that is there later joins the next request, and the model learns it. What was found out is in the journal: a run that is resumed elsewhere sends the same.
func TestSourcesJoin(t *testing.T) {
	s := &servers{there: map[string]bool{"a": true, "bad": false}}
	var requests []string
	broken := false
	model := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			requests = append(requests, offered(r))
			n := len(requests)
			switch {
			case n == 1:
				s.there["b"] = true
				yield(llm.Delta{Done: &llm.Reply{Message: call("1", "a_tool", "{}")}}, nil)
			case broken:
				yield(llm.Delta{}, errors.New("the machine is lost"))
			default:
				yield(llm.Delta{Done: &llm.Reply{Message: say("done")}}, nil)
			}
		}
	})
	store := journal.NewMemory()
	c := agent.Config{Model: model, Sources: s.sources("a", "b", "bad"), Retry: agent.Retry{Patience: -1}}
	broken = true
	r := &graph.Runner{Graph: compile(t, c), Store: store}
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")}); err == nil && res.Err == nil {
		t.Fatal(res, err)
	}
	// Another process, in which no source is there yet.
	broken = false
	later := &servers{there: map[string]bool{}}
	c.Sources = later.sources("a", "b", "bad")
	r = &graph.Runner{Graph: compile(t, c), Store: store}
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || res.Err != nil {
		t.Fatal(res.Err, err)
	}
	want := []string{"a_tool wait_b | hi", "a_tool b_tool | [system note: these servers are ready now, and you can call their tools: b]"}
	if got := slices.Compact(slices.Clone(requests)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the requests are %q, want %q", requests, want)
	}
	if later.starts != 0 {
		t.Errorf("the resumed run started sources %d times", later.starts)
	}
	// The next turn tries the source again that could not be used, and only that one.
	later.there["bad"] = true
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("more")}); err != nil || res.Err != nil {
		t.Fatal(res.Err, err)
	}
	if got := requests[len(requests)-1]; !strings.HasPrefix(got, "a_tool b_tool bad_tool | more\n\n[system note") {
		t.Errorf("the request of the next turn is %q", got)
	}
}
