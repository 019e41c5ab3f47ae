//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that was imported continues only when a person at a terminal has decided. Without one it parks, says what it would do, and
// names a next step that works; no flag decides, and no other command runs anything of it.
func TestImportedRunParks(t *testing.T) {
	w := newWorkplace(t, checkReport)
	if r := w.run("run", "./consent"); r.code != 5 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	run := w.runs()[0].Run
	for _, args := range [][]string{{"runs", "export", run, "-o", "bug.raddle"}, {"runs", "rm", run}, {"runs", "import", "bug.raddle"}} {
		if r := w.run(args...); r.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	for _, args := range [][]string{{}, {"--answer", "no"}, {"--answer", "a/act=once"}, {"--answer", "accept"}, {"--answer", "continue"}, {"--answer", "foreign run=accept"}, {"--mode", "edits"}, {"--accept-changes"}, {"--in-doubt", "retry"}} {
		r := w.run(append([]string{"resume", run}, args...)...)
		if r.code != 5 && r.code != 2 {
			t.Errorf("resume %v: exit code %d\n%s", args, r.code, r.err)
		}
		if r.code == 5 && (!strings.Contains(r.err, "came from "+filepath.Join(w.dir, "bug.raddle")) || !strings.Contains(r.err, "call that waits: fs_write") || !strings.Contains(r.err, "next: raddle resume "+run) || strings.Contains(r.err, "--answer TEXT") || !strings.Contains(r.err, "only a person can consent")) {
			t.Errorf("resume %v says\n%s", args, r.err)
		}
	}
	for _, args := range [][]string{{"runs", "show", run}, {"inbox"}, {"inbox", "--output", "json"}, {"runs", "ls"}, {"runs", "fork", run, "--resume"}, {"replay", run}, {"replay", "bug.raddle"}, {"runs", "export", run}} {
		r := w.run(args...)
		if strings.Contains(r.out, "--answer foreign") || strings.Contains(r.out+r.err, "--answer TEXT\"") {
			t.Errorf("%v names an answer that does not count:\n%s%s", args, r.out, r.err)
		}
	}
	for _, name := range []string{run, "bug.raddle"} {
		if r := w.run("replay", name, "--live"); r.code != 2 || !strings.Contains(r.err, "would allow calls on this machine") {
			t.Errorf("replay %s --live: exit code %d\n%s%s", name, r.code, r.out, r.err)
		}
	}
	if _, err := os.Stat(w.dir + "/../outside.txt"); err == nil {
		t.Error("the file was written")
	}
	if r := w.run("runs", "show", run); !strings.Contains(r.out, "came from") {
		t.Errorf("runs show prints\n%s", r.out)
	}
}
