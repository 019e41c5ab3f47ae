package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

func openImpatient(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s.patience = time.Nanosecond // SQLite's own wait remains
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lock holds the file's lock as another program would, until the test ends or
// the function it returns is called.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(unlock)
	return unlock
}

func one() []journal.Record { return []journal.Record{{Kind: journal.KindStep, Head: []byte("h")}} }

func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	if err := s.Append(t.Context(), "a", 0, one()); err != nil {
		t.Fatal(err)
	}
	unlock := lock(t, path)
	for what, err := range map[string]error{
		"append":    s.Append(t.Context(), "a", 1, one()),
		"batch":     s.Append(t.Context(), "a", 1, append(one(), one()...)),
		"new":       s.Append(t.Context(), "b", 0, one()),
		"prune all": s.Prune(t.Context(), "a", 2),
	} {
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process keeps the file locked: wait until it is done, or end it, and try again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := openImpatient(t, path)
	for _, s := range []*Store{s, other} {
		n := 0
		for _, err := range s.Read(t.Context(), "a", journal.Range{}) {
			if err != nil {
				t.Errorf("readers wait for the writer: %v", err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%d records, want 1", n)
		}
	}
	unlock()
	if err := s.Append(t.Context(), "a", 1, one()); err != nil {
		t.Error(err)
	}
}

func TestLockedFileIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	s.patience = time.Hour
	unlock := lock(t, path)
	done := make(chan error)
	go func() { done <- s.Append(t.Context(), "a", 0, one()) }()
	select {
	case err := <-done:
		t.Fatalf("Append does not wait for the lock: %v", err)
	case <-time.After(2 * busyTimeout):
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelEndsTheWaitForALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	s.patience = time.Hour
	lock(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Append(ctx, "a", 0, one()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestOpenAtTheSameTime(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "runs.db")
		var wg sync.WaitGroup
		stores, errs := make([]*Store, 8), make([]error, 8)
		for i := range stores {
			wg.Go(func() { stores[i], errs[i] = Open(path) })
		}
		wg.Wait()
		won := 0
		for i, s := range stores {
			if errs[i] != nil {
				t.Fatal(errs[i])
			}
			if err := s.Append(t.Context(), "a", 0, one()); err == nil {
				won++
			} else if !errors.Is(err, journal.ErrConflict) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d of 8 have begun one thread, want 1", won)
		}
		for _, s := range stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPruneWhileReading: a reader gets what was there, or an error.
func TestPruneWhileReading(t *testing.T) {
	const n = 3 * pageRows
	for _, test := range []struct {
		name   string
		before int64
		r      journal.Range
		want   error
	}{
		{"behind the reader", 5, journal.Range{}, nil},
		{"what is next", n, journal.Range{}, errChanged},
		{"the thread", n + 1, journal.Range{}, errChanged},
		{"the thread, newest first", n + 1, journal.Range{Newest: true}, errChanged},
		{"the end, newest first", 5, journal.Range{Newest: true}, errChanged},
		{"beyond the limit", n, journal.Range{Limit: 10}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
			recs := make([]journal.Record, n)
			if err := s.Append(t.Context(), "a", 0, recs); err != nil {
				t.Fatal(err)
			}
			seen := 0
			var failed error
			for rec, err := range s.Read(t.Context(), "a", test.r) {
				if err != nil {
					failed = err
					break
				}
				if seen++; seen == 1 {
					if err := s.Prune(t.Context(), "a", test.before); err != nil {
						t.Fatal(err)
					}
					// What has the name now must not be taken for the rest.
					if err := s.Append(t.Context(), "a", 0, recs); err != nil && !errors.Is(err, journal.ErrConflict) {
						t.Fatal(err)
					}
				}
				if want := int64(seen); !test.r.Newest && rec.Seq != want {
					t.Fatalf("record %d after %d others", rec.Seq, want-1)
				}
			}
			if !errors.Is(failed, test.want) {
				t.Errorf("%v after %d of %d records, want %v", failed, seen, n, test.want)
			}
		})
	}
}

// TestFullDisk: what does not fit leaves nothing behind, and afterwards all works.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openImpatient(t, path)
	limit := func(pages int) {
		t.Helper()
		if _, err := s.w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA max_page_count=%d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(t.Context(), "a", 0, one()); err != nil {
		t.Fatal(err)
	}
	limit(20)
	big := journal.Record{Kind: journal.KindStep, Data: make([]byte, 200_000)}
	for _, batch := range [][]journal.Record{{big}, append(one(), big), append(make([]journal.Record, 100), big)} {
		for thread, after := range map[string]int64{"a": 1, "b": 0} {
			err := s.Append(t.Context(), thread, after, batch)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "the disk is full and nothing was written: free some space and try again") {
				t.Errorf("%d records to %q: %v", len(batch), thread, err)
			}
		}
	}
	limit(1 << 30)
	if err := s.Append(t.Context(), "a", 1, []journal.Record{big}); err != nil {
		t.Error(err)
	}
	var heads []string
	for info, err := range s.Threads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		heads = append(heads, fmt.Sprint(info.Name, info.Head))
	}
	if got := strings.Join(heads, " "); got != "a2" {
		t.Errorf("the store has %s, want a2", got)
	}
}

// A weighing store counts the bytes of data that are read from it.
type weighing struct {
	*Store
	data int
}

func (w *weighing) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for rec, err := range w.Store.Read(ctx, thread, r) {
			w.data += len(rec.Data)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Ten thousand checkpoints are listed through one connection, which the loop's
// body uses too, and no value is read or decoded for it.
func TestAListingReadsNoState(t *testing.T) {
	const steps = 10_000
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	text := graph.Last[string]("text").WithCodec(graph.Codec[string]{
		Tag:    "write-only",
		Encode: func(b []byte, v string) ([]byte, error) { return append(b, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("a listing has decoded a value") },
	})
	n := 0
	g, err := graph.Compile(graph.Def{Name: "long", Keys: []graph.AnyKey{text}, MaxSteps: steps, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			n++
			return graph.Put(text.Set(strings.Repeat("x", n%500))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &weighing{Store: s}
	r := &graph.Runner{Graph: g, Store: w, Durability: graph.QuestionsOnly}
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); res.Status != graph.StepLimit {
		t.Fatal(res.Status, err)
	}
	s.db.SetMaxOpenConns(2) // one of them is the writer's
	w.data = 0
	listed := 0
	for c, err := range history.Checkpoints(t.Context(), w, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == journal.KindStep && c.Step != steps-listed {
			t.Fatalf("checkpoint %d is of step %d", listed, c.Step)
		}
		if listed++; listed%1000 != 0 {
			continue
		}
		for i, err := range s.Threads(t.Context(), "") {
			if _, fault := history.Describe(i); err != nil || fault != nil {
				t.Fatal(err, fault)
			}
		}
		for _, err := range s.Read(t.Context(), "t", journal.Range{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if listed != steps+1 || w.data != 0 {
		t.Errorf("%d checkpoints listed, %d bytes of data read for them", listed, w.data)
	}
	if _, err := r.State(t.Context(), "t", 0); err == nil {
		t.Error("the state was not decoded, as it must be")
	}
}

// TestQueryPlans: no statement looks at more rows than it needs.
func TestQueryPlans(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	if journal.KindFork != 12 || journal.KindSnapshot != 14 {
		t.Fatal("the index is for other kinds")
	}
	for range s.Read(t.Context(), "a", journal.Range{FromSnapshot: true}) {
		t.Fatal("the store is empty")
	}
	if err := s.Append(t.Context(), "a", 0, append(one(), one()...)); err != nil {
		t.Fatal(err)
	}
	for _, r := range []journal.Range{{}, {Newest: true, Heads: true}} {
		for _, err := range s.Read(t.Context(), "a", r) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range s.Threads(t.Context(), "") {
		break
	}
	texts := []string{buildInsert(1), buildInsert(3)}
	for text := range s.read.byText {
		texts = append(texts, text)
	}
	if len(texts) != 7 {
		t.Errorf("%d statements, want 7", len(texts))
	}
	for _, text := range texts {
		plan := explain(t, s, text)
		for _, bad := range []string{"SCAN record", "SCAN r", "SCAN f", "SCAN l", "SCAN p", "SCAN t", "TEMP B-TREE"} {
			if strings.Contains(plan, bad) {
				t.Errorf("%s\nhas the plan\n%s", text, plan)
				break
			}
		}
		if strings.Contains(text, "kind IN") && !strings.Contains(plan, "INDEX base") {
			t.Errorf("%s\ndoes not use the index of snapshots:\n%s", text, plan)
		}
	}
}

func explain(t *testing.T, s *Store, text string) (plan string) {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	if strings.Contains(text, "?1") {
		args = make([]any, 14)
	}
	rows, err := s.db.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan += detail + "\n"
	}
	return plan
}
