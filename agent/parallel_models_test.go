package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A side is one of two model nodes that work in the same steps: what it says depends
// on its own replies alone.
type side struct {
	mu       sync.Mutex
	requests []llm.Request
	rounds   map[int]int // requests by round
}

// model makes so many rounds of calls. The ids of its calls are those of the other
// side, too.
func (x *side) model(name string, rounds, calls int) llm.Model {
	return agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			n := 0
			for _, m := range r.Messages {
				if m.Role == llm.RoleAssistant {
					n += strings.Count(m.Text(), name+" ")
				}
			}
			x.mu.Lock()
			x.requests = append(x.requests, r)
			if x.rounds == nil {
				x.rounds = map[int]int{}
			}
			x.rounds[n]++
			x.mu.Unlock()
			m := say(fmt.Sprint(name, " ", n))
			for i := range calls {
				if n < rounds {
					m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprint("c", i), Name: "work", Args: fmt.Appendf(nil, `{"by":%q,"round":%d,"call":%d}`, name, n, i)})
				}
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m}}, nil)
		}
	})
}

// sides is a graph of two model nodes with a tools node each, which begin together
// and need different numbers of rounds.
func sides(t testing.TB, work tool.Tool, x, y *side) *graph.Graph {
	t.Helper()
	a, b := agent.Think{Model: x.model("left", 1, 1)}.Node("a"), agent.Think{Model: y.model("right", 3, 2)}.Node("b")
	d := graph.Def{Name: "sides", Keys: agent.Keys(), Start: []string{"a", "b"},
		Nodes: []graph.Node{a, b, agent.Act{Tools: []tool.Tool{work}}.Node("act a"), agent.Act{Tools: []tool.Tool{work}}.Node("act b")}}
	if err := errors.Join(agent.ToolsEdge(&d, "a", "act a", graph.End), agent.ToolsEdge(&d, "b", "act b", graph.End)); err != nil {
		t.Fatal(err)
	}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Each of two model nodes that reply with calls in one step has its own calls made,
// once, and reads its own outcomes, although their ids are the same.
func TestTwoModelNodesInOneStep(t *testing.T) {
	for name, set := range map[string][]graph.Write{"a message": agent.Turn("Go."), "an input": agent.TurnInput("Go.")} {
		t.Run(name, func(t *testing.T) {
			var c counted
			x, y := &side{}, &side{}
			r := &graph.Runner{Graph: sides(t, c.tool("work", tool.ReadOnly, false), x, y), Store: journal.NewMemory()}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: set})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(c.calls)
			var want []string
			want = append(want, `work{"by":"left","round":0,"call":0}`)
			for i := range 6 {
				want = append(want, fmt.Sprintf(`work{"by":"right","round":%d,"call":%d}`, i/2, i%2))
			}
			if fmt.Sprint(c.calls) != fmt.Sprint(want) {
				t.Errorf("calls %q, want %q", c.calls, want)
			}
			var told []string
			for _, s := range []*side{x, y} {
				for _, req := range s.requests {
					told = append(told, shape(req.Messages)...)
				}
			}
			if all := strings.Join(told, "\n"); strings.Contains(all, "cut off") || !strings.Contains(all, `result c1: {"output":"The call is still running."}`) {
				t.Errorf("calls under way are told as\n%s", all)
			}
			said := strings.Join(shape(agent.History(res.State)), "\n")
			for _, want := range []string{
				"call c0 work{\"by\":\"left\",\"round\":0,\"call\":0}\nresult c0: {\"output\":\"work did {\\\"by\\\":\\\"left\\\"",
				"call c1 work{\"by\":\"right\",\"round\":0,\"call\":1}\nresult c0: {\"output\":\"work did {\\\"by\\\":\\\"right\\\"",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("%s is not in\n%s", want, said)
				}
			}
		})
	}
}

// The same after a crash at every record.
func TestTwoModelNodesCrash(t *testing.T) {
	in := graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go.")}
	build := func() (*graph.Graph, *counted, *side, *side) {
		c, x, y := &counted{}, &side{}, &side{}
		return sides(t, c.tool("work", tool.Undeclared, true), x, y), c, x, y
	}
	g, _, _, _ := build()
	calm := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	want, _ := finish(t, &graph.Runner{Graph: g, Store: calm}, in)
	for limit := range calm.RecordCount() {
		g, c, x, y := build()
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit}
		finish(t, &graph.Runner{Graph: g, Store: store}, in)
		made := len(c.calls)
		_, recorded := recordedCalls(t, store.Store)
		before := len(x.requests) + len(y.requests)
		res, doubts := finish(t, &graph.Runner{Graph: g, Store: store.Store}, in)
		if a, b := agent.History(want.State), agent.History(res.State); fmt.Sprint(shape(a)) != fmt.Sprint(shape(b)) {
			t.Fatalf("crash after %d records:\n%q, want\n%q", limit, shape(b), shape(a))
		}
		if n := len(c.calls); n > 7+len(doubts) || made > n {
			t.Errorf("crash after %d records: %d calls, %d doubts", limit, n, len(doubts))
		}
		if n := len(x.requests) + len(y.requests) - before; recorded+n != 6 {
			t.Errorf("crash after %d records: %d replies were recorded, and %d asked for later", limit, recorded, n)
		}
	}
}

// A tools node without the name of its model node makes no calls where it cannot
// know, and says what to do.
func TestWhoseCallsIsNotKnown(t *testing.T) {
	var c counted
	x, y := &side{}, &side{}
	work := []tool.Tool{c.tool("work", tool.ReadOnly, false)}
	d := graph.Def{Name: "loose", Keys: agent.Keys(), Start: []string{"a", "b"},
		Nodes: []graph.Node{agent.Think{Model: x.model("left", 1, 2)}.Node("a"), agent.Think{Model: y.model("right", 1, 2)}.Node("b"), agent.Act{Tools: work}.Node("act")},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"act"}}, {From: []string{"b"}, To: []string{"act"}}, {From: []string{"act"}, To: []string{graph.End}}}}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: agent.Turn("Go.")})
	if err == nil || !strings.Contains(err.Error(), "Act.Of") || len(c.calls) > 0 {
		t.Errorf("%v, %v", err, c.calls)
	}
	if err := errors.Join(agent.ToolsEdge(&d, "a", "act", graph.End), agent.ToolsEdge(&d, "b", "act", graph.End)); err == nil || !strings.Contains(err.Error(), "a tools node of its own") {
		t.Errorf("one tools node for two model nodes: %v", err)
	}
}
