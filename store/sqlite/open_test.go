package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"raddle.dev/graph"
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
	for _, err := range s.Read(t.Context(), "a", graph.Range{}) {
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
		}, "schema 99, this one knows 2): update raddle"},
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
	for _, err := range s.Read(t.Context(), "a", graph.Range{}) {
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
	for _, err := range s.Read(t.Context(), thread, graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
