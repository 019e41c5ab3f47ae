package testrun

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"raddle.dev/internal/testcase"
	"raddle.dev/internal/testfile"
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
