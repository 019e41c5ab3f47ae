package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// writeSchema1 writes a file as this package did before it had checksums and leases,
// with three records of thread a, the second of which is a snapshot.
func writeSchema1(t *testing.T, path string) {
	t.Helper()
	execute(t, path, `
PRAGMA journal_mode=WAL;
CREATE TABLE thread (
	id   INTEGER PRIMARY KEY AUTOINCREMENT, -- of a deleted thread: never given out again
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE record (
	id   INTEGER PRIMARY KEY, -- thread.id << 32 | seq
	kind INTEGER NOT NULL,
	time INTEGER NOT NULL,    -- Unix microseconds
	head BLOB,
	data BLOB                 -- last: what stands before it is read without it
);
CREATE INDEX base ON record(id) WHERE kind IN (12, 14);
PRAGMA application_id=1918985324; PRAGMA user_version=1;
INSERT INTO thread(name) VALUES('a');
INSERT INTO record VALUES(1 << 32 | 1, 1, 10, x'61', x'62'), (1 << 32 | 2, 14, 20, x'63', NULL), (1 << 32 | 3, 7, 30, NULL, x'64');
`)
}

// TestOpenOfAnOlderFile: its records stay as they are, and everything new works.
func TestOpenOfAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	writeSchema1(t, path)
	want := []graph.Record{
		{Seq: 1, Kind: graph.KindStart, Time: 10, Head: []byte("a"), Data: []byte("b")},
		{Seq: 2, Kind: graph.KindSnapshot, Time: 20, Head: []byte("c")},
		{Seq: 3, Kind: graph.KindStep, Time: 30, Data: []byte("d")},
	}
	for range 2 {
		s := open(t, path)
		if _, err := s.AcquireLease(t.Context(), "a", "me", "", time.Minute); err != nil {
			t.Fatal(err)
		}
		next := graph.Record{Seq: int64(len(want)) + 1, Kind: graph.KindSnapshot, Time: 40, Head: []byte("e"), Sum: 1<<63 + 5}
		if err := s.Append(t.Context(), "a", next.Seq-1, []graph.Record{next}); err != nil {
			t.Fatal(err)
		}
		want = append(want, next)
		if got := all(t, s, "a", graph.Range{}); !same(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
		for upTo := range int64(len(want)) + 1 {
			from := max(upTo, 1)
			if from == 3 {
				from = 2 // the snapshot before
			}
			if upTo == 0 {
				from = int64(len(want))
			}
			if got := all(t, s, "a", graph.Range{FromSnapshot: true, UpTo: upTo}); got[0].Seq != from {
				t.Errorf("from the snapshot up to %d: begins at %d, want %d", upTo, got[0].Seq, from)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var ver int
	var indexes string
	const q = "SELECT user_version, (SELECT group_concat(name) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL) FROM pragma_user_version"
	if err := db.QueryRowContext(context.Background(), q).Scan(&ver, &indexes); err != nil || ver != 2 || indexes != "bases" {
		t.Errorf("version %d, indexes %s, %v", ver, indexes, err)
	}
}

// TestManyOpenAnOlderFile at once: one of them changes it.
func TestManyOpenAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	writeSchema1(t, path)
	errs := make(chan error)
	for range 6 {
		go func() {
			s, err := sqlite.Open(path)
			if err == nil {
				defer s.Close()
				for _, e := range s.Read(context.Background(), "a", graph.Range{FromSnapshot: true}) {
					err = e
				}
			}
			errs <- err
		}()
	}
	for range 6 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func all(t *testing.T, s *sqlite.Store, thread string, r graph.Range) (recs []graph.Record) {
	t.Helper()
	for rec, err := range s.Read(t.Context(), thread, r) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

func same(a, b []graph.Record) bool {
	text := func(recs []graph.Record) string {
		var b strings.Builder
		for _, r := range recs {
			fmt.Fprintf(&b, "%d %d %d %q %q %d\n", r.Seq, r.Kind, r.Time, bytes.Clone(r.Head), bytes.Clone(r.Data), r.Sum)
		}
		return b.String()
	}
	return text(a) == text(b)
}
