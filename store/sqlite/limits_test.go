package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/memory"
)

// TestRowsOfEachKind stores kinds at the limits between the forms of rows, with heads of any length, and with a checksum and without.
func TestRowsOfEachKind(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	var want []journal.Record
	for _, kind := range []journal.Kind{1, narrow - 1, narrow, narrow + 1, sealed - 1, sealed, sealed + 1, 255} {
		for _, sum := range []uint64{0, 1, 1<<64 - 1} {
			for _, head := range []string{"", "h", "8 bytes.", "more than eight bytes"} {
				want = append(want, journal.Record{Kind: kind, Head: []byte(head), Data: []byte("d"), Sum: sum})
			}
		}
	}
	if err := s.Append(t.Context(), "a", 0, want); err != nil {
		t.Fatal(err)
	}
	n := 0
	for got, err := range s.Read(t.Context(), "a", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r := want[n]; got.Kind != r.Kind || got.Sum != r.Sum || string(got.Head) != string(r.Head) || string(got.Data) != "d" {
			t.Errorf("read kind %d, sum %d, head %q; want %d, %d, %q", got.Kind, got.Sum, got.Head, r.Kind, r.Sum, r.Head)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d records, want %d", n, len(want))
	}
}

// TestAppendAtTheLimits appends where no record can stand, and with as many records as fit into one statement.
func TestAppendAtTheLimits(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	if err := s.Append(t.Context(), "a", 0, one()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after int64
		n     int
		want  string
	}{
		{-1, 1, "conflict"},
		{maxSeq + 1, 1, "conflict"},
		{maxSeq, 1, "at most 4294967295 records"},
		{maxSeq - 1, 2, "at most 4294967295 records"},
		{maxSeq - 1, 1, "conflict"}, // there would be room, but the record before it is missing
		{2, 1, "conflict"},
		{2, 100, "conflict"},
		{0, 1, "conflict"},
	} {
		withLine := journal.WithLine(t.Context(), &journal.Line{Thread: "a", Order: "a", Status: "written"})
		for _, ctx := range []context.Context{t.Context(), withLine} {
			err := s.Append(ctx, "a", c.after, make([]journal.Record, c.n))
			switch {
			case err == nil:
				t.Errorf("%d records after %d are taken", c.n, c.after)
			case c.want == "conflict" && !errors.Is(err, journal.ErrConflict) || c.want != "conflict" && !strings.Contains(err.Error(), c.want):
				t.Errorf("%d records after %d: %v, want %s", c.n, c.after, err, c.want)
			}
		}
	}
	if line, _, err := s.ReadLine(t.Context(), "a"); err != nil || line.Status != "" {
		t.Errorf("records that were refused have written the line %+v (%v)", line, err)
	}
	after := int64(1)
	for _, n := range []int{1, batchRows - 1, batchRows, batchRows + 1, 2 * batchRows, 2*batchRows + 1} {
		if err := s.Append(t.Context(), "a", after, make([]journal.Record, n)); err != nil {
			t.Fatalf("%d records: %v", n, err)
		}
		after += int64(n)
	}
	for info := range s.Threads(t.Context(), "a") {
		if info.Head != after {
			t.Errorf("%d records, want %d", info.Head, after)
		}
	}
}

// TestNothingToDo calls operations that have nothing to do, and operations whose context has ended.
func TestNothingToDo(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	fill(t, s)
	before := describe(t, s)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, do := range map[string]func(ctx context.Context) error{
		"append":  func(ctx context.Context) error { return s.Append(ctx, "a", 5, nil) },
		"prune":   func(ctx context.Context) error { return s.Prune(ctx, "a", 1) },
		"delete":  func(ctx context.Context) error { return s.Delete(ctx) },
		"compact": func(ctx context.Context) error { _, _, err := s.Compact(ctx); return err },
		"size":    func(ctx context.Context) error { _, err := s.Size(ctx); return err },
		"release": func(ctx context.Context) error { return s.ReleaseLease(ctx, "none", "me") },
		"lease":   func(ctx context.Context) error { _, err := s.ReadLease(ctx, "none"); return err },
	} {
		if err := do(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := do(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end of its context: %v", name, err)
		}
	}
	for name, do := range map[string]func() error{
		"append":  func() error { return s.Append(ended, "a", 5, one()) },
		"prune":   func() error { return s.Prune(ended, "a", 3) },
		"delete":  func() error { return s.Delete(ended, "a") },
		"put":     func() error { return s.PutEntry(ended, memory.Entry{Namespace: "n", Key: "l", Value: []byte(`1`)}, 0) },
		"drop":    func() error { return s.DeleteEntry(ended, "n", "k") },
		"acquire": func() error { _, err := s.AcquireLease(ended, "a", "me", "", 1); return err },
		"renew":   func() error { _, err := s.RenewLease(ended, "b", "me", 1); return err },
		"release": func() error { return s.ReleaseLease(ended, "b", "me") },
	} {
		if err := do(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end of its context: %v", name, err)
		}
	}
	if err := s.DeleteEntry(t.Context(), "n", "none"); err != memory.ErrNotFound { //nolint:errorlint // callers compare it
		t.Errorf("delete an entry that is not there: %v", err)
	}
	if err := s.PutEntry(t.Context(), memory.Entry{Key: "l", Value: []byte(`1`)}, 0); err == nil {
		t.Error("an entry without a namespace is taken")
	}
	if now := describe(t, s); now != before {
		t.Errorf("the store has changed:\n%s\nwas:\n%s", now, before)
	}
}

// TestDamageThatCannotBeLookedAt loses a record, and then the disk fails while the store finds out which one. The thread is not called damaged.
func TestDamageThatCannotBeLookedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	disk := &faultyDisk{}
	s, err := openOn(path, disk)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fill(t, s)
	if _, err := s.w.conn.ExecContext(t.Context(), "DELETE FROM record WHERE id & 0xffffffff = 3"); err != nil {
		t.Fatal(err)
	}
	read := func() (failed error) {
		for r, err := range s.Read(t.Context(), "a", journal.Range{}) {
			if failed = err; err != nil || r.Seq > 3 {
				break
			}
		}
		return failed
	}
	var damaged *journal.DamagedError
	if err := read(); !errors.As(err, &damaged) || damaged.Seq != 3 {
		t.Fatalf("read: %v", err)
	}
	failures := 0
	for n := 1; n < 20; n++ {
		disk.left, disk.failed = n, ""
		err := read()
		if disk.failed == "" {
			break
		}
		if disk.left = 0; errors.Is(err, errDisk) {
			continue // while it read
		}
		if failures++; errors.As(err, &damaged) || !errors.Is(err, errChanged) {
			t.Errorf("%s failed: %v", disk.failed, err)
		}
	}
	if failures == 0 {
		t.Error("the disk never failed while the store looked for the damage")
	}
}

// TestPagesThatCannotBeRead reads threads of a file whose pages are overwritten.
func TestPagesThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	many := make([]journal.Record, 3000)
	for i := range many {
		many[i] = journal.Record{Kind: journal.KindStep, Head: []byte("head"), Data: []byte(strings.Repeat("d", 100))}
	}
	if err := errors.Join(s.Append(t.Context(), "a", 0, many), s.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(text) / 2; i < len(text)*3/4; i++ {
		text[i] = 0xff
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var failed error
	for _, err := range s.Read(t.Context(), "a", journal.Range{}) {
		failed = err
	}
	var damaged *journal.DamagedError
	if !errors.As(failed, &damaged) || damaged.Thread != "a" || !strings.Contains(failed.Error(), "the database is damaged: restore it from a copy") {
		t.Errorf("read: %v", failed)
	}
}

// TestOpenReadOnlyOfOlderFiles opens files of each schema for reading: what the schema does not have is empty.
func TestOpenReadOnlyOfOlderFiles(t *testing.T) {
	const withEntries = 4 // the first schema that has them
	for schema := 1; schema <= version; schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			s, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, s)
			drop := []string{"DROP TABLE tick; DROP TABLE starter", "DROP TABLE line; DROP TABLE line_count; CREATE TABLE line (name); CREATE TABLE line_count (n)", "DROP TABLE line; DROP TABLE line_count", "DROP TABLE drive; DROP TABLE worker", "DROP TABLE entry; DROP INDEX IF EXISTS expiry", "", "DROP TABLE lease"}
			for from := version - 1; from >= schema; from-- {
				if _, err := s.w.conn.ExecContext(t.Context(), drop[version-1-from]); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.w.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version=%d", schema))
			if err := errors.Join(err, s.Close()); err != nil {
				t.Fatal(err)
			}
			s, err = OpenReadOnly(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			_, err = s.GetEntry(t.Context(), "n", "k")
			if schema < withEntries {
				if !errors.Is(err, memory.ErrNotFound) {
					t.Errorf("an entry of schema %d: %v", schema, err)
				}
			} else if err != nil {
				t.Errorf("an entry: %v", err)
			}
			l, err := s.ReadLease(t.Context(), "b")
			if err != nil || (l.Owner == "me") != (schema > 1) {
				t.Errorf("a lease of schema %d: %+v, %v", schema, l, err)
			}
			if got := describe(t, s); !strings.HasPrefix(got, "b 2:") || (strings.Contains(got, "n/k=1") != (schema >= withEntries)) {
				t.Errorf("schema %d has %s", schema, got)
			}
			lines, err := s.ListLines(t.Context(), journal.LineRange{Statuses: []string{"done"}})
			count, countErr := s.CountLines(t.Context())
			if err != nil || countErr != nil || len(lines) != 2 || lines[0].Thread != "b" || lines[0].Status != "" || count[""] != 2 {
				t.Errorf("the lines of schema %d are %+v, and as many as %v (%v, %v)", schema, lines, count, err, countErr)
			}
			_, ok, err := s.ReadJob(t.Context(), "b")
			jobs, listErr := s.ListJobs(t.Context(), false)
			workers, workersErr := s.ListWorkers(t.Context())
			if err := errors.Join(err, listErr, workersErr); err != nil || ok || len(jobs)+len(workers) > 0 {
				t.Errorf("schema %d has the jobs %v and the workers %v: %v", schema, jobs, workers, err)
			}
		})
	}
}

// TestReadOnlyFilesThatAreNone says what is wrong with a path, and closes what it has opened.
func TestReadOnlyFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	empty, other := filepath.Join(dir, "empty"), filepath.Join(dir, "other.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("CREATE TABLE t(x)")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                           "this is not a file",
		filepath.Join(dir, "missing"): "no such file",
		empty:                         "the file is empty",
		other:                         "belongs to another program",
	} {
		if _, err := OpenReadOnly(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestOpenOfAFileWithOlderLines: the lines of schema 6 do not say what waits, so they are filled again.
func TestOpenOfAFileWithOlderLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	_, err = s.w.conn.ExecContext(t.Context(), dropIndex+`
DROP TABLE tick; DROP TABLE starter;
CREATE TABLE line (name TEXT PRIMARY KEY, place TEXT NOT NULL, status TEXT NOT NULL, label TEXT NOT NULL, details BLOB);
CREATE INDEX line_place ON line(place, name);
CREATE INDEX line_status ON line(status, place, name);
CREATE INDEX line_label ON line(label, status, place, name);
CREATE TABLE line_count (status TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER line_added AFTER INSERT ON line BEGIN
	INSERT INTO line_count VALUES(new.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
INSERT INTO line SELECT name, 'z', 'waiting', 'x', NULL FROM thread;
PRAGMA user_version=6;
`)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(path); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	list, err := s.ListLines(t.Context(), journal.LineRange{})
	if err != nil || len(list) != 2 || list[0].Order != "b" || list[0].Status != "" {
		t.Errorf("the lines are %+v (%v)", list, err)
	}
	if count, err := s.CountLines(t.Context()); err != nil || len(count) != 1 || count[""] != 2 {
		t.Errorf("they are as many as %v (%v)", count, err)
	}
	if err := s.FillLine(t.Context(), journal.Line{Thread: "b", Order: "z", Status: "waiting", Wait: 5}); err != nil {
		t.Fatal(err)
	}
	if list, err := s.ListWaiting(t.Context(), journal.WaitRange{}); err != nil || len(list) != 1 || list[0].Wait != 5 {
		t.Errorf("what waits is %+v (%v)", list, err)
	}
}
