package testrun

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/internal/testkit/testfile"
)

func TestFindFiles(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"b/x.test.yaml": "", "a/y.test.yaml": "", "a/graph.yaml": "", ".git/z.test.yaml": "", "a/node_modules/z.test.yaml": ""})
	one := filepath.Join(dir, "a", "y.test.yaml")
	got, err := FindFiles([]string{dir, one})
	if want := []string{one, filepath.Join(dir, "b", "x.test.yaml")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := FindFiles([]string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a directory that does not exist is no error")
	}
}

// TestWaitForChange changes a script of an agent while its cases are watched.
func TestWaitForChange(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"a.test.yaml": "", "run.sh": "old"})
	synctest.Test(t, func(t *testing.T) {
		var s Suite
		changed := make(chan error)
		go func() { changed <- s.WaitForChange(t.Context(), []string{filepath.Join(dir, "a.test.yaml")}) }()
		time.Sleep(5 * watchInterval)
		select {
		case err := <-changed:
			t.Fatal("nothing has changed", err)
		default:
		}
		if err := os.Remove(filepath.Join(dir, "run.sh")); err != nil {
			t.Fatal(err)
		}
		if err := <-changed; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.WaitForChange(ctx, []string{dir}); err == nil {
			t.Error("the end of the context is no error")
		}
	})
}

// TestSelectedCases runs the cases whose name matches, and a context that has ended stops a suite.
func TestSelectedCases(t *testing.T) {
	path := writeStubbed(t, 30)
	s := Suite{Runner: Runner{Environ: []string{"HOME=" + t.TempDir()}, Temp: t.TempDir()}, Match: regexp.MustCompile("case 1[0-4]$")}
	all, err := s.Run(t.Context(), []string{path}, nil)
	if err != nil || len(all[0].Results) != 5 || all[0].CountFailed() > 0 {
		t.Errorf("%d cases, %v", len(all[0].Results), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(ctx, []string{path}, nil); err == nil {
		t.Error("the suite has run")
	}
}
