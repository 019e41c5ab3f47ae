//go:build unix

package cli_test

import (
	"strings"
	"syscall"
	"testing"
)

// SIGQUIT prints what the process does and has an exit code of its own; the run can be
// resumed.
func TestQuit(t *testing.T) {
	needBash(t)
	w := serveHeld(t, notHeld, "hold", "all is well").workplace()
	g := w.gate("gate")
	cmd, c := w.begin("run", "./stop", "go")
	pass := g.arrive()
	w.send(cmd, syscall.SIGQUIT)
	if got := wait(t, cmd); got != 131 || !strings.Contains(c.String(), "raddle: SIGQUIT\n") || !strings.Contains(c.String(), "goroutine 1 ") {
		t.Errorf("exit code %d\n%s", got, c)
	}
	pass()
	if r := w.run("resume", "-q", w.runs()[0].Run, "--in-doubt", "skip"); r.code != 0 || r.out != "all is well\n" {
		t.Errorf("%+v", r)
	}
}
