package storetool

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
	"raddle.dev/store/sqlite"
)

var (
	number = graph.Last[int]("n")
	person = graph.Last[string]("who")
)

// compileCount returns a graph that counts to ten with effects, runs a child, and asks.
func compileCount(t *testing.T) *graph.Graph {
	t.Helper()
	set := func(context.Context, graph.State) (graph.Update, error) { return graph.Put(number.Set(1)), nil }
	child, err := graph.Compile(graph.Def{
		Name: "child", Keys: []graph.AnyKey{number}, Start: []string{"one"}, Nodes: []graph.Node{{Name: "one", Run: set}},
		Edges: []graph.Edge{{From: []string{"one"}, To: []string{graph.End}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(ctx context.Context, s graph.State) (graph.Update, error) {
		next, err := graph.Do(ctx, "add", func(context.Context) (int, error) { return number.Get(s) + 1, nil })
		u := graph.Put(number.Set(next))
		if u.Goto = []string{"child"}; next < 10 {
			u.Goto = []string{"count"}
		}
		return u, err
	}
	ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		name, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Who?"})
		return graph.Put(person.Set(name)), err
	}
	g, err := graph.Compile(graph.Def{
		Name: "count", Keys: []graph.AnyKey{number, person}, Start: []string{"count"},
		Nodes: []graph.Node{{Name: "count", Run: count, Routes: []string{"count", "child"}}, {Name: "child", Graph: child}, {Name: "ask", Run: ask}},
		Edges: []graph.Edge{{From: []string{"child"}, To: []string{"ask"}}, {From: []string{"ask"}, To: []string{graph.End}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// addRuns adds runs that wait. The first one begins with a snapshot, because what was before it is pruned.
func addRuns(t *testing.T, st journal.Store, ids ...string) {
	t.Helper()
	r := &graph.Runner{Graph: compileCount(t), Store: st}
	for _, id := range ids {
		if res, err := r.Invoke(t.Context(), graph.Input{Run: id, Thread: id}); err != nil || res.Status != graph.Waiting {
			t.Fatal(res.Status, err)
		}
	}
	if err := history.WriteSnapshot(t.Context(), st, ids[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Prune(t.Context(), st, ids[0], history.Keep{}); err != nil {
		t.Fatal(err)
	}
}

// readAll returns all records of a store.
func readAll(t *testing.T, st journal.Store) map[string][]journal.Record {
	t.Helper()
	all := map[string][]journal.Record{}
	list, err := listThreads(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range list {
		for r, err := range st.Read(t.Context(), info.Name, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			r.Head, r.Data = append([]byte{}, r.Head...), append([]byte{}, r.Data...) // nil and empty are the same
			all[info.Name] = append(all[info.Name], r)
		}
	}
	return all
}

// openFile opens a store in a file.
func openFile(t *testing.T) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestCheck(t *testing.T) {
	st := journal.NewMemory()
	addRuns(t, st, "a", "b")
	if err := history.WriteSnapshot(t.Context(), st, "b"); err != nil {
		t.Fatal(err)
	}
	got, err := CheckStore(t.Context(), st)
	if err != nil || got.Threads != 2 || got.Records < 20 || got.Folds < 4 || len(got.Faults) != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	whole := readAll(t, st)["b"]
	damage := func(name string, change func(recs []journal.Record) []journal.Record) {
		recs := change(append([]journal.Record(nil), whole...))
		if err := st.Append(t.Context(), name, 0, recs); err != nil {
			t.Fatal(err)
		}
	}
	unsummed := func(recs []journal.Record) []journal.Record {
		for i := range recs {
			recs[i].Sum = 0 // as journals of before there were checksums
		}
		return recs
	}
	damage("end", func(recs []journal.Record) []journal.Record { return unsummed(recs)[2:] })
	damage("hole", func(recs []journal.Record) []journal.Record { return append(unsummed(recs)[:4:4], recs[8:]...) })
	damage("snapshot", func(recs []journal.Record) []journal.Record {
		last := &unsummed(recs)[len(recs)-1]
		if last.Kind != journal.KindSnapshot || !strings.Contains(string(last.Data), "10") {
			t.Fatalf("the last record is a %s: %q", last.Kind, last.Data)
		}
		last.Data = []byte(strings.Replace(string(last.Data), "10", "11", 1))
		return recs
	})
	got, err = CheckStore(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range got.Faults {
		found[f.Thread] = fmt.Sprintf("%d %s", f.Record, f.What)
	}
	for thread, want := range map[string]string{
		"end":      "1 the records before it are missing",
		"hole":     "",
		"snapshot": fmt.Sprintf("%d the snapshot has other values", len(whole)),
	} {
		if !strings.Contains(found[thread], want) || want != "" && found[thread] == "" {
			t.Errorf("%s: %q, want %q", thread, found[thread], want)
		}
	}
	if found["a"]+found["b"] != "" {
		t.Errorf("faults of good journals: %q", found)
	}
	other := journal.NewMemory()
	whole[3].Head = append([]byte{whole[3].Head[0] ^ 1}, whole[3].Head[1:]...)
	if err := other.Append(t.Context(), "b", 0, whole); err != nil {
		t.Fatal(err)
	}
	if got, err = CheckStore(t.Context(), other); err != nil || len(got.Faults) != 1 || got.Faults[0] != (Fault{"b", 4, "the record is damaged: its checksum does not match"}) {
		t.Errorf("%+v %v", got, err)
	}
}

// A copy is equal, can be continued, and can be repeated.
func TestCopy(t *testing.T) {
	from, to := journal.NewMemory(), openFile(t)
	addRuns(t, from, "a", "b")
	testCopy(t, from, to)
}

// testCopy copies a store twice, and answers a question of the copy.
func testCopy(t *testing.T, from, to journal.Store) {
	t.Helper()
	got, err := CopyStore(t.Context(), from, to, "")
	if err != nil || got.Threads == 0 || got.Equal != 0 || len(got.Busy) != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	if a, b := readAll(t, from), readAll(t, to); !reflect.DeepEqual(a, b) {
		t.Fatal("the copy differs")
	}
	again, err := CopyStore(t.Context(), from, to, "")
	if err != nil || again.Equal != got.Threads || again.Records != 0 {
		t.Fatalf("%+v %v", again, err)
	}
	if checked, err := CheckStore(t.Context(), to); err != nil || len(checked.Faults) > 0 {
		t.Errorf("%+v %v", checked, err)
	}
	r := &graph.Runner{Graph: compileCount(t), Store: to}
	if res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "a", Answers: []graph.Answer{{Value: "Ada"}}}); err != nil || res.Status != graph.Done {
		t.Errorf("%v %v", res.Status, err)
	}
	if _, err := CopyStore(t.Context(), from, to, ""); err == nil || !strings.Contains(err.Error(), "both stores have a") {
		t.Errorf("a journal that has moved on: %v", err)
	}
}

// A store that fails after some appends.
type failingStore struct {
	journal.Store
	left int
}

func (f *failingStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if f.left--; f.left < 0 {
		return fmt.Errorf("the disk is full")
	}
	return f.Store.Append(ctx, thread, after, recs)
}

// A copy that fails at any append is completed by the next one.
func TestCopyContinues(t *testing.T) {
	from := journal.NewMemory()
	addRuns(t, from, "a", "b")
	long := make([]journal.Record, 3*copyBatch)
	for i := range long {
		long[i].Kind = journal.KindVoid
		long[i].Head = []byte{1}
	}
	if err := from.Append(t.Context(), "long", 0, long); err != nil {
		t.Fatal(err)
	}
	if err := from.Prune(t.Context(), "long", 2*copyBatch+10); err != nil {
		t.Fatal(err)
	}
	for left := range 6 {
		to := journal.NewMemory()
		if _, err := CopyStore(t.Context(), from, &failingStore{to, left}, ""); (err == nil) != (left >= 6) {
			t.Fatalf("after %d appends: %v", left, err)
		}
		if _, err := CopyStore(t.Context(), from, to, ""); err != nil {
			t.Fatalf("after %d appends: %v", left, err)
		}
		if a, b := readAll(t, from), readAll(t, to); !reflect.DeepEqual(a, b) {
			t.Errorf("after %d appends the copy differs", left)
		}
	}
}

// A copy never changes a journal that is another one, and leaves out what is driven.
func TestCopyRefuses(t *testing.T) {
	from, to := journal.NewMemory(), journal.NewMemory()
	addRuns(t, from, "a", "b")
	addRuns(t, to, "b", "c")
	before := readAll(t, to)["b"]
	if _, err := CopyStore(t.Context(), from, to, ""); err == nil || !strings.Contains(err.Error(), "both stores have b") {
		t.Errorf("%v", err)
	}
	if !reflect.DeepEqual(before, readAll(t, to)["b"]) {
		t.Error("the other journal was changed")
	}
	if _, err := from.AcquireLease(t.Context(), "b", "other host", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	got, err := CopyStore(t.Context(), from, journal.NewMemory(), "")
	if err != nil || len(got.Busy) != 1 || got.Busy[0] != "b" || got.Threads != 1 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestMeasure(t *testing.T) {
	st := openFile(t)
	addRuns(t, st, "a", "b")
	got, err := MeasureStore(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	records, bytes := int64(0), int64(0)
	for _, k := range got.Kinds {
		records, bytes = records+k.Records, bytes+k.Bytes
	}
	if got.Threads != 2 || got.Records != records || got.Bytes != bytes || bytes == 0 || got.File < bytes || got.Largest[0].Name != "b" || len(got.Largest) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestOpen(t *testing.T) {
	dirs := config.Dirs{Work: t.TempDir(), State: t.TempDir()}
	if _, _, err := OpenStore("", dirs); err == nil || !strings.Contains(err.Error(), "there is no store at") {
		t.Errorf("%v", err)
	}
	if _, _, err := CreateStore("memory:", dirs); err == nil || !strings.Contains(err.Error(), "keeps no runs") {
		t.Errorf("%v", err)
	}
	st, _, err := CreateStore("sqlite:x.db", dirs)
	if err != nil {
		t.Fatal(err)
	}
	_ = st.Close()
	st, at, err := OpenStore("sqlite:x.db", dirs)
	if err != nil || at.Place() != filepath.Join(dirs.Work, "x.db") {
		t.Fatal(at.Place(), err)
	}
	_ = st.Close()
}
