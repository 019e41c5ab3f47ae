package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

func TestChainRunsInOrder(t *testing.T) {
	log := graph.Append[string]("log")
	say := func(s string) graph.Func {
		return func(context.Context, graph.State) (graph.Update, error) { return graph.Put(log.Set([]string{s})), nil }
	}
	g := compile(t, graph.Def{
		Name: "chain", Keys: []graph.AnyKey{log}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: say("a")}, {Name: "b", Run: say("b")}, {Name: "c", Run: say("c")}},
		Edges: []graph.Edge{edge("a", "b"), edge("b", "c"), edge("c", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err != nil || res.Status != graph.Done || res.Steps != 3 {
		t.Fatalf("result %+v, error %v", res, err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, log.Get(res.State)); diff != "" {
		t.Error(diff)
	}
}

func edge(from string, to ...string) graph.Edge { return graph.Edge{From: []string{from}, To: to} }

func compile(t testing.TB, d graph.Def) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func contains(s, sub string) bool {
	for i := range len(s) - len(sub) + 1 {
		if s[i:i+len(sub)] == sub {
			return true
		}
	}
	return false
}

func TestTwoWritersConflict(t *testing.T) {
	k := graph.Last[int]("k")
	write := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(k.Set(1)), nil }
	g := compile(t, graph.Def{
		Name: "two", Keys: []graph.AnyKey{k}, Start: []string{"a", "b"},
		Nodes: []graph.Node{{Name: "a", Run: write}, {Name: "b", Run: write}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	var c *graph.ConflictError
	if !errors.As(err, &c) || res.Status != graph.Failed {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, c.Nodes); diff != "" {
		t.Error(diff)
	}
}

func TestRetrySeesTheSameInputAndKeepsEffects(t *testing.T) {
	n := graph.Sum[int]("n")
	calls, effects := 0, 0
	g := compile(t, graph.Def{
		Name: "retry", Keys: []graph.AnyKey{n}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Retry: graph.Retry{Attempts: 3}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			calls++
			v, err := graph.Do(ctx, "pay", func(context.Context) (int, error) { effects++; return 7, nil })
			if err != nil {
				return graph.Update{}, err
			}
			if graph.Attempt(ctx) < 3 {
				return graph.Put(n.Set(100)), fmt.Errorf("attempt %d", graph.Attempt(ctx))
			}
			return graph.Put(n.Set(v)), nil
		}}},
		Edges: []graph.Edge{edge("a", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	if err != nil || calls != 3 || effects != 1 || n.Get(res.State) != 7 {
		t.Fatalf("calls %d, effects %d, n %d, error %v", calls, effects, n.Get(res.State), err)
	}
}

func TestOnErrorTakesOver(t *testing.T) {
	k := graph.Last[string]("k")
	g := compile(t, graph.Def{
		Name: "recover", Keys: []graph.AnyKey{k}, Start: []string{"a"},
		Nodes: []graph.Node{
			{Name: "a", OnError: "b", Run: func(context.Context, graph.State) (graph.Update, error) { panic("boom") }},
			{Name: "b", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
				return graph.Put(k.Set(graph.Cause(ctx))), nil
			}},
		},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", graph.End)},
	})
	res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{})
	if err != nil || !contains(k.Get(res.State), "boom") {
		t.Fatalf("k %q, error %v", k.Get(res.State), err)
	}
}

func TestTimeouts(t *testing.T) {
	wait := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		<-ctx.Done()
		return graph.Update{}, ctx.Err()
	}
	def := graph.Def{Name: "slow", Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: wait}}, Edges: []graph.Edge{edge("a", graph.End)}}
	def.Nodes[0].Timeout = time.Millisecond
	res, err := (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	if res.Status != graph.Failed || !errors.Is(err, graph.ErrTimeout) {
		t.Errorf("node: %v, %v", res.Status, err)
	}
	def.Nodes = []graph.Node{{Name: "a", Run: wait}}
	def.Timeout = time.Millisecond
	res, err = (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	var l *graph.LimitError
	if res.Status != graph.TimedOut || !errors.As(err, &l) || !l.During {
		t.Errorf("graph: %v, %v", res.Status, err)
	}
}

func TestVisitAndStepLimits(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	def := graph.Def{Name: "loop", Start: []string{"a"}, MaxVisits: 3, Nodes: []graph.Node{{Name: "a", Run: nop}}, Edges: []graph.Edge{edge("a", "a")}}
	res, err := (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	var l *graph.LimitError
	if res.Status != graph.VisitLimit || !errors.As(err, &l) || l.Count != 4 || res.Steps != 3 {
		t.Errorf("visits: %v after %d steps, %v", res.Status, res.Steps, err)
	}
	def.MaxVisits, def.MaxSteps = 0, 5
	res, err = (&graph.Runner{Graph: compile(t, def)}).Invoke(t.Context(), graph.Input{})
	if res.Status != graph.StepLimit || err == nil || res.Steps != 5 {
		t.Errorf("steps: %v after %d steps, %v", res.Status, res.Steps, err)
	}
}

func TestHaltDropsSiblings(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	g := compile(t, graph.Def{Name: "halt", Start: []string{"a", "b"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: "out"}}, nil
		}}, {Name: "b", Run: nop}, {Name: "c", Run: nop}},
		Edges: []graph.Edge{edge("a", graph.End), edge("b", "c"), edge("c", graph.End)}})
	var dropped []string
	var res graph.Result
	for e, err := range (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Topics: graph.AllTopics}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case graph.StepCommitted:
			dropped = append(dropped, b.Dropped...)
		case graph.RunEnded:
			res = b.Result
		}
	}
	if diff := cmp.Diff([]string{"c"}, dropped); diff != "" || res.Value != "out" || res.Status != graph.Done {
		t.Errorf("%s, value %v, status %v", diff, res.Value, res.Status)
	}
}

// idle does nothing.
func idle(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }

// writes is a node that writes.
func writes(ws ...graph.Write) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) { return graph.Put(ws...), nil }
}

// fails is a node that fails.
func fails(why string) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, errors.New(why) }
}

// asks is a node that asks for a text and hands it to then.
func asks(then func(answer string)) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		if err == nil && then != nil {
			then(a)
		}
		return graph.Update{}, err
	}
}

// branch is an edge with a Pick that sees the state.
func branch(from string, cases map[string]string, pick func(graph.State) string) graph.Edge {
	return graph.Edge{From: []string{from}, Cases: cases, Pick: func(s graph.State) ([]string, error) { return []string{pick(s)}, nil }}
}

func join(to string, from ...string) graph.Edge { return graph.Edge{From: from, To: []string{to}} }

// kept is a Runner with a store of its own.
func kept(g *graph.Graph) *graph.Runner {
	return &graph.Runner{Graph: g, Store: journal.NewMemory()}
}

// The thread of all scenarios.
const thread = "t"

func start(t testing.TB, r *graph.Runner, set ...graph.Write) (graph.Result, error) {
	t.Helper()
	return r.Invoke(t.Context(), graph.Input{Thread: thread, Set: set})
}

func resume(t testing.TB, r *graph.Runner, answers ...graph.Answer) (graph.Result, error) {
	t.Helper()
	return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: answers})
}

// is requires a status, and an error where the status is bad news.
func is(t testing.TB, want graph.Status, res graph.Result, err error) graph.Result {
	t.Helper()
	bad := want != graph.Done && want != graph.Waiting && want != graph.Paused
	if res.Status != want || (err != nil) != bad {
		t.Fatalf("status %v, want %v; error %v", res.Status, want, err)
	}
	return res
}

func ids(qs []graph.Question) (ids []string) {
	for _, q := range qs {
		ids = append(ids, q.ID)
	}
	return ids
}

// says answers a question with a text.
func says(id, text string) graph.Answer { return graph.Answer{ID: id, Value: text} }

// copyBefore returns the thread as a process left it that died before the first record
// for which stop is true.
func copyBefore(t testing.TB, s journal.Store, stop func(journal.Record) bool) *journal.Memory {
	t.Helper()
	m := journal.NewMemory()
	recs := journalOf(t, s, thread)
	if i := slices.IndexFunc(recs, stop); i >= 0 {
		recs = recs[:i]
	}
	if err := m.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	return m
}

// nth stops before the nth record of a kind.
func nth(k journal.Kind, n int) func(journal.Record) bool {
	return func(r journal.Record) bool {
		if r.Kind == k {
			n--
		}
		return n == 0
	}
}

// A tally counts, from any goroutine.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
	return c.n[what]
}

func (c *tally) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// counts is a node that counts that it ran.
func (c *tally) counts(what string) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) {
		c.add(what)
		return graph.Update{}, nil
	}
}

var counter = graph.Last[int]("count")

func inc(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Put(counter.Set(counter.Get(s) + 1)), nil
}

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

// growing are graphs that grow with a number: of steps, of tasks in a step, of
// effects in a task, of children. What a run costs must grow with it, not faster.
// small is where what a run costs whatever its size weighs little.
var growing = []struct {
	name  string
	small int
	graph func(t testing.TB, n int) *graph.Graph
}{
	{"chain", 500, chainOf},
	{"fan", 250, fanOf},
	{"join", 250, joinOf},
	{"loop", 2000, loopOf},
	{"messages", 500, messagesOf},
	{"window", 1000, windowOf},
	{"beside", 2000, besideOf},
	{"effects", 500, effectsOf},
	{"children", 250, childrenOf},
	{"nested", 250, nestedOf},
}

// joinOf is n nodes side by side that one waits for.
func joinOf(t testing.TB, n int) *graph.Graph {
	got := graph.Append[int]("got")
	d := graph.Def{Name: "join", Keys: []graph.AnyKey{got}, Nodes: []graph.Node{{Name: "all", Run: noop}}, Edges: []graph.Edge{edge("all", graph.End)}}
	for i := range n {
		name := fmt.Sprint("n", i)
		d.Start = append(d.Start, name)
		d.Nodes = append(d.Nodes, graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(got.Set([]int{i})), nil
		}})
	}
	d.Edges = append(d.Edges, graph.Edge{From: d.Start, To: []string{"all"}})
	return compile(t, d)
}

func noop(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }

// besideOf counts to n next to a text that no step touches.
func besideOf(t testing.TB, n int) *graph.Graph {
	return untilCounted(t, graph.Node{Name: "a", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		u := graph.Put(counter.Set(counter.Get(s) + 1))
		if counter.Get(s) == 0 {
			u.Writes = append(u.Writes, still.Set(strings.Repeat("x", 10_000)))
		}
		return u, nil
	}}, n)
}

var still = graph.Last[string]("still")

// untilCounted runs a node again until the count is n.
func untilCounted(t testing.TB, node graph.Node, n int) *graph.Graph {
	again, stop := []string{"again"}, []string{"stop"}
	return compile(t, graph.Def{Name: "counted", Keys: []graph.AnyKey{counter, still}, Start: []string{node.Name}, Nodes: []graph.Node{node},
		Edges: []graph.Edge{{From: []string{node.Name}, Cases: map[string]string{"again": node.Name, "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if counter.Get(s) < n {
				return again, nil
			}
			return stop, nil
		}}}})
}

// effectsOf is one node with n effects.
func effectsOf(t testing.TB, n int) *graph.Graph {
	return compile(t, graph.Def{Name: "effects", Keys: []graph.AnyKey{counter}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			sum := 0
			for range n {
				v, err := graph.Do(ctx, "one", func(context.Context) (int, error) { return 1, nil })
				if err != nil {
					return graph.Update{}, err
				}
				sum += v
			}
			return graph.Put(counter.Set(sum)), nil
		}}},
		Edges: []graph.Edge{edge("a", graph.End)}})
}

// childrenOf is n concurrent children, of three steps each.
func childrenOf(t testing.TB, n int) *graph.Graph {
	return compile(t, graph.Def{Name: "children", Keys: []graph.AnyKey{counter}, Start: []string{"split"},
		Nodes: []graph.Node{
			{Name: "split", Routes: []string{"child"}, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Send: manySends("child", n)}, nil
			}},
			{Name: "child", Graph: chainOf(t, 3)},
		}, Edges: []graph.Edge{edge("child", graph.End)}})
}

func manySends(to string, n int) []graph.Send {
	l := make([]graph.Send, n)
	for i := range l {
		l[i].To = to
	}
	return l
}

// nestedOf is n children one after the other, of three steps each.
func nestedOf(t testing.TB, n int) *graph.Graph {
	return untilCounted(t, graph.Node{Name: "child", Graph: chainOf(t, 3), Out: func(s graph.State, _ graph.Child) (graph.Update, error) {
		return graph.Put(counter.Set(counter.Get(s) + 1)), nil
	}}, n)
}

// exponent is how fast a cost grows from n to 4n: 1 is in proportion, 2 with the
// square.
func exponent(small, large uint64) float64 {
	return math.Log(float64(large)/float64(small)) / math.Log(4)
}

// maxExponent allows for numbers that get longer.
const maxExponent = 1.05

// Bytes allocated, journaled and on the disk grow with a run, not faster. They do
// not depend on how busy the machine is.
func TestBytesGrowInProportion(t *testing.T) {
	costs := []struct {
		name string
		of   func(t testing.TB, g *graph.Graph) uint64
	}{
		{"allocated without a store", func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, nil, 0) }},
		{"allocated with all events", func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, nil, graph.AllTopics) }},
		{"allocated with a store", func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, openSQLite(t), 0) }},
		{"journaled", journaledBy},
		{"in a SQLite file", filedBy},
	}
	for _, s := range growing {
		t.Run(s.name, func(t *testing.T) {
			small, large := s.graph(t, s.small), s.graph(t, 4*s.small)
			for _, c := range costs {
				a, b, most := c.of(t, small), c.of(t, large), maxExponent
				if s.name == "chain" && strings.HasSuffix(c.name, "with a store") {
					most = 1.25 // a snapshot names every node that has been visited
				}
				if e := exponent(a, b); e > most {
					t.Errorf("%s: %d bytes for %d, %d bytes for %d: exponent %.3f", c.name, a, s.small, b, 4*s.small, e)
				} else {
					t.Logf("%s: %d bytes for %d: exponent %.3f", c.name, b, 4*s.small, e)
				}
			}
		})
	}
}

// allocatedBy counts the bytes that a run allocates. Its tasks run one after the other: how many goroutines they need otherwise is up to
// the scheduler.
func allocatedBy(t testing.TB, g *graph.Graph, st journal.Store, topics graph.Topic) uint64 {
	t.Helper()
	r := &graph.Runner{Graph: g, Store: st, Durability: graph.EveryStep, Executor: sequential{}}
	runtime.GC()
	runtime.GC() // what runs leave to each other is gone
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, err := range r.Run(t.Context(), graph.Input{Topics: topics}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// journaledBy counts the bytes of a run's records. Snapshots are not among them:
// how often they come is a matter of their own.
func journaledBy(t testing.TB, g *graph.Graph) uint64 {
	t.Helper()
	facts, snapshots := uint64(0), uint64(0)
	st := journal.NewMemory()
	if _, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	for r, err := range st.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n := uint64(len(r.Head) + len(r.Data)); r.Kind == journal.KindSnapshot {
			snapshots += n
		} else {
			facts += n
		}
	}
	if snapshots > facts*3/2 { // those of open children are larger than expected
		t.Errorf("the snapshots of a journal have %d bytes, its other records %d", snapshots, facts)
	}
	return facts
}

// filedBy counts the bytes of a run's database. How tasks at the same time share
// its transactions is up to the scheduler: here they run one after the other.
func filedBy(t testing.TB, g *graph.Graph) uint64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&graph.Runner{Graph: g, Store: st, Durability: graph.EveryStep, Executor: sequential{}}).Invoke(t.Context(), graph.Input{})
	if e := st.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(info.Size())
}

// counting counts what is read from a store.
type counting struct {
	journal.Store
	records, bytes int
}

func (c *counting) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range c.Store.Read(ctx, thread, r) {
			c.records++
			c.bytes += len(rec.Head) + len(rec.Data)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// What is read to open a thread is bounded by its state, not by its length.
func TestOpeningAThreadIsBounded(t *testing.T) {
	for _, s := range []struct {
		name    string
		graph   func(t testing.TB, n int) *graph.Graph
		records int // at most
		bytes   int
	}{
		{"loop", loopOf, 300, 20_000},
		{"window", windowOf, 300, 40_000},
		{"beside", besideOf, 500, 40_000},
	} {
		for _, n := range []int{1000, 2999, 10_000} {
			c := &counting{Store: journal.NewMemory()}
			r := &graph.Runner{Graph: s.graph(t, n), Store: c}
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
				t.Fatal(err)
			}
			c.records, c.bytes = 0, 0
			if _, err := r.State(t.Context(), "t", 0); err != nil {
				t.Fatal(err)
			}
			if c.records == 0 || c.records > s.records || c.bytes > s.bytes {
				t.Errorf("%s of %d steps: %d records of %d bytes are read to open it, at most %d of %d are due", s.name, n, c.records, c.bytes, s.records, s.bytes)
			}
		}
	}
}

// A step that does nothing but count costs this much, and no more: a small
// context for the node, the new state, and what the node itself makes.
func TestAllocationsOfATrivialStep(t *testing.T) {
	const steps = 1000
	g := loopOf(t, steps)
	for _, c := range []struct {
		name   string
		store  journal.Store
		topics graph.Topic
		most   float64 // a step
	}{
		{"without a reader", nil, 0, 4.1},
		{"all events", nil, graph.AllTopics, 9.1},
		{"in memory", journal.NewMemory(), 0, 10},
	} {
		r := &graph.Runner{Graph: g, Store: c.store}
		per := testing.AllocsPerRun(5, func() {
			for _, err := range r.Run(t.Context(), graph.Input{Topics: c.topics}) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}) / steps
		if per > c.most {
			t.Errorf("%s: %.2f allocations a step, at most %.1f", c.name, per, c.most)
		} else {
			t.Logf("%s: %.2f allocations a step", c.name, per)
		}
	}
}

// weighing counts the bytes that a store is given.
type weighing struct {
	journal.Store
	bytes, records int
}

func (w *weighing) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		w.bytes += len(r.Head) + len(r.Data)
	}
	w.records += len(recs)
	return w.Store.Append(ctx, thread, after, recs)
}

// forgetting keeps what a reader may start at and what follows it, so that what
// is left in memory is the engine's own.
type forgetting struct{ weighing }

func (f *forgetting) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if err := f.weighing.Append(ctx, thread, after, recs); err != nil {
		return err
	}
	if recs[len(recs)-1].Kind == journal.KindSnapshot {
		return f.Prune(ctx, thread, after+int64(len(recs)))
	}
	return nil
}

// A run of 100,000 journaled steps needs no more memory at its end than at its
// beginning, and its journal grows with the steps, not faster.
func TestALongRunIsFlatInMemoryAndLinearInBytes(t *testing.T) {
	const steps = 100_000
	bytesOf := func(n int) int {
		w := &forgetting{weighing{Store: journal.NewMemory()}}
		res, err := (&graph.Runner{Graph: loopOf(t, n), Store: w}).Invoke(t.Context(), graph.Input{})
		if err != nil || res.Status != graph.Done || res.Steps != n {
			t.Fatalf("%v after %d steps, %v", res.Status, res.Steps, err)
		}
		return w.bytes
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	small := bytesOf(steps / 10)
	before := heap()
	large := bytesOf(steps)
	if after := heap(); after > before+(4<<20) {
		t.Errorf("the heap grew from %d to %d bytes over the run", before, after)
	}
	if ratio := float64(large) / float64(small); ratio > 11 { // numbers have more digits
		t.Errorf("%d steps wrote %d bytes, %d steps wrote %d: %.2f times as much", steps/10, small, steps, large, ratio)
	}
	t.Logf("%.1f bytes a step", float64(large)/steps)
}

// A conversation of n messages costs bytes in proportion to n, not to n².
func TestAGrowingListIsStoredOnce(t *testing.T) {
	bytesOf := func(n int) int {
		w := &weighing{Store: journal.NewMemory()}
		if _, err := (&graph.Runner{Graph: messagesOf(t, n), Store: w}).Invoke(t.Context(), graph.Input{}); err != nil {
			t.Fatal(err)
		}
		return w.bytes
	}
	small, large := bytesOf(1000), bytesOf(4000)
	if ratio := float64(large) / float64(small); ratio > 5.5 {
		t.Errorf("1000 messages wrote %d bytes, 4000 wrote %d: %.2f times as much", small, large, ratio)
	}
}
