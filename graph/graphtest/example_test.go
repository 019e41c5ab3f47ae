package graphtest_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/journal"
)

// Two runs with a Clock and IDs of their own write the same journal.
func Example() {
	n := graph.Sum[int]("n")
	g, err := graph.Compile(graph.Def{
		Name: "count", Keys: []graph.AnyKey{n}, Start: []string{"one"},
		Nodes: []graph.Node{{Name: "one", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(n.Set(1)), nil
		}}},
		Edges: []graph.Edge{{From: []string{"one"}, To: []string{graph.End}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var journals [2][]journal.Record
	for i := range journals {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Clock: &graphtest.Clock{Tick: time.Second}, IDs: graphtest.IDs("run")}
		res, err := r.Invoke(context.Background(), graph.Input{Thread: "t"})
		fmt.Println(res.Run, res.Status, err)
		for rec := range r.Store.Read(context.Background(), "t", journal.Range{}) {
			journals[i] = append(journals[i], rec)
		}
	}
	fmt.Println("equal:", reflect.DeepEqual(journals[0], journals[1]))
	// Output:
	// run-1 done <nil>
	// run-1 done <nil>
	// equal: true
}

// printed is a testing.TB that prints what a test reports.
type printed struct{ testing.TB }

func (printed) Helper()           {}
func (printed) Name() string      { return "TestPay" }
func (printed) Error(args ...any) { fmt.Println(args...) }

var amount = graph.Last[int]("amount")

// A bank outlives the processes that use it.
type bank struct{ paid int }

// newPayment makes the runner of one process.
func newPayment(b *bank) (*graph.Runner, error) {
	g, err := graph.Compile(graph.Def{
		Name: "payment", Keys: []graph.AnyKey{amount}, Start: []string{"pay"},
		Nodes: []graph.Node{{Name: "pay", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "charge", func(context.Context) (bool, error) {
				b.paid += amount.Get(s) // whatever the bank has seen of graph.EffectKey before
				return true, nil
			})
			return graph.Update{}, err
		}}},
		Edges: []graph.Edge{graph.NewEdge("pay", graph.End)},
	})
	return &graph.Runner{Graph: g}, err
}

// A payment is made twice if the process is killed before its result is recorded: the bank ignores the key of the effect.
func ExampleExplore() {
	var t testing.TB = printed{} // in a test, its *testing.T
	graphtest.Explore(t, func() graphtest.Subject {
		b := &bank{}
		return graphtest.Subject{
			Runner: func() (*graph.Runner, error) { return newPayment(b) },
			Input:  graph.Input{Set: []graph.Write{amount.Set(10)}},
			Check: func(graphtest.EndOfRun) error {
				if b.paid != 10 {
					return fmt.Errorf("%d was paid, want 10", b.paid)
				}
				return nil
			},
		}
	}, graphtest.ExploreOptions{Kinds: []disturb.Kind{disturb.CrashBefore, disturb.CrashAfter}})
	// Output:
	// explore: 1 of 8 schedules make a difference; the smallest: crash-before@effect:0.pay.0/charge/0
	//   the process is killed before effect:0.pay.0/charge/0 is stored, and another one resumes the run
	//   the check: 20 was paid, want 10
	// again: GRAPHTEST_REPLAY='crash-before@effect:0.pay.0/charge/0' go test -run '^TestPay$'
}
