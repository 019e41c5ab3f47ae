package graph_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// chainOf is n nodes that count, one after the other.
func chainOf(t testing.TB, n int) *graph.Graph {
	d := graph.Def{Name: "chain", Keys: []graph.AnyKey{counter}, Start: []string{"n0"}}
	for i := range n {
		to := fmt.Sprint("n", i+1)
		if i == n-1 {
			to = graph.End
		}
		d.Nodes = append(d.Nodes, graph.Node{Name: fmt.Sprint("n", i), Run: inc})
		d.Edges = append(d.Edges, edge(fmt.Sprint("n", i), to))
	}
	return compile(t, d)
}

// loopOf is two nodes that take turns until the count is reached.
func loopOf(t testing.TB, n int) *graph.Graph {
	again, stop := []string{"again"}, []string{"stop"}
	return compile(t, graph.Def{Name: "loop", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: inc}, {Name: "b", Run: inc}},
		Edges: []graph.Edge{edge("a", "b"), {From: []string{"b"}, Cases: map[string]string{"again": "a", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if counter.Get(s) < n {
				return again, nil
			}
			return stop, nil
		}}}})
}

// fanOf starts n tasks of one node at once and gathers what they add.
func fanOf(t testing.TB, n int) *graph.Graph {
	got, i := graph.Append[int]("got"), graph.Last[int]("i")
	return compile(t, graph.Def{Name: "fan", Keys: []graph.AnyKey{got, i}, Start: []string{"split"},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"work"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				u := graph.Update{Send: make([]graph.Send, n)}
				for k := range u.Send {
					u.Send[k] = graph.Send{To: "work", Overlay: []graph.Write{i.Set(k)}}
				}
				return u, nil
			}},
			{Name: "work", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(got.Set([]int{i.Get(s)})), nil
			}},
			{Name: "gather", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
		},
		Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}})
}

type message struct{ Role, Text string }

// messagesOf appends one message a step, n times.
func messagesOf(t testing.TB, n int) *graph.Graph {
	msgs := graph.Append[message]("messages")
	again, stop := []string{"again"}, []string{"stop"}
	return compile(t, graph.Def{Name: "messages", Keys: []graph.AnyKey{msgs}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(msgs.Set([]message{{"user", "a message of ordinary length, as people write them"}})), nil
		}}},
		Edges: []graph.Edge{{From: []string{"a"}, Cases: map[string]string{"again": "a", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if len(msgs.Get(s)) < n {
				return again, nil
			}
			return stop, nil
		}}}})
}

// windowOf is messagesOf with a counter, and with all but the last few messages
// forgotten: its journal grows, its state does not.
func windowOf(t testing.TB, n int) *graph.Graph {
	msgs := graph.Append[message]("messages")
	again, stop := []string{"again"}, []string{"stop"}
	return compile(t, graph.Def{Name: "window", Keys: []graph.AnyKey{msgs, counter}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			now, old := counter.Get(s)+1, msgs.Get(s)
			add := msgs.Set([]message{{"user", fmt.Sprint("message ", now)}})
			if len(old) == 20 {
				return graph.Put(msgs.Reset(old[10:]), add, counter.Set(now)), nil
			}
			return graph.Put(add, counter.Set(now)), nil
		}}},
		Edges: []graph.Edge{{From: []string{"a"}, Cases: map[string]string{"again": "a", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if counter.Get(s) < n {
				return again, nil
			}
			return stop, nil
		}}}})
}

// workloads are the shapes the engine is measured on, here and in store/sqlite.
var workloads = []struct {
	name  string
	steps int
	graph func(testing.TB) *graph.Graph
}{
	{"chain1000", 1000, func(t testing.TB) *graph.Graph { return chainOf(t, 1000) }},
	{"fan100", 3, func(t testing.TB) *graph.Graph { return fanOf(t, 100) }},
	{"loop500", 500, func(t testing.TB) *graph.Graph { return loopOf(t, 500) }},
	{"messages200", 200, func(t testing.TB) *graph.Graph { return messagesOf(t, 200) }},
}

func openSQLite(t testing.TB) journal.Store {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func BenchmarkRun(b *testing.B) {
	for _, w := range workloads {
		g := w.graph(b)
		for _, s := range []struct {
			name   string
			store  func(testing.TB) journal.Store
			topics graph.Topic
		}{
			{"none", func(testing.TB) journal.Store { return nil }, 0},
			{"memory", func(testing.TB) journal.Store { return journal.NewMemory() }, 0},
			{"sqlite", openSQLite, 0},
			{"events", func(testing.TB) journal.Store { return nil }, graph.AllTopics},
		} {
			b.Run(w.name+"/"+s.name, func(b *testing.B) {
				b.ReportAllocs()
				r := &graph.Runner{Graph: g, Store: s.store(b)}
				for b.Loop() {
					if s.topics == 0 {
						if _, err := r.Invoke(b.Context(), graph.Input{}); err != nil {
							b.Fatal(err)
						}
						continue
					}
					for _, err := range r.Run(b.Context(), graph.Input{Topics: s.topics}) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*w.steps), "ns/step")
			})
		}
	}
}

// BenchmarkLongRun is 100,000 steps of two nodes on a file: what a step costs must
// not depend on how many came before.
func BenchmarkLongRun(b *testing.B) {
	const steps = 100_000
	g := loopOf(b, steps)
	for b.Loop() {
		w := &weighing{Store: openSQLite(b)}
		if _, err := (&graph.Runner{Graph: g, Store: w}).Invoke(b.Context(), graph.Input{}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(w.bytes)/steps, "bytes/step")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
}

// BenchmarkOpen resumes a run that is over, after so many steps: what it costs to
// open its thread. A history is read whole, however many snapshots there are; of
// what was overwritten only the end is.
func BenchmarkOpen(b *testing.B) {
	for _, w := range []struct {
		name  string
		graph func(t testing.TB, n int) *graph.Graph
	}{{"overwriting", loopOf}, {"window", windowOf}, {"beside10KB", besideOf}, {"history", messagesOf}} {
		for _, n := range []int{100, 1000, 10_000} {
			for _, s := range []struct {
				name string
				open func(testing.TB) journal.Store
			}{{"memory", func(testing.TB) journal.Store { return journal.NewMemory() }}, {"sqlite", openSQLite}} {
				b.Run(fmt.Sprintf("%s/steps=%d/%s", w.name, n, s.name), func(b *testing.B) {
					c := &counting{Store: s.open(b)}
					r := &graph.Runner{Graph: w.graph(b, n), Store: c}
					if _, err := r.Invoke(b.Context(), graph.Input{Thread: "t"}); err != nil {
						b.Fatal(err)
					}
					b.ReportAllocs()
					for b.Loop() {
						c.records, c.bytes = 0, 0
						if _, err := r.InvokeResume(b.Context(), graph.Resume{Thread: "t"}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(c.records), "records")
					b.ReportMetric(float64(c.bytes), "bytes-read")
				})
			}
		}
	}
}
