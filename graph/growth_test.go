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
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/store/sqlite"
)

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
	{"map", 500, mapOf},
	{"large map", 2000, largeMapOf},
}

var entries, lists = graph.Merge[string, int]("entries"), graph.Merge[string, []int]("lists")

// fillMaps writes n entries to each map.
func fillMaps(n int) graph.Update {
	m, l := make(map[string]int, n), make(map[string][]int, n)
	for i := range n {
		m[fmt.Sprint(i)], l[fmt.Sprint(i)] = i, []int{i}
	}
	return graph.Put(entries.Set(m), lists.Set(l))
}

// mapOf is n steps that read maps of a hundred entries, write one entry of each, and have a branch that reads them.
func mapOf(t testing.TB, n int) *graph.Graph {
	again, stop := []string{"again"}, []string{"stop"}
	return compile(t, graph.Def{Name: "map", Keys: []graph.AnyKey{entries, lists}, Start: []string{"fill"}, Nodes: []graph.Node{
		{Name: "fill", Run: func(context.Context, graph.State) (graph.Update, error) { return fillMaps(100), nil }},
		{Name: "step", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			return graph.Put(entries.Set(map[string]int{"0": entries.Get(s)["0"] + 1}), lists.Set(map[string][]int{"0": lists.Get(s)["1"]})), nil
		}}},
		Edges: []graph.Edge{edge("fill", "step"), {From: []string{"step"}, Cases: map[string]string{"again": "step", "stop": graph.End}, Pick: func(s graph.State) ([]string, error) {
			if entries.Get(s)["0"] < n {
				return again, nil
			}
			return stop, nil
		}}}})
}

// largeMapOf is three steps that read maps of n entries.
func largeMapOf(t testing.TB, n int) *graph.Graph {
	read := func(_ context.Context, s graph.State) (graph.Update, error) {
		if len(entries.Get(s)) != n || len(lists.Get(s)) != n {
			return graph.Update{}, fmt.Errorf("the maps have not %d entries", n)
		}
		return graph.Update{}, nil
	}
	return compile(t, graph.Def{Name: "largemap", Keys: []graph.AnyKey{entries, lists}, Start: []string{"fill"}, Nodes: []graph.Node{
		{Name: "fill", Run: func(context.Context, graph.State) (graph.Update, error) { return fillMaps(n), nil }},
		{Name: "a", Run: read}, {Name: "b", Run: read}, {Name: "c", Run: read}},
		Edges: []graph.Edge{edge("fill", "a"), edge("a", "b"), edge("b", "c"), edge("c", graph.End)}})
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
// not depend on how busy the machine is. make test measures what
// a SQLite file costs for two of the graphs, because the race detector makes SQLite slow; make soak measures it for all.
func TestBytesGrowInProportion(t *testing.T) {
	costs := []struct {
		name   string
		sqlite bool
		of     func(t testing.TB, g *graph.Graph) uint64
	}{
		{"allocated without a store", false, func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, nil, 0) }},
		{"allocated with all events", false, func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, nil, graph.AllTopics) }},
		{"allocated with a store", true, func(t testing.TB, g *graph.Graph) uint64 { return allocatedBy(t, g, openSQLite(t), 0) }},
		{"journaled", false, journaledBy},
		{"in a SQLite file", true, filedBy},
	}
	for _, s := range growing {
		t.Run(s.name, func(t *testing.T) {
			small, large := s.graph(t, s.small), s.graph(t, 4*s.small)
			for _, c := range costs {
				if c.sqlite && s.name != "chain" && s.name != "fan" && !testneed.Soaks() {
					continue
				}
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

// Children that ask are a part of the state until they are dropped, and are counted once after a resume.
func TestTheSizeOfChildrenThatAsk(t *testing.T) {
	text := graph.Last[string]("text")
	note := graph.Last[string]("note")
	child := compile(t, graph.Def{
		Name: "child",
		Keys: []graph.AnyKey{text, note},
		Nodes: []graph.Node{
			{Name: "write", Run: writes(text.Set(strings.Repeat("x", 600)))},
			{Name: "ask", Run: asks(nil)},
			{Name: "more", Run: writes(note.Set("a little more"))},
		},
		Start: []string{"write"},
		Edges: []graph.Edge{edge("write", "ask"), edge("ask", "more"), edge("more", graph.End)},
	})
	node := func(drops bool) *graph.Graph {
		return parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				var err error
				for i := range 5 {
					name := fmt.Sprint("c", i)
					_, err = graph.CallChild(ctx, name, "k")
					if !errors.Is(err, graph.ErrWaiting) || !drops {
						return graph.Update{}, err
					}
					if err = graph.DropChild(ctx, name); err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Put(list.Set([]string{"dropped"})), nil
			},
		})
	}
	r := kept(node(true))
	r.MaxState = 1000
	res, err := start(t, r)
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"dropped"}) {
		t.Error(list.Get(res.State))
	}
	r = kept(node(false))
	r.MaxState = 1000
	res, err = start(t, r)
	is(t, graph.Waiting, res, err)
	_, err = resume(t, r, says(res.Questions[0].ID, "yes"))
	var large *graph.StateSizeError
	if errors.As(err, &large) {
		t.Errorf("one child at a time is too large: %v", err)
	}
}

// A state as large as the limit is taken, and one that has a byte more is not.
func TestAStateAsLargeAsTheLimit(t *testing.T) {
	text := graph.Last[string]("text")
	run := func(limit int) (*graph.StateSizeError, error) {
		r := kept(compile(t, graph.Def{
			Name:  "size",
			Keys:  []graph.AnyKey{text},
			Nodes: []graph.Node{{Name: "a", Run: writes(text.Set(strings.Repeat("x", 100)))}},
			Start: []string{"a"},
			Edges: []graph.Edge{edge("a", graph.End)},
		}))
		r.MaxState = limit
		_, err := start(t, r)
		var large *graph.StateSizeError
		errors.As(err, &large)
		return large, err
	}
	large, err := run(10)
	if large == nil || large.Size < 100 {
		t.Fatal(err)
	}
	if _, err := run(large.Size); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if again, err := run(large.Size - 1); again == nil {
		t.Errorf("above the limit: %v", err)
	}
}
