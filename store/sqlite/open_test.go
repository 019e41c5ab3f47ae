package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/memory"
	"raddle.dev/store/sqlite"
)

// execute runs SQL on a file behind the package's back.
func execute(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpenCreatesForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "raddle")
	path := filepath.Join(dir, "runs.db")
	s := open(t, path)
	if err := s.Append(t.Context(), "a", 0, batch(1)); err != nil {
		t.Fatal(err)
	}
	want := map[string]os.FileMode{dir: 0o700, filepath.Dir(dir): 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600}
	if runtime.GOOS == "windows" {
		clear(want) // has no such modes
	}
	for name, mode := range want {
		i, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if i.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", name, i.Mode().Perm(), mode)
		}
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	for _, name := range []string{"a b", "a?mode=ro&_pragma=user_version(9)", "100%", "a#b", "é", "file:x", ":memory:", "a'b", "&", "a%3Fb"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, `?:`) {
			continue // no file can have such a name there
		}
		dir := t.TempDir()
		s := open(t, filepath.Join(dir, name))
		if err := s.Append(t.Context(), "a", 0, batch(1)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 1 || files[0].Name() != name {
			t.Errorf("%q: the directory has %v", name, files)
		}
	}
}

func TestOpenOfRelativePathOutlivesChdir(t *testing.T) {
	t.Chdir(t.TempDir())
	s := open(t, "runs.db")
	t.Chdir(t.TempDir())
	if err := s.Append(t.Context(), "a", 0, batch(3)); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Read(t.Context(), "a", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	const schemaOf = "CREATE TABLE thread(x)"
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", func(t *testing.T, path string) { write(t, path, "some notes\n") }, "not a SQLite database"},
		{"long text", func(t *testing.T, path string) { write(t, path, strings.Repeat("some notes\n", 1000)) }, "not a SQLite database"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "not a file"},
		{"another program's", func(t *testing.T, path string) { execute(t, path, schemaOf) }, "belongs to another program"},
		{"another program's, empty", func(t *testing.T, path string) { execute(t, path, "PRAGMA application_id=7") }, "belongs to another program"},
		{"another program's, versioned", func(t *testing.T, path string) { execute(t, path, "PRAGMA user_version=1") }, "belongs to another program"},
		{"newer", func(t *testing.T, path string) {
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			execute(t, path, "PRAGMA user_version=99")
		}, "schema 99, this one knows 8): update raddle"},
		{"damaged", func(t *testing.T, path string) {
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(b[:100])+strings.Repeat("\xff", len(b)-100))
		}, "damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			test.make(t, path)
			before, _ := os.ReadFile(path)
			s, err := sqlite.Open(path)
			if err == nil {
				t.Fatal("Open took it", s.Close())
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant an error that names the path and says %q", err, test.want)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("Open has changed the file")
			}
		})
	}
}

func TestOpenWithoutPath(t *testing.T) {
	if _, err := sqlite.Open(""); err == nil || !strings.Contains(err.Error(), "path is empty") {
		t.Error(err)
	}
}

func TestOpenBelowAFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	_, err := sqlite.Open(filepath.Join(dir, "file", "runs.db"))
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "file")) {
		t.Error(err)
	}
}

// TestOpenTakesAnEmptyFile: it is what a crash right after the creation leaves.
func TestOpenTakesAnEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	write(t, path, "")
	if err := open(t, path).Append(t.Context(), "a", 0, batch(1)); err != nil {
		t.Error(err)
	}
}

func TestOpenTakesAnOlderJournalMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "PRAGMA journal_mode=DELETE")
	if err := open(t, path).Append(t.Context(), "a", 0, batch(1)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
}

func TestCloseCheckpoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	s, other := open(t, path), open(t, path)
	if err := s.Append(t.Context(), "a", 0, batch(500)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The other Store keeps the log in use, but everything is in the file.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "copy.db")
	write(t, alone, string(b))
	if n := count(t, open(t, alone), "a"); n != 500 {
		t.Errorf("the file itself has %d records after Close, want 500", n)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + log); !os.IsNotExist(err) {
			t.Errorf("%s is left after the last Close: %v", log, err)
		}
	}
}

func TestUseAfterClose(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "runs.db"))
	if err := s.Append(t.Context(), "a", 0, batch(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{"Append": s.Append(t.Context(), "a", 1, batch(1)), "Prune": s.Prune(t.Context(), "a", 2)}
	for _, err := range s.Read(t.Context(), "a", journal.Range{}) {
		errs["Read"] = err
	}
	for _, err := range s.Threads(t.Context(), "a") {
		errs["Threads"] = err
	}
	for _, what := range []string{"Append", "Prune", "Read", "Threads"} {
		if err := errs[what]; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func count(t *testing.T, s *sqlite.Store, thread string) (n int) {
	t.Helper()
	for _, err := range s.Read(t.Context(), thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// writeOldFile writes a file as this package did with schema 1 to 3, with three records
// of thread a, the second of which is a snapshot.
func writeOldFile(t *testing.T, path string, schema int) {
	t.Helper()
	defer func() {
		if schema == 2 {
			execute(t, path, `
DROP INDEX base;
CREATE INDEX bases ON record(id) WHERE kind IN (12, 14, 108, 110);
CREATE TABLE lease (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version=2;
`)
		}
		if schema == 3 {
			execute(t, path, `
DROP INDEX base;
CREATE INDEX snapshots ON record(id) WHERE kind IN (12, 14, 108, 110);
CREATE TABLE lease (name TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version=3;
`)
		}
	}()
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
	for _, schema := range []int{1, 2, 3} {
		t.Run(fmt.Sprint("schema ", schema), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "runs.db")
			writeOldFile(t, path, schema)
			testOlderFile(t, path)
		})
	}
}

func testOlderFile(t *testing.T, path string) {
	want := []journal.Record{
		{Seq: 1, Kind: journal.KindStart, Time: 10, Head: []byte("a"), Data: []byte("b")},
		{Seq: 2, Kind: journal.KindSnapshot, Time: 20, Head: []byte("c")},
		{Seq: 3, Kind: journal.KindStep, Time: 30, Data: []byte("d")},
	}
	for range 2 {
		s := open(t, path)
		if _, err := s.AcquireLease(t.Context(), "a", "me", "", time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := s.PutEntry(t.Context(), memory.Entry{Namespace: "a", Key: "k", Value: []byte("1")}, 0); err != nil {
			t.Fatal(err)
		}
		next := journal.Record{Seq: int64(len(want)) + 1, Kind: journal.KindSnapshot, Time: 40, Head: []byte("e"), Sum: 1<<63 + 5}
		if err := s.Append(t.Context(), "a", next.Seq-1, []journal.Record{next}); err != nil {
			t.Fatal(err)
		}
		want = append(want, next)
		if got := all(t, s, "a", journal.Range{}); !same(got, want) {
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
			if got := all(t, s, "a", journal.Range{FromSnapshot: true, UpTo: upTo}); got[0].Seq != from {
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
	const q = "SELECT user_version, (SELECT group_concat(name ORDER BY name) FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL) FROM pragma_user_version"
	if err := db.QueryRowContext(context.Background(), q).Scan(&ver, &indexes); err != nil || ver != 8 || indexes != "drive_due,drive_given_up,drive_worker,expiry,line_label,line_parent,line_place,line_status,line_wait,snapshots,tick_due,tick_ended,tick_time" {
		t.Errorf("version %d, indexes %s, %v", ver, indexes, err)
	}
}

// TestManyOpenAnOlderFile at once: one of them changes it.
func TestManyOpenAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	writeOldFile(t, path, 1)
	errs := make(chan error)
	for range 6 {
		go func() {
			s, err := sqlite.Open(path)
			if err == nil {
				defer s.Close()
				for _, e := range s.Read(context.Background(), "a", journal.Range{FromSnapshot: true}) {
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

func all(t *testing.T, s *sqlite.Store, thread string, r journal.Range) (recs []journal.Record) {
	t.Helper()
	for rec, err := range s.Read(t.Context(), thread, r) {
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	return recs
}

func same(a, b []journal.Record) bool {
	text := func(recs []journal.Record) string {
		var b strings.Builder
		for _, r := range recs {
			fmt.Fprintf(&b, "%d %d %d %q %q %d\n", r.Seq, r.Kind, r.Time, bytes.Clone(r.Head), bytes.Clone(r.Data), r.Sum)
		}
		return b.String()
	}
	return text(a) == text(b)
}

// told is all that the package graph reads of a thread, as text; and whether all could
// be read.
func told(t *testing.T, path string) (text string, whole bool) {
	s, err := sqlite.Open(path)
	if err != nil {
		return "", false
	}
	defer s.Close()
	var b strings.Builder
	whole = true
	ctx := context.Background()
	for i, err := range s.Threads(ctx, "") {
		var d history.RunInfo
		if err == nil {
			d, err = history.Describe(i)
		}
		whole = whole && err == nil
		fmt.Fprintf(&b, "%+v\n", d)
	}
	for e, err := range history.Entries(ctx, s, "t") {
		whole = whole && err == nil
		fmt.Fprintf(&b, "%+v\n", e)
	}
	for _, at := range []int64{0, 5, 9} {
		snap, err := history.Inspect(ctx, s, "t", at)
		if whole = whole && err == nil; err == nil {
			fmt.Fprintf(&b, "%+v %s\n", snap.RunInfo, snap.Values)
		}
	}
	return b.String(), whole
}

// Whatever byte of a record flips in the file: what is read is an error, or what it was.
func TestADamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.db")
	s := open(t, path)
	text := graph.Append[string]("text")
	n := 0
	g, err := graph.Compile(graph.Def{Name: "g", Keys: []graph.AnyKey{text}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Do(ctx, "effect", func(context.Context) (string, error) { n++; return fmt.Sprint("value ", n), nil })
		return graph.Put(text.Set([]string{v})), err
	}}}, Edges: []graph.Edge{{From: []string{"a"}, Cases: map[string]string{"a": "a", "end": graph.End}, Pick: func(graph.State) ([]string, error) {
		if n < 8 {
			return []string{"a"}, nil
		}
		return []string{"end"}, nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g, Store: s}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Prune(t.Context(), s, "t", history.Keep{Records: 100}); err != nil { // writes a snapshot
		t.Fatal(err)
	}
	if err := history.Fork(t.Context(), s, "t", 7, "u"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want, whole := told(t, path)
	if !whole {
		t.Fatal(want)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, last := strings.Index(string(good), "effect"), strings.LastIndex(string(good), "value 8")
	if first < 0 || last < first {
		t.Fatal("the records are not in the file as they are")
	}
	r := rand.New(rand.NewPCG(1, 2))
	rounds := 200
	if testneed.Soaks() {
		rounds = 800
	}
	noticed, same := 0, 0
	for i := range rounds {
		at, bit := first+r.IntN(last-first), r.IntN(8)
		if i%2 == 1 { // anywhere
			at = r.IntN(len(good))
		}
		bad := append([]byte(nil), good...)
		if i > 0 { // the first is the control
			bad[at] ^= 1 << bit
		}
		damaged := filepath.Join(dir, "damaged.db")
		if err := os.WriteFile(damaged, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		switch got, whole := told(t, damaged); {
		case !whole && i == 0:
			t.Fatalf("a copy of the file cannot be read: %s", got)
		case !whole:
			noticed++
		case got == want:
			same++
		default:
			t.Errorf("byte %d, bit %d: read as\n%s\nwant\n%s", at, bit, got, want)
		}
		for _, log := range []string{"-wal", "-shm"} {
			_ = os.Remove(damaged + log)
		}
	}
	if t.Logf("%d noticed, %d without consequence", noticed, same); noticed < rounds/8 {
		t.Errorf("only %d of %d were noticed", noticed, rounds)
	}
}
