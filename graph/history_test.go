package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// pruned prunes a thread and returns the numbers of its first and last record.
func pruned(t testing.TB, st journal.Store, thread string, k history.Keep) (first, last int64) {
	t.Helper()
	got, err := history.Prune(t.Context(), st, thread, k)
	if err != nil {
		t.Fatal(err)
	}
	recs := records(t, st, thread)
	if recs[0].Seq != got {
		t.Fatalf("Prune says that record %d is the oldest; it is %d", got, recs[0].Seq)
	}
	return got, recs[len(recs)-1].Seq
}

// parked drives everything to the pause of that number, and returns false when
// there is none.
func parked(t testing.TB, r *graph.Runner, pause int) bool {
	t.Helper()
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r", Label: "parked"})
	for range pause {
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == graph.Done {
			return false
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{answer(res.Questions[0])}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// However short a thread is cut, wherever it was parked, it is listed as before and
// continues to the same end.
func TestPruneKeepsWhatAResumeNeeds(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		e := newEverything(t)
		mem := journal.NewMemory()
		want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: mem}, true))
		r := &graph.Runner{Graph: e.g, Store: st}
		for pause := 0; ; pause++ {
			if !parked(t, r, pause) {
				break
			}
			was := described(t, st, "t")
			before, err := history.Inspect(t.Context(), st, "t", 0)
			if err != nil {
				t.Fatal(err)
			}
			first, last := pruned(t, st, "t", history.Keep{})
			if first != last {
				t.Fatalf("pause %d: %d to %d are left", pause, first, last)
			}
			is := described(t, st, "t")
			was.Head, was.From = is.Head, is.From
			if diff := cmp.Diff(was, is); diff != "" {
				t.Fatalf("pause %d: the listing has changed:\n%s", pause, diff)
			}
			after, err := history.Inspect(t.Context(), st, "t", 0)
			before.Head = last
			if diff := cmp.Diff(before, after); err != nil || diff != "" {
				t.Fatalf("pause %d: %v\n%s", pause, err, diff)
			}
			if diff := cmp.Diff(want, outcome(resumed(t, r, "t"))); diff != "" {
				t.Fatalf("pause %d:\n%s", pause, diff)
			}
			if err := st.Prune(t.Context(), "t", 1<<60); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Cut again and again while the run continues, with every number of records to keep:
// what is kept stays whole.
func TestPruneAtEveryCut(t *testing.T) {
	e := newEverything(t)
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: journal.NewMemory()}, true))
	shortened := 0
	for keep := range 40 {
		st := journal.NewMemory()
		r := &graph.Runner{Graph: e.g, Store: st}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		for res.Status == graph.Waiting {
			was := records(t, st, "t")
			first, last := pruned(t, st, "t", history.Keep{Records: keep})
			if first > 1 {
				shortened++
			}
			if kept := was[max(0, len(was)-keep):]; len(kept) > 0 && first > kept[0].Seq {
				t.Fatalf("record %d was to be kept; the oldest is %d", kept[0].Seq, first)
			}
			for seq := first; seq <= last; seq++ {
				if _, err := history.Inspect(t.Context(), st, "t", seq); err != nil {
					t.Fatal(err)
				}
			}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{answer(res.Questions[0])}})
		}
		if diff := cmp.Diff(want, outcome(res)); err != nil || diff != "" {
			t.Fatalf("keeping %d: %v\n%s", keep, err, diff)
		}
	}
	if shortened == 0 {
		t.Error("nothing was ever pruned")
	}
}

// calendar is a clock that shows the day it is set to.
type calendar struct{ day int }

func (c *calendar) Now() time.Time { return time.Date(2030, 1, c.day, 12, 0, 0, 0, time.UTC) }

func (c *calendar) Wait(context.Context, time.Duration) error { return nil }

// conversation has a run a day. What each step overwrites is so large that a
// snapshot follows the second: a day is start, step, step, snapshot, end.
func conversation(t testing.TB, st journal.Store, days int) *graph.Runner {
	t.Helper()
	big := graph.Last[string]("big")
	fill := func(letter string, n int) graph.Func {
		return func(context.Context, graph.State) (graph.Update, error) {
			return graph.Put(big.Set(strings.Repeat(letter, n)), lines.Set([]string{letter})), nil
		}
	}
	g := compile(t, graph.Def{Name: "day", Keys: []graph.AnyKey{big, lines}, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: fill("a", 90_000)}, {Name: "b", Run: fill("b", 80_000)}}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)}})
	clock := &calendar{}
	r := &graph.Runner{Graph: g, Store: st, Clock: clock}
	for clock.day = 1; clock.day <= days; clock.day++ {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
	}
	for i, rec := range records(t, st, "t") {
		want := []journal.Kind{journal.KindStart, journal.KindStep, journal.KindStep, journal.KindSnapshot, journal.KindEnd}[i%5]
		if rec.Kind != want {
			t.Fatalf("record %d is a %s, want a %s", rec.Seq, rec.Kind, want)
		}
	}
	return r
}

func TestPruneByRecordsStepsAndAge(t *testing.T) {
	noon := func(day int) time.Time { return (&calendar{day}).Now() }
	for _, c := range []struct {
		name string
		keep history.Keep
		want int64 // the oldest record left of 40
	}{
		{"nothing", history.Keep{}, 41},
		{"everything", history.Keep{Records: 100}, 1},
		{"the last record", history.Keep{Records: 1}, 39},
		{"to a snapshot", history.Keep{Records: 2}, 39},
		{"past a snapshot", history.Keep{Records: 3}, 34},
		{"to an older snapshot", history.Keep{Records: 7}, 34},
		{"past an older snapshot", history.Keep{Records: 8}, 29},
		{"two steps", history.Keep{Steps: 2}, 34},
		{"three steps", history.Keep{Steps: 3}, 29},
		{"since a day", history.Keep{Since: noon(5)}, 19},
		{"since ever", history.Keep{Since: noon(1)}, 1},
		{"since tomorrow", history.Keep{Since: noon(9)}, 41},
		{"what any rule names", history.Keep{Records: 3, Steps: 5, Since: noon(8)}, 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := journal.NewMemory()
			r := conversation(t, st, 8)
			before, err := r.State(t.Context(), "t", 0)
			if err != nil {
				t.Fatal(err)
			}
			if first, _ := pruned(t, st, "t", c.keep); first != c.want {
				t.Errorf("record %d is the oldest, want %d", first, c.want)
			}
			after, err := r.State(t.Context(), "t", 0)
			if diff := cmp.Diff(lines.Get(before), lines.Get(after)); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
			if c.want > 1 {
				if _, err = r.State(t.Context(), "t", c.want-1); !errors.Is(err, journal.ErrNoPoint) {
					t.Errorf("a pruned point: %v", err)
				}
			}
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// If a drive may be running, nothing is appended.
func TestPruneLeavesARunningThreadAlone(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	var r *graph.Runner
	g := compile(t, graph.Def{Name: "self", Keys: []graph.AnyKey{lines}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			first, err := history.Prune(ctx, st, "t", history.Keep{})
			if first != 1 && err == nil {
				err = errors.New("pruned beneath a drive")
			}
			return graph.Put(lines.Set([]string{"a"})), err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r = &graph.Runner{Graph: g, Store: st}
	if res, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v", res.Status, err)
	}
	if _, err := history.Prune(ctx, st, "unknown", history.Keep{}); !errors.Is(err, journal.ErrNoThread) {
		t.Errorf("an unknown thread: %v", err)
	}
	race := &behind{Store: st, first: func() {
		if _, err := r.Edit(ctx, "t", lines.Set(nil)); err != nil {
			t.Error(err)
		}
	}}
	if _, err := history.Prune(ctx, race, "t", history.Keep{}); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("a thread that moves on: %v", err)
	}
	if n := len(records(t, st, "t")); n != 4 {
		t.Errorf("%d records are left of start, step, end and edit", n)
	}
}

// Forks keep their origin, and what they copied, when either side is pruned.
func TestPruneOfAForkAndOfItsOrigin(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
		fork(t, st, "t", 2, "u")
		pruned(t, st, "t", history.Keep{})
		if first, _ := pruned(t, st, "u", history.Keep{}); first != 1 {
			t.Errorf("a fork of one record was cut at %d", first)
		}
		if diff := cmp.Diff([]string{"a", "b"}, lines.Get(resumed(t, r, "u").State)); diff != "" {
			t.Error(diff)
		}
		first, last := pruned(t, st, "u", history.Keep{})
		if first != last {
			t.Errorf("%d to %d are left", first, last)
		}
		if i := described(t, st, "u"); i.From != (journal.Point{Thread: "t", Seq: 2}) || i.Status != graph.Done {
			t.Errorf("listed as %+v", i)
		}
		if diff := cmp.Diff([]string{`5 snapshot "" 2 [] <-  0`}, checkpoints(t, st, "u")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{`snapshot "" 2`}, blamed(t, st, "u", "lines")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDelete(t *testing.T) {
	k := graph.Last[int]("k")
	g := compile(t, graph.Def{Name: "g", Keys: []graph.AnyKey{k}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: writes(k.Set(1))}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r := kept(g)
	if _, err := start(t, r); err != nil {
		t.Fatal(err)
	}
	if err := history.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
		t.Fatal(err)
	}
	if err := history.Delete(t.Context(), r.Store, thread); err != nil {
		t.Fatal(err)
	}
	for i, err := range history.Entries(t.Context(), r.Store, thread) {
		t.Error("left:", i, err)
	}
	if err := history.Delete(t.Context(), r.Store, thread); !errors.Is(err, journal.ErrNoThread) {
		t.Errorf("error %v", err)
	}
	if s, err := r.State(t.Context(), "copy", 0); err != nil || k.Get(s) != 1 {
		t.Errorf("the fork: %v", err)
	}
	if res, err := start(t, r); err != nil || res.Status != graph.Done {
		t.Errorf("the name cannot be used again: %v %v", res.Status, err)
	}
}

// A thread is not deleted under a drive.
func TestDeleteRefusesAThreadThatIsDriven(t *testing.T) {
	var deleted error
	r := &graph.Runner{Store: journal.NewMemory()}
	r.Graph = compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a",
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			deleted = history.Delete(ctx, r.Store, thread)
			return graph.Update{}, nil
		}}}})
	res, err := start(t, r)
	if busy := (*graph.BusyError)(nil); err != nil || res.Status != graph.Done || !errors.As(deleted, &busy) {
		t.Errorf("%v %v; Delete: %v", res.Status, err, deleted)
	}
}

// A run that is ended by hand is over for all: listings, resumes, and the process that starts
// another one after it.
func TestAbandon(t *testing.T) {
	asks := parallel(t, graph.Node{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		return graph.Put(only.Set("answered")), err
	}})
	r := kept(asks)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	at, err := history.Abandon(t.Context(), r.Store, thread, "no longer wanted")
	if err != nil || at != res.Head+1 {
		t.Fatal(at, err)
	}
	s, err := history.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil || s.Status != graph.Abandoned || s.Reason != "no longer wanted" || s.Run != res.Run {
		t.Errorf("%+v, %v", s, err)
	}
	for info, err := range r.Store.Threads(t.Context(), "") {
		d, failed := history.Describe(info)
		if err != nil || failed != nil || d.Status != graph.Abandoned || d.Reason != s.Reason || d.Run != res.Run || len(d.Questions) != 0 {
			t.Errorf("listed as %+v, %v, %v", d, err, failed)
		}
	}
	again, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread})
	if err != nil || again.Status != graph.Abandoned {
		t.Errorf("resumed: %v, %v", again.Status, err)
	}
	answer := []graph.Answer{{ID: res.Questions[0].ID, Value: "x"}}
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: answer}); !isAnswerError(err) {
		t.Errorf("answered: %v", err)
	}
	if at, err := history.Abandon(t.Context(), r.Store, thread, "again"); err != nil || at != 0 {
		t.Errorf("again: %d, %v", at, err)
	}
	if again, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || again.Head != s.Head {
		t.Errorf("a run that was over was ended: %+v, %v", again, err)
	}
	res, err = start(t, r)
	is(t, graph.Waiting, res, err)
	if _, err := history.Abandon(t.Context(), r.Store, "unknown", ""); !errors.Is(err, journal.ErrNoThread) {
		t.Errorf("an unknown thread: %v", err)
	}
}

func isAnswerError(err error) bool {
	var answer *graph.AnswerError
	return errors.As(err, &answer)
}

// The time since a crash is not counted as the run's.
func TestAbandonAfterACrash(t *testing.T) {
	r := kept(parallel(t, say("a")))
	res, err := start(t, r)
	is(t, graph.Done, res, err)
	crashed := copyBefore(t, r.Store, nth(journal.KindEnd, 1))
	was, err := history.Inspect(t.Context(), crashed, thread, 0)
	if err != nil || was.Status != graph.Crashed {
		t.Fatalf("%+v, %v", was, err)
	}
	if _, err := history.Abandon(t.Context(), crashed, thread, ""); err != nil {
		t.Fatal(err)
	}
	now, err := history.Inspect(t.Context(), crashed, thread, 0)
	if err != nil || now.Status != graph.Abandoned || now.Active != was.Active {
		t.Errorf("%+v, %v", now, err)
	}
}

// tree writes a lineage, two spaces a level.
func tree(branches []history.Branch, level int) (text []string) {
	for _, b := range branches {
		line := strings.Repeat("  ", level) + b.Thread + " " + b.Status.String()
		if b.From.Seq > 0 {
			line += fmt.Sprintf(" <- %s %d", b.From.Thread, b.From.Seq)
		}
		text = append(append(text, line), tree(b.Forks, level+1)...)
	}
	return text
}

func TestLineage(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st journal.Store) {
		ctx := t.Context()
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		for _, thread := range []string{"x", "other"} {
			if _, err := r.Invoke(ctx, graph.Input{Thread: thread}); err != nil {
				t.Fatal(err)
			}
		}
		fork(t, st, "x", 3, "x-late")
		fork(t, st, "x", 1, "x-z")
		fork(t, st, "x", 1, "x-b")
		resumed(t, r, "x-b")
		fork(t, st, "x-b", 2, "x-b-deep")
		fork(t, st, "x", 2, "stray")
		if _, err := history.Prune(ctx, st, "x-b", history.Keep{}); err != nil {
			t.Fatal(err)
		}
		l, err := history.Lineage(ctx, st, "")
		want := []string{"other done", "x done", "  x-b done <- x 1", "    x-b-deep paused <- x-b 2", "  x-z paused <- x 1", "  stray paused <- x 2", "  x-late paused <- x 3"}
		if diff := cmp.Diff(want, tree(l, 0)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		l, err = history.Lineage(ctx, st, "x-b")
		want = []string{"x-b done <- x 1", "  x-b-deep paused <- x-b 2"}
		if diff := cmp.Diff(want, tree(l, 0)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		if l, err := history.Lineage(ctx, st, "unknown"); err != nil || l != nil {
			t.Errorf("%v, %v", l, err)
		}
	})
}

// A thread that was deleted and forked again from its own fork is not lost.
func TestLineageOfACircle(t *testing.T) {
	ctx := t.Context()
	st := journal.NewMemory()
	r := &graph.Runner{Graph: said(t, "a"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "x"}); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "x", 0, "y")
	if err := st.Prune(ctx, "x", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "y", 0, "x")
	l, err := history.Lineage(ctx, st, "")
	if diff := cmp.Diff([]string{"x done <- y 1", "  y done <- x 3"}, tree(l, 0)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Values of keys are in no event and no error, and in the cache only as their
// codec has them.
func TestValuesStayInTheirKeys(t *testing.T) {
	const word = "whisper"
	secret := graph.Last[string]("secret").WithCodec(redacted())
	refuses := graph.Fold("refuses", func(_ string, _ bool, _ string) (string, error) { return "", errors.New("refused") })
	stranger := graph.Last[string]("stranger")
	mistyped := graph.Last[[]string]("secret")
	tells := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Put(secret.Set(word)), err
	}
	cache := &listedCache{}
	for name, nodes := range map[string][]graph.Node{
		"written":  {{Name: "a", Run: writes(secret.Set(word)), Cache: &graph.CachePolicy{Keys: []graph.AnyKey{secret}}}},
		"asked":    {{Name: "a", Run: tells}},
		"conflict": {{Name: "a", Run: writes(secret.Set(word))}, {Name: "b", Run: writes(secret.Set(word))}},
		"refused":  {{Name: "a", Run: writes(refuses.Set(word))}},
		"unknown":  {{Name: "a", Run: writes(stranger.Set(word))}},
		"mistyped": {{Name: "a", Run: writes(mistyped.Set([]string{word}))}},
		"child":    {{Name: "a", Inherit: true, Graph: compile(t, graph.Def{Name: "c", Keys: []graph.AnyKey{secret}, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: tells}}, Edges: []graph.Edge{edge("x", graph.End)}})}},
	} {
		d := graph.Def{Name: "g", Keys: []graph.AnyKey{secret, refuses}, Nodes: nodes}
		for _, n := range nodes {
			d.Start, d.Edges = append(d.Start, n.Name), append(d.Edges, edge(n.Name, graph.End))
		}
		r := &graph.Runner{Graph: compile(t, d), Store: journal.NewMemory(), Cache: cache}
		var told bytes.Buffer
		for e, err := range r.Run(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{secret.Set(word)}, Topics: graph.AllTopics}) {
			line, fault := json.Marshal(e)
			if fault != nil {
				t.Fatal(fault)
			}
			fmt.Fprintln(&told, string(line), err)
		}
		for e, err := range history.Entries(t.Context(), r.Store, thread) {
			fmt.Fprintln(&told, e, err)
		}
		if bytes.Contains(told.Bytes(), []byte(word)) || told.Len() < 200 {
			t.Errorf("%s: %s", name, &told)
		}
	}
	if len(cache.values) == 0 || bytes.Contains(bytes.Join(cache.values, nil), []byte(word)) {
		t.Errorf("the cache holds %q", cache.values)
	}
}

// listedCache keeps what it is given, and finds nothing.
type listedCache struct {
	mu     sync.Mutex
	values [][]byte
}

func (c *listedCache) Get(context.Context, string) ([]byte, bool, error) { return nil, false, nil }

func (c *listedCache) Set(_ context.Context, key string, value []byte, _ time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, []byte(key), bytes.Clone(value))
	return nil
}

func (c *listedCache) Clear(context.Context, string) error { return nil }
