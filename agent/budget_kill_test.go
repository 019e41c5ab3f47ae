package agent_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// Whatever record a process is killed at, and however often: a budget of calls is never exceeded, also by calls whose
// reply was not recorded.
func TestCallsThroughKills(t *testing.T) {
	const most = 7
	var made atomic.Int32
	model := agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			made.Add(1)
			yield(llm.Delta{Done: &llm.Reply{Message: say("fine"), Usage: llm.Usage{Input: 10, Output: 20}}}, nil)
		}
	})
	inner := compile(t, agent.Config{Name: "inner", Model: model})
	d := graph.Def{Name: "wide", Keys: agent.Keys()}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		d.Nodes = append(d.Nodes, agent.Agent{Graph: inner}.Node(name))
		d.Start = append(d.Start, name)
		d.Edges = append(d.Edges, graph.NewEdge(name, graph.End))
	}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	drive := func(store journal.Store) error {
		r := &graph.Runner{Graph: g, Store: store}
		ctx := agent.Budget{Calls: most}.Share(t.Context(), "", agent.Spend{})
		_, err := r.InvokeResume(ctx, graph.Resume{Thread: "t"})
		if errors.Is(err, journal.ErrNoThread) {
			_, err = r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		}
		return err
	}
	var over *agent.BudgetError
	count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	if err := drive(count); !errors.As(err, &over) || made.Load() != most {
		t.Fatalf("%d calls, %v", made.Load(), err)
	}
	for first := range count.RecordCount() {
		made.Store(0)
		store := journal.NewMemory()
		for kill := first; kill > 0; kill /= 2 {
			if err := drive(&graphtest.Crash{Store: store, Limit: kill}); !errors.As(err, &over) && !errors.Is(err, graphtest.ErrCrash) {
				t.Fatalf("killed after %d records: %v", kill, err)
			}
		}
		if err := drive(store); !errors.As(err, &over) || made.Load() > most {
			t.Fatalf("killed after %d records, then after half as many: %d calls of %d, %v", first, made.Load(), most, err)
		}
	}
}
