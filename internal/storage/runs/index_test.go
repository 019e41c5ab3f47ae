package runs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
	"raddle.dev/store/sqlite"
)

// openIndexed returns an archive of a file, and the file as a store that writes no lines.
func openIndexed(t *testing.T) (*Archive, *sqlite.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	a := NewArchive(config.Dirs{State: t.TempDir()}, "sqlite:"+path)
	t.Cleanup(func() { _ = a.Close() })
	plain, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	return a, plain
}

// listAll returns what a list shows of each run, with its summary.
func listAll(t *testing.T, a *Archive, r RunRange) (list []string) {
	t.Helper()
	for i, err := range a.EachRun(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		sum, err := a.SummarizeRun(t.Context(), &i)
		if err != nil {
			t.Fatal(err)
		}
		i.line = nil
		list = append(list, fmt.Sprintf("%+v %+v", i, sum))
	}
	return list
}

// What the index says of each run after each of its records is what its journal says, whichever process wrote it.
func TestLinesSayWhatJournalsSay(t *testing.T) {
	for name, recs := range recordRuns(t) {
		t.Run(name, func(t *testing.T) {
			a, plain := openIndexed(t)
			st, err := a.OpenStore()
			if err != nil {
				t.Fatal(err)
			}
			for i := range recs {
				if i%5 == 3 { // as another process does, which has read nothing of it
					st.guard.lines.noteLine(name, nil)
				}
				if err := st.Append(t.Context(), name, int64(i), recs[i:i+1]); err != nil {
					t.Fatal(err)
				}
				whole := newRunLine(name)
				if err := whole.catchUp(t.Context(), plain, 0); err != nil {
					t.Fatal(err)
				}
				l, ok, err := plain.ReadLine(t.Context(), name)
				if err != nil || !ok || l.Status == "" {
					t.Fatalf("record %d: the line is %+v (%v)", i+1, l, err)
				}
				got, known := decodeLine(&l)
				if !known {
					t.Fatalf("record %d: the line %s cannot be read", i+1, l.Details)
				}
				if err := got.catchUp(t.Context(), plain, 0); err != nil { // what changes no list
					t.Fatal(err)
				}
				same := cmp.Options{cmp.AllowUnexported(runLine{}), cmpopts.IgnoreFields(history.Line{}, "Meta"), cmpopts.EquateEmpty()}
				if d := cmp.Diff(whole, got, same); d != "" {
					t.Fatalf("record %d (-journal +line):\n%s", i+1, d)
				}
			}
		})
	}
}

// A store whose threads have no lines, as an earlier version leaves it, is listed like one that has them, before and
// after they are written.
func TestReindexRuns(t *testing.T) {
	a, plain := openIndexed(t)
	for name, recs := range recordRuns(t) {
		if err := plain.Append(t.Context(), name, 0, recs); err != nil {
			t.Fatal(err)
		}
	}
	turn := graph.Input{Thread: NameSession("asking", "main"), Run: "9turn", Label: "asking"}
	if _, err := (&graph.Runner{Graph: compileAsking(t), Store: plain}).Invoke(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	before := listAll(t, a, RunRange{})
	if len(before) < 4 {
		t.Fatalf("there are %d runs", len(before))
	}
	if err := a.Reindex(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	count, err := plain.CountLines(t.Context())
	if err != nil || count[""] > 0 {
		t.Errorf("after the index was written, the lines are %v (%v)", count, err)
	}
	if d := cmp.Diff(before, listAll(t, a, RunRange{})); d != "" {
		t.Errorf("(-without lines +with lines):\n%s", d)
	}
}

// A list of some runs is a part of the list of all, in pages of any size.
func TestRangesOfRuns(t *testing.T) {
	a, plain := openIndexed(t)
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	recorded := recordRuns(t)
	for i, name := range []string{"asking", "counter", "asking", "team", "counter", "asking"} {
		r := &graph.Runner{Graph: compileAsking(t), Store: st}
		in := graph.Input{Thread: fmt.Sprintf("1run%d", i), Run: fmt.Sprintf("1run%d", i), Label: name}
		if i%3 == 2 {
			in.Thread = NameSession(name, fmt.Sprint(i))
			r.Store = plain // as a program does that knows of no lists
		}
		if _, err := r.Invoke(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if err := st.Append(t.Context(), fmt.Sprintf("1run%dx", i), 0, recorded[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := history.Fork(t.Context(), st, NameSession("asking", "2"), 0, NameSession("asking", "2~2")); err != nil {
		t.Fatal(err)
	}
	var all []Info
	for i, err := range a.EachRun(t.Context(), RunRange{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	if len(all) != 12 {
		t.Fatalf("there are %d runs", len(all))
	}
	for at, from := range all {
		for _, r := range []RunRange{{Below: from.Run}, {Below: from.Run, Status: from.Status}, {Below: from.Run, Agent: from.Agent}, {Status: from.Status, Agent: from.Agent}} {
			var want []string
			for n, i := range all {
				if (r.Below == "" || n > at) && (r.Status == "" || i.Status == r.Status) && (r.Agent == "" || i.Agent == r.Agent) {
					want = append(want, i.Run)
				}
			}
			var got []string
			for i, err := range a.EachRun(t.Context(), r) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, i.Run)
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%+v (-want +got):\n%s", r, d)
			}
		}
	}
}

// A closedStore has lines, and shows neither threads nor records.
type closedStore struct{ *journal.Memory }

var errLooked = errors.New("the list has looked into journals")

// Threads implements journal.Store.
func (closedStore) Threads(context.Context, string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		yield(journal.ThreadInfo{}, errLooked)
	}
}

// Read implements journal.Store.
func (closedStore) Read(context.Context, string, journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, errLooked) }
}

// A list, its summaries, counts and references such as last~N come from the index alone.
func TestListsReadTheIndexOnly(t *testing.T) {
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(closedStore{journal.NewMemory()}); err != nil {
		t.Fatal(err)
	}
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	ended := recordRuns(t)["counter"]
	for i := range 200 {
		if err := st.Append(t.Context(), fmt.Sprintf("1run%04d", i), 0, ended); err != nil {
			t.Fatal(err)
		}
	}
	if list := listAll(t, a, RunRange{Status: "done"}); len(list) != 200 {
		t.Errorf("%d runs are listed", len(list))
	}
	if id, err := a.ResolveLast(t.Context(), "last~7"); err != nil || id != "1run0192" {
		t.Errorf("last~7 is %q (%v)", id, err)
	}
	if count, err := a.CountRuns(t.Context()); err != nil || count["done"] != 200 || len(count) != 1 {
		t.Errorf("the counts are %v (%v)", count, err)
	}
	if open, _, _, err := a.ListOpenRuns(t.Context(), OpenPoint{}, 0); err != nil || len(open) > 0 {
		t.Errorf("the open runs are %v (%v)", open, err)
	}
}

// A line that is not what the records of its thread say is found.
func TestCheckLine(t *testing.T) {
	a, plain := openIndexed(t)
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	recs := recordRuns(t)["counter"]
	if err := st.Append(t.Context(), "counter", 0, recs); err != nil {
		t.Fatal(err)
	}
	if fault, err := CheckLine(t.Context(), plain, "counter"); fault != "" || err != nil {
		t.Errorf("the line: %s (%v)", fault, err)
	}
	in := graph.Input{Thread: "third", Run: "third", Label: "asking"}
	if _, err := (&graph.Runner{Graph: compileAsking(t), Store: plain}).Invoke(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wrong := &journal.Line{Thread: "third", Order: "third", Status: "failed", Details: []byte(`{"head":1}`)}
	if err := plain.FillLine(t.Context(), *wrong); err != nil {
		t.Fatal(err)
	}
	if fault, err := CheckLine(t.Context(), plain, "third"); err != nil || !strings.HasPrefix(fault, "lists show failed ") {
		t.Errorf("a wrong line: %q (%v)", fault, err)
	}
}
