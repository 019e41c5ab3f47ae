package runs

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/config"
)

// A countingStore counts the threads that are read.
type countingStore struct {
	journal.Store
	read int
}

func (s *countingStore) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		for t, err := range s.Store.Threads(ctx, prefix) {
			if s.read++; !yield(t, err) {
				return
			}
		}
	}
}

// Runs come newest first, those of sessions between the others, and of the branches of a conversation one. What is
// older than the end of the loop is not read.
func TestEachRun(t *testing.T) {
	a := NewArchive(config.Dirs{State: filepath.Join(t.TempDir(), "state")}, "")
	counted := &countingStore{Store: journal.NewMemory()}
	if err := a.AttachStore(counted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	r := &graph.Runner{Graph: compileOuting(t), Store: counted}
	work := func(thread, run string) {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Run: run}); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 100 {
		id := fmt.Sprintf("r%03d", i)
		want = append(want, id)
		switch {
		case i%20 == 10:
			work(NameSession("outing", "a"+id), id)
		default:
			work(id, id)
		}
	}
	work("zeta", "zeta") // a thread of another program, whose name comes before those of sessions
	want = append(want, "zeta")
	if err := history.Fork(t.Context(), counted, NameSession("outing", "ar090"), 0, NameSession("outing", "branch")); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	list := func(below string, most int) (ids []string) {
		counted.read = 0
		for i, err := range a.EachRun(t.Context(), "", below) {
			if err != nil {
				t.Fatal(err)
			}
			if ids = append(ids, i.Run); len(ids) == most {
				break
			}
		}
		return ids
	}
	if got := list("", 0); !slices.Equal(got, want) {
		t.Errorf("all: %v", got)
	}
	if got := list("", 15); !slices.Equal(got, want[:15]) {
		t.Errorf("the first 15: %v", got)
	} else if counted.read > 15+6 { // one look at each session, and one thread more
		t.Errorf("%d threads were read for 15 runs", counted.read)
	}
	if got := list(want[14], 10); !slices.Equal(got, want[15:25]) {
		t.Errorf("10 runs below %s: %v", want[14], got)
	} else if counted.read > 25+6 {
		t.Errorf("%d threads were read for the runs up to the 25th", counted.read)
	}
}
