//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A killed raddle leaves the temporary files of its script behind: the state, which
// is too large for the environment. The next start removes them.
func TestKilledLeavesNoTemporaryFiles(t *testing.T) {
	t.Parallel()
	needBash(t)
	w := newWorkplace(t, strings.Replace(gated, "start: a", "initial_state: {big: "+strings.Repeat("x", 40_000)+"}\nstart: a", 1))
	temp := filepath.Join(w.dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+temp)
	leftover := func() (files []string) {
		err := filepath.WalkDir(temp, func(path string, _ os.DirEntry, err error) error {
			if path != temp {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	pass := g.arrive()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, cmd)
	pass()
	if len(leftover()) == 0 {
		t.Fatal("the killed process has left nothing: this test shows nothing")
	}
	ended := make(chan result, 1)
	go func() { ended <- w.run("resume", w.runs()[0].Run) }()
	g.arrive()()
	if r := <-ended; r.code != 0 {
		t.Fatalf("resumed: %d, %s", r.code, r.err)
	}
	if files := leftover(); len(files) > 0 {
		t.Errorf("left behind: %q", files)
	}
}
