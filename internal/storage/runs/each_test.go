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
	"raddle.dev/internal/storage/config"
)

// A countingStore counts the threads that are listed, and the journals that are read.
type countingStore struct {
	journal.Store
	read     int
	journals int
}

func (s *countingStore) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	s.journals++
	return s.Store.Read(ctx, thread, r)
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
		for i, err := range a.EachRun(t.Context(), RunRange{Below: below}) {
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

// The forks of a run are found in what the store lists, also after their journals were shortened; no journal is read.
func TestListForks(t *testing.T) {
	a := NewArchive(config.Dirs{State: filepath.Join(t.TempDir(), "state")}, "")
	counted := &countingStore{Store: journal.NewMemory()}
	if err := a.AttachStore(counted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	r := &graph.Runner{Graph: compileOuting(t), Store: counted}
	for i := range 20 {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: fmt.Sprintf("r%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct{ from, to string }{{"r03", "s1"}, {"r04", "s2"}, {"r03", "s3"}, {"s1", "s4"}} {
		if err := history.Fork(t.Context(), counted, f.from, 1, f.to); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "s3"}); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Prune(t.Context(), counted, "s3", history.Keep{}); err != nil {
		t.Fatal(err)
	}
	counted.read, counted.journals = 0, 0
	got, err := ListForks(t.Context(), a, "r03")
	if want := []Point{{"s3", 1}, {"s1", 1}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("forks %v %v, not %v", got, err, want)
	}
	if counted.read != 24 || counted.journals != 0 {
		t.Errorf("the store listed %d threads and read %d journals", counted.read, counted.journals)
	}
	if got, err := ListForks(t.Context(), a, "r05"); err != nil || got == nil || len(got) != 0 {
		t.Errorf("a run without forks: %v %v", got, err)
	}
}

// The newest run is found without a look at the others.
func TestResolveLast(t *testing.T) {
	a := NewArchive(config.Dirs{State: filepath.Join(t.TempDir(), "state")}, "")
	counted := &countingStore{Store: journal.NewMemory()}
	if err := a.AttachStore(counted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	r := &graph.Runner{Graph: compileOuting(t), Store: counted}
	for i := range 20 {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: fmt.Sprintf("r%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	counted.read = 0
	if got, err := a.ResolveLast(t.Context(), "last~2"); err != nil || got != "r17" || counted.read != 3 {
		t.Errorf("last~2 is %s %v, after %d threads", got, err, counted.read)
	}
	if _, err := a.ResolveLast(t.Context(), "last~20"); err == nil {
		t.Error("there is no run 20 runs before the last one")
	}
}
