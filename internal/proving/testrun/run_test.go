package testrun

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"raddle.dev/graph"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/testkit/testfile"
)

// unpack writes the files of an archive and returns their directory.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", archive))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		testfile.WriteFile(t, filepath.Join(dir, filepath.FromSlash(f.Name)), string(f.Data))
	}
	return dir
}

func newRunner(t *testing.T) *Runner {
	return &Runner{Environ: []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-none", "RADDLE_STORE=sqlite:x.db"}, Temp: t.TempDir()}
}

// listFiles returns the files below a directory with their contents.
func listFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runFiles runs all cases below a directory.
func runFiles(t *testing.T, r *Runner, dir string) (results []*Result) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"+testcase.Suffix))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			res, err := r.RunCase(t.Context(), c, Setup{})
			if err != nil {
				t.Fatal(c.Name, err)
			}
			results = append(results, res)
		}
	}
	return results
}

// TestRunCase runs cases that pass. The files of their agents stay as they are, and nothing remains of their scratch directories.
func TestRunCase(t *testing.T) {
	dir, r := unpack(t, "pass.txtar"), newRunner(t)
	before := listFiles(t, dir)
	for _, res := range runFiles(t, r, dir) {
		for _, f := range res.Failures {
			t.Errorf("%s: %s %s: %s", res.Case.Name, f.Pos, f.What, f.Message)
		}
	}
	after := listFiles(t, dir)
	for path, text := range after {
		if before[path] != text {
			t.Errorf("a test has written %s", path)
		}
	}
	if left := listFiles(t, r.Temp); len(left) > 0 || len(after) != len(before) {
		t.Errorf("files remain: %v", left)
	}
}

var updateGolden = flag.Bool("update", false, "write testdata/fail.txtar again")

// TestFailures compares what is said about cases that fail with the file `want` of the archive.
func TestFailures(t *testing.T) {
	dir, r := unpack(t, "fail.txtar"), newRunner(t)
	var b strings.Builder
	for _, res := range runFiles(t, r, dir) {
		b.WriteString(res.Case.Name + "\n")
		if res.HasPassed() {
			t.Errorf("%s: the case has passed", res.Case.Name)
		}
		for _, f := range res.Failures {
			fmt.Fprintf(&b, "  %s %s: %s\n", f.Pos, f.What, f.Message)
			for _, line := range DiffTexts(f.Want, f.Got) {
				b.WriteString("    " + line + "\n")
			}
		}
	}
	path := filepath.Join("testdata", "fail.txtar")
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.ReplaceAll(b.String(), dir+string(filepath.Separator), ""), &a.Files[len(a.Files)-1]
	if *updateGolden {
		want.Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != string(want.Data) {
		t.Errorf("got\n%s\nwant\n%s", got, want.Data)
	}
}

// TestInterruptedDrives stops each case after some of its events and continues it in another drive: nothing differs from a run in one drive,
// because an effect that is repeated gets the same answer again.
func TestInterruptedDrives(t *testing.T) {
	dir, r := unpack(t, "pass.txtar"), newRunner(t)
	files, err := FindFiles([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	stopped := 0
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			for after := 2; after < 60; after += 7 {
				events := 0
				var stop context.CancelFunc
				s := Setup{
					Event: func(graph.Event) {
						if events++; events == after {
							stop()
						}
					},
					Drive: func(ctx context.Context, trial *Trial) (graph.Result, error) {
						first, cancel := context.WithCancel(ctx)
						defer cancel()
						stop = cancel
						res, err := trial.Drive(first)
						if first.Err() == nil || err == nil {
							return res, err
						}
						stopped++
						return trial.Drive(ctx)
					},
				}
				res, err := r.RunCase(t.Context(), c, s)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range res.Failures {
					t.Errorf("%s, stopped after %d events: %s: %s", c.Name, after, f.What, f.Message)
				}
			}
		}
	}
	if stopped < 20 {
		t.Errorf("only %d drives were stopped", stopped)
	}
}
