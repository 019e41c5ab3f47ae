package graph_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/graph"
)

// checkpoints writes each on a line: seq, kind, path, step, what runs next, parent.
func checkpoints(t testing.TB, st graph.Store, thread string) (text []string) {
	t.Helper()
	for c, err := range graph.Checkpoints(t.Context(), st, thread) {
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, fmt.Sprintf("%d %s %q %d %v <- %s %d", c.Seq, c.Kind, c.Path, c.Step, c.Next, c.Parent.Thread, c.Parent.Seq))
	}
	return text
}

func TestCheckpointsOfAForkThatWasEdited(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		r := &graph.Runner{Graph: said(t, "a", "b", "c"), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(err)
		}
		fork(t, st, "t", 2, "u")
		if _, err := r.Edit(t.Context(), "u", lines.Set([]string{"x"})); err != nil {
			t.Fatal(err)
		}
		resumed(t, r, "u")
		for thread, want := range map[string][]string{
			"t": {`4 step "" 3 [] <- t 3`, `3 step "" 2 [c] <- t 2`, `2 step "" 1 [b] <- t 1`, `1 start "" 0 [a] <-  0`},
			"u": {`5 step "" 3 [] <- u 4`, `4 step "" 2 [c] <- u 2`, `2 edit "" 1 [b] <- u 1`, `1 fork "" 1 [b] <- t 2`},
			"":  nil,
		} {
			if diff := cmp.Diff(want, checkpoints(t, st, thread)); diff != "" {
				t.Errorf("thread %q:\n%s", thread, diff)
			}
		}
		var what string
		for e, err := range graph.History(t.Context(), st, "u") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == graph.KindEdit {
				what = e.What
			}
		}
		if what != "lines" {
			t.Errorf("the edit tells of %q", what)
		}
	})
}

// Each checkpoint of everything, those inside its children too, says what a fork
// there would run next.
func TestCheckpointsAgreeWithTheFold(t *testing.T) {
	e := newEverything(t)
	st := graph.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: st}, true)
	seen, inside := map[int64]bool{}, 0
	last := int64(1 << 60)
	for c, err := range graph.Checkpoints(t.Context(), st, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if seen[c.Seq] || c.Seq >= last {
			t.Fatalf("checkpoint %d comes again, or late", c.Seq)
		}
		seen[c.Seq], last = true, c.Seq
		if c.Path != "" {
			inside++
			continue
		}
		s, err := graph.Inspect(t.Context(), st, "t", c.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Next, c.Next, cmpopts.EquateEmpty()); diff != "" || s.Steps != c.Step {
			t.Errorf("checkpoint %d: step %d, not %d\n%s", c.Seq, c.Step, s.Steps, diff)
		}
	}
	if inside == 0 {
		t.Error("no checkpoint inside a child")
	}
}

func TestLeavingCheckpointsEarly(t *testing.T) {
	st := graph.NewMemory()
	r := &graph.Runner{Graph: chainOf(t, 5), Store: st}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	for c, err := range graph.Checkpoints(t.Context(), st, "t") {
		if err != nil || c.Step != 5 {
			t.Errorf("%+v, %v", c, err)
		}
		break
	}
}

func TestDiff(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	e := newEverything(t)
	r := &graph.Runner{Graph: e.g, Store: st}
	res := e.finish(t, r, true)
	fork(t, st, "t", 0, "u")
	for seq := int64(1); seq <= res.Head; seq++ {
		p := graph.Point{Thread: "t", Seq: seq}
		if d, err := graph.Diff(ctx, st, p, p); err != nil || d != nil {
			t.Fatalf("record %d differs from itself: %v, %v", seq, d, err)
		}
	}
	if d, err := graph.Diff(ctx, st, graph.Point{Thread: "t"}, graph.Point{Thread: "u"}); err != nil || d != nil {
		t.Fatalf("a fork differs: %v, %v", d, err)
	}
	if _, err := r.Edit(ctx, "u", topic.Set("other"), item.Set(7), hits.Set(2)); err != nil {
		t.Fatal(err)
	}
	got, err := graph.Diff(ctx, st, graph.Point{Thread: "t"}, graph.Point{Thread: "u"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s ...string) (b [][]byte) {
		for _, s := range s {
			b = append(b, []byte(s))
		}
		return b
	}
	want := []graph.Change{
		{Key: "hits", Tag: "int64", Was: text("14"), Is: text("16")},
		{Key: "item", Tag: "int", Is: text("7")},
		{Key: "topic", Tag: "string", Was: text("end"), Is: text("other")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a child in progress holds is compared under its path.
func TestDiffInsideAChild(t *testing.T) {
	e := newEverything(t)
	st := graph.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: st}, true)
	var first, second int64 // steps of one child, oldest first
	var path string
	for c, err := range graph.Checkpoints(t.Context(), st, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == graph.KindStep && c.Path != "" && (path == "" || c.Path == path) {
			path, first, second = c.Path, c.Seq, max(first, second)
		}
	}
	got, err := graph.Diff(t.Context(), st, graph.Point{Thread: "t", Seq: first}, graph.Point{Thread: "t", Seq: second})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, c := range got {
		if c.Path == path {
			keys = append(keys, c.Key)
		}
	}
	if diff := cmp.Diff([]string{"log", "n"}, keys); diff != "" {
		t.Errorf("%v\n%s", got, diff)
	}
}

// blamed writes each record that wrote a key on a line.
func blamed(t testing.TB, st graph.Store, thread, key string) (text []string) {
	t.Helper()
	ws, err := graph.Blame(t.Context(), st, thread, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws {
		line := fmt.Sprintf("%s %q %d", w.Kind, w.Path, w.Step)
		for _, by := range w.Tasks {
			line += fmt.Sprintf(" %s[%d]", by.Node, by.Index)
		}
		if w.From != (graph.Point{}) {
			line += fmt.Sprintf(" from %s", w.From.Thread)
		}
		text = append(text, line)
	}
	return text
}

func TestBlameNamesTheNodesOfParallelSteps(t *testing.T) {
	onEveryStore(t, func(t *testing.T, st graph.Store) {
		e := newEverything(t)
		r := &graph.Runner{Graph: e.g, Store: st}
		e.finish(t, r, true)
		for key, want := range map[string][]string{
			"hits":  {`step "" 1 work[1] work[2] work[3] work[4]`, `step "" 0 audit[0]`},
			"tags":  {`step "" 1 work[1] work[2] work[3] work[4]`},
			"notes": {`step "" 4 sub[1] sub[2]`, `step "" 2 gather[0]`, `step "" 1 work[1] work[2] work[3] work[4]`, `step "" 0 plan[0]`},
			"topic": {`step "" 5 fin[0]`},
			"item":  nil, // overlays are not writes of a task
		} {
			if diff := cmp.Diff(want, blamed(t, st, "t", key)); diff != "" {
				t.Errorf("key %s:\n%s", key, diff)
			}
		}
		inside := blamed(t, st, "t", "n")
		count := map[string]int{}
		for _, l := range inside {
			count[l]++
		}
		want := map[string]int{`step "4.sub.1/" 1 two[0]`: 1, `step "4.sub.1/" 2 two[0]`: 1, `step "4.sub.2/" 1 two[0]`: 1, `step "4.sub.2/" 2 two[0]`: 1}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBlameNamesInputEditAndFork(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: []graph.Write{lines.Set([]string{"in"})}}); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "t", 2, "u")
	if _, err := r.Edit(ctx, "u", lines.Reset(nil)); err != nil {
		t.Fatal(err)
	}
	resumed(t, r, "u")
	for thread, want := range map[string][]string{
		"t": {`step "" 1 b[0]`, `step "" 0 a[0]`, `start "" 0`},
		"u": {`step "" 1 b[0]`, `edit "" 1`, `fork "" 1 from t`},
	} {
		if diff := cmp.Diff(want, blamed(t, st, thread, "lines")); diff != "" {
			t.Errorf("thread %s:\n%s", thread, diff)
		}
	}
	if _, err := graph.Blame(ctx, st, "nobody", "lines"); err == nil {
		t.Error("an unknown thread has no authors")
	}
}

// A task that was run again after a crash or an edit is named once.
func TestBlameAfterAnEditInTheMiddleOfAStep(t *testing.T) {
	e := newEverything(t)
	st := graph.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: st}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%v, %v", res.Status, err)
	}
	if _, err := r.Edit(t.Context(), "t", hits.Set(100)); err != nil {
		t.Fatal(err)
	}
	resumed(t, r, "t")
	want := []string{`step "" 1 work[1] work[2] work[3] work[4]`, `edit "" 1`, `step "" 0 audit[0]`}
	if diff := cmp.Diff(want, blamed(t, st, "t", "hits")); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkCheckpoints lists 10,000 steps.
func BenchmarkCheckpoints(b *testing.B) {
	const steps = 10_000
	for _, s := range []struct {
		name string
		open func(testing.TB) graph.Store
	}{{"memory", func(testing.TB) graph.Store { return graph.NewMemory() }}, {"sqlite", openSQLite}} {
		b.Run(s.name, func(b *testing.B) {
			st := s.open(b)
			if _, err := (&graph.Runner{Graph: loopOf(b, steps), Store: st}).Invoke(context.Background(), graph.Input{Thread: "t"}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range graph.Checkpoints(b.Context(), st, "t") {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != steps+1 {
					b.Fatalf("%d checkpoints", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/checkpoint")
		})
	}
}

// A thread that is used again is listed with its newest run: label, graph, start.
func TestDescribeShowsTheNewestRun(t *testing.T) {
	st := graph.NewMemory()
	r := &graph.Runner{Graph: said(t, "a", "b"), Store: st}
	for _, label := range []string{"first", "second"} {
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Run: "r-" + label, Label: label})
		if err != nil {
			t.Fatal(err)
		}
	}
	agrees := func(what string) {
		t.Helper()
		want, err := graph.Inspect(t.Context(), st, "t", 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range st.Threads(t.Context(), "") {
			got, fault := graph.Describe(i)
			if err != nil || fault != nil {
				t.Fatal(err, fault)
			}
			if got.Run != want.Run || got.Label != want.Label || got.Graph != want.Graph || !got.Started.Equal(want.Started) {
				t.Errorf("%s: listed as %+v, not %+v", what, got, want.RunInfo)
			}
		}
	}
	agrees("after two runs")
	if _, err := r.Edit(t.Context(), "t", lines.Set([]string{"x"})); err != nil {
		t.Fatal(err)
	}
	agrees("after an edit")
	if _, err := graph.Prune(t.Context(), st, "t", graph.Keep{}); err != nil {
		t.Fatal(err)
	}
	agrees("after a prune")
	_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Label: "third", Break: []graph.Break{{Node: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	agrees("at a break")
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Break: []graph.Break{{Node: "b", After: true}}}); err != nil {
		t.Fatal(err)
	}
	agrees("after a resume")
	if err := graph.Abandon(t.Context(), st, "t", "enough"); err != nil {
		t.Fatal(err)
	}
	agrees("abandoned")
}
