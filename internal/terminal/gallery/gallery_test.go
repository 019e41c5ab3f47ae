package gallery

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/examples"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
)

// newConsole returns a console that writes to a file, and the file.
func newConsole(t *testing.T) (*console.Console, *os.File) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return console.New(out, out, out, func(b []byte) []byte { return b }), out
}

// Examples are copied once: what a person may have changed is never overwritten.
func TestCopy(t *testing.T) {
	con, out := newConsole(t)
	dir := t.TempDir()
	if err := CopyExamples(con, dir, []string{"hello", "examples/reference/graph"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hello/graph.yaml", "reference/graph/documents/knots.md"} {
		if _, err := os.Stat(filepath.Join(dir, "examples", name)); err != nil {
			t.Error(err)
		}
	}
	own := filepath.Join(dir, "examples", "hello", "graph.yaml")
	if err := os.WriteFile(own, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CopyExamples(con, dir, []string{"hello"}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("%v", err)
	}
	if err := CopyExamples(con, dir, nil); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(own); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
	if err := CopyExamples(con, dir, []string{"helo"}); err == nil || !strings.Contains(err.Error(), `no example "helo"`) {
		t.Errorf("%v", err)
	}
	said, err := os.ReadFile(out.Name())
	if err != nil || !strings.Contains(string(said), `next: raddle run `+filepath.Join("examples", "hello")+` "Ada"`) {
		t.Errorf("%s %v", said, err)
	}
}

// A prepared example lies in the cache, below a directory that changes with the examples.
func TestPrepare(t *testing.T) {
	dirs := config.Dirs{Cache: t.TempDir()}
	first, err := PrepareRun(dirs, "handbook", nil)
	if err != nil || first.Prompt != "How long is the notice period?" {
		t.Fatalf("%+v %v", first, err)
	}
	if _, err := os.Stat(filepath.Join(first.Work, first.Agent, "graph.yaml")); err != nil {
		t.Error(err)
	}
	again, err := PrepareRun(dirs, "handbook", []string{"And", "pay?"})
	if err != nil || again.Work != first.Work || again.Prompt != "And pay?" {
		t.Errorf("%+v %v", again, err)
	}
}

// Every directory of an agent among the examples is listed.
func TestExamplesAreComplete(t *testing.T) {
	for _, pattern := range []string{"*", "*/*"} {
		for _, file := range []string{"graph.yaml", "config.yaml"} {
			found, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", pattern, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range found {
				name, err := filepath.Rel(filepath.Join("..", "..", "..", "examples"), filepath.Dir(path))
				if _, ok := examples.FindExample(filepath.ToSlash(name)); err != nil || !ok {
					t.Errorf("%s is not listed", name)
				}
			}
		}
	}
}

// Several programs that unpack the examples at the same time each find all files of them, and leave no others.
func TestUnpackAtTheSameTime(t *testing.T) {
	whole := countFiles(t, filepath.Join("..", "..", "..", "examples", "review"))
	for range 20 {
		dir := t.TempDir()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				root, err := examples.UnpackAll(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if n := countFiles(t, filepath.Join(root, "examples", "review")); n != whole {
					t.Errorf("%d files of an example are there, want %d", n, whole)
				}
			})
		}
		all.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
}

// countFiles returns the number of files below a directory.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return n
}
