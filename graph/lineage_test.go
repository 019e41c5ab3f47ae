package graph_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// tree writes a lineage, two spaces a level.
func tree(branches []graph.Branch, level int) (text []string) {
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
	onEveryStore(t, func(t *testing.T, st graph.Store) {
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
		if _, err := graph.Prune(ctx, st, "x-b", graph.Keep{}); err != nil {
			t.Fatal(err)
		}
		l, err := graph.Lineage(ctx, st, "")
		want := []string{"other done", "x done", "  x-b done <- x 1", "    x-b-deep paused <- x-b 2", "  x-z paused <- x 1", "  stray paused <- x 2", "  x-late paused <- x 3"}
		if diff := cmp.Diff(want, tree(l, 0)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		l, err = graph.Lineage(ctx, st, "x-b")
		want = []string{"x-b done <- x 1", "  x-b-deep paused <- x-b 2"}
		if diff := cmp.Diff(want, tree(l, 0)); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		if l, err := graph.Lineage(ctx, st, "nobody"); err != nil || l != nil {
			t.Errorf("%v, %v", l, err)
		}
	})
}

// A thread that was deleted and forked again from its own fork is not lost.
func TestLineageOfACircle(t *testing.T) {
	ctx := t.Context()
	st := graph.NewMemory()
	r := &graph.Runner{Graph: said(t, "a"), Store: st}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "x"}); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "x", 0, "y")
	if err := st.Prune(ctx, "x", math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	fork(t, st, "y", 0, "x")
	l, err := graph.Lineage(ctx, st, "")
	if diff := cmp.Diff([]string{"x done <- y 1", "  y done <- x 3"}, tree(l, 0)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
