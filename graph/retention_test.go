package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// pruned prunes a thread and returns the numbers of its first and last record.
func pruned(t testing.TB, st graph.Store, thread string, k graph.Keep) (first, last int64) {
	t.Helper()
	got, err := graph.Prune(t.Context(), st, thread, k)
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
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		e := newEverything(t)
		mem := graph.NewMemory()
		want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: mem}, true))
		r := &graph.Runner{Graph: e.g, Store: st}
		for pause := 0; ; pause++ {
			if !parked(t, r, pause) {
				break
			}
			was := described(t, st, "t")
			before, err := graph.Inspect(t.Context(), st, "t", 0)
			if err != nil {
				t.Fatal(err)
			}
			first, last := pruned(t, st, "t", graph.Keep{})
			if first != last {
				t.Fatalf("pause %d: %d to %d are left", pause, first, last)
			}
			is := described(t, st, "t")
			was.Head, was.From = is.Head, is.From
			if diff := cmp.Diff(was, is); diff != "" {
				t.Fatalf("pause %d: the listing has changed:\n%s", pause, diff)
			}
			after, err := graph.Inspect(t.Context(), st, "t", 0)
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
	want := outcome(*e.finish(t, &graph.Runner{Graph: e.g, Store: graph.NewMemory()}, true))
	shortened := 0
	for keep := range 40 {
		st := graph.NewMemory()
		r := &graph.Runner{Graph: e.g, Store: st}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		for res.Status == graph.Waiting {
			was := records(t, st, "t")
			first, last := pruned(t, st, "t", graph.Keep{Records: keep})
			if first > 1 {
				shortened++
			}
			if kept := was[max(0, len(was)-keep):]; len(kept) > 0 && first > kept[0].Seq {
				t.Fatalf("record %d was to be kept; the oldest is %d", kept[0].Seq, first)
			}
			for seq := first; seq <= last; seq++ {
				if _, err := graph.Inspect(t.Context(), st, "t", seq); err != nil {
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
func conversation(t testing.TB, st graph.Store, days int) *graph.Runner {
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
		want := []graph.Kind{graph.KindStart, graph.KindStep, graph.KindStep, graph.KindSnapshot, graph.KindEnd}[i%5]
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
		keep graph.Keep
		want int64 // the oldest record left of 40
	}{
		{"nothing", graph.Keep{}, 41},
		{"everything", graph.Keep{Records: 100}, 1},
		{"the last record", graph.Keep{Records: 1}, 39},
		{"to a snapshot", graph.Keep{Records: 2}, 39},
		{"past a snapshot", graph.Keep{Records: 3}, 34},
		{"to an older snapshot", graph.Keep{Records: 7}, 34},
		{"past an older snapshot", graph.Keep{Records: 8}, 29},
		{"two steps", graph.Keep{Steps: 2}, 34},
		{"three steps", graph.Keep{Steps: 3}, 29},
		{"since a day", graph.Keep{Since: noon(5)}, 19},
		{"since ever", graph.Keep{Since: noon(1)}, 1},
		{"since tomorrow", graph.Keep{Since: noon(9)}, 41},
		{"what any rule names", graph.Keep{Records: 3, Steps: 5, Since: noon(8)}, 24},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := graph.NewMemory()
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
				if _, err = r.State(t.Context(), "t", c.want-1); !errors.Is(err, graph.ErrNoPoint) {
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
	st := graph.NewMemory()
	var r *graph.Runner
	g := compile(t, graph.Def{Name: "self", Keys: []graph.AnyKey{lines}, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			first, err := graph.Prune(ctx, st, "t", graph.Keep{})
			if first != 1 && err == nil {
				err = errors.New("pruned beneath a drive")
			}
			return graph.Put(lines.Set([]string{"a"})), err
		}}}, Edges: []graph.Edge{edge("a", graph.End)}})
	r = &graph.Runner{Graph: g, Store: st}
	if res, err := r.Invoke(ctx, graph.Input{Thread: "t"}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v, %v", res.Status, err)
	}
	if _, err := graph.Prune(ctx, st, "nobody", graph.Keep{}); !errors.Is(err, graph.ErrNoThread) {
		t.Errorf("an unknown thread: %v", err)
	}
	race := &behind{Store: st, first: func() {
		if _, err := r.Edit(ctx, "t", lines.Set(nil)); err != nil {
			t.Error(err)
		}
	}}
	if _, err := graph.Prune(ctx, race, "t", graph.Keep{}); !errors.Is(err, graph.ErrConflict) {
		t.Errorf("a thread that moves on: %v", err)
	}
	if n := len(records(t, st, "t")); n != 4 {
		t.Errorf("%d records are left of start, step, end and edit", n)
	}
}

// Forks keep their origin, and what they copied, when either side is pruned.
func TestPruneOfAForkAndOfItsOrigin(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
		fork(t, st, "t", 2, "u")
		pruned(t, st, "t", graph.Keep{})
		if first, _ := pruned(t, st, "u", graph.Keep{}); first != 1 {
			t.Errorf("a fork of one record was cut at %d", first)
		}
		if diff := cmp.Diff([]string{"a", "b"}, lines.Get(resumed(t, r, "u").State)); diff != "" {
			t.Error(diff)
		}
		first, last := pruned(t, st, "u", graph.Keep{})
		if first != last {
			t.Errorf("%d to %d are left", first, last)
		}
		if i := described(t, st, "u"); i.From != (graph.Point{Thread: "t", Seq: 2}) || i.Status != graph.Done {
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
