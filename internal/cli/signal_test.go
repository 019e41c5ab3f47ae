//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testneed"
)

func needBash(t *testing.T) {
	t.Helper()
	testneed.RequirePrograms(t, "bash")
}

// A gate is a named pipe between a test and a script: the script waits in it until
// the test opens it.
type gate struct {
	w    *workplace
	path string
}

func (w *workplace) gate(name string) gate {
	w.t.Helper()
	g := gate{w, filepath.Join(w.dir, name)}
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return g
}

// arrive blocks until a script opens the gate for reading, and returns a function that lets
// the script continue.
func (g gate) arrive() (pass func()) {
	g.w.t.Helper()
	opened := make(chan *os.File, 1)
	go func() {
		f, err := os.OpenFile(g.path, os.O_WRONLY, 0)
		if err != nil {
			close(opened)
			return
		}
		opened <- f
	}()
	select {
	case f := <-opened:
		if f == nil {
			g.w.t.Fatalf("%s cannot be opened", g.path)
		}
		return func() { _ = f.Close() }
	case <-time.After(patience):
		g.w.t.Fatalf("nothing arrived at %s", g.path)
	}
	return nil
}

// gated is two scripts, the first of which waits at a gate.
const gated = `
-- slow/graph.yaml --
name: slow
start: a
nodes:
  a: {type: script, script: a.sh, next: b, timeout: 100}
  b: {type: script, script: b.sh, next: done}
  done: {type: end, output: "a ran {{a}} times"}
-- slow/a.sh --
echo a >> "$RADDLE_WORKSPACE/log"
cat "$RADDLE_WORKSPACE/gate"
printf '{"a": %s}' "$(grep -c a "$RADDLE_WORKSPACE/log")"
-- slow/b.sh --
echo b >> "$RADDLE_WORKSPACE/log"
echo '{}'
`

func (w *workplace) begin(args ...string) (*exec.Cmd, *console) {
	w.t.Helper()
	cmd, c := w.command(args...), newConsole()
	cmd.Stderr = c
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, c
}

func (w *workplace) send(cmd *exec.Cmd, sig syscall.Signal) {
	w.t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		w.t.Fatal(err)
	}
}

// The first signal lets the current step finish, and saves the run.
func TestSignalDrains(t *testing.T) {
	needBash(t)
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(sig.String(), func(t *testing.T) {
			w := newWorkplace(t, gated)
			g := w.gate("gate")
			cmd, c := w.begin("run", "./slow")
			pass := g.arrive()
			w.send(cmd, sig)
			c.await(t, "Stopping after this step.")
			pass()
			if got := wait(t, cmd); got != code {
				t.Errorf("exit code %d, want %d\n%s", got, code, c)
			}
			if got := w.read("log"); got != "a\n" {
				t.Errorf("the scripts that ran: %q, want only the one under way", got)
			}
			runs := w.runs()
			if len(runs) != 1 || runs[0].Status != "paused" {
				t.Fatalf("runs: %v", runs)
			}
			if want := "next: raddle resume " + runs[0].Run; !strings.Contains(c.String(), want) {
				t.Errorf("standard error lacks %q:\n%s", want, c)
			}
			r := w.run("resume", "-q", runs[0].Run)
			if r.out != "a ran 1 times\n" || w.read("log") != "a\nb\n" {
				t.Errorf("resumed: %q %q, log %q", r.out, r.err, w.read("log"))
			}
		})
	}
}

// The second signal interrupts the running work. It runs again.
func TestSecondSignalCancels(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow", "--output", "stream-json")
	first := g.arrive()
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Errorf("exit code %d, want 130\n%s", got, c)
	}
	first()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "canceled" {
		t.Fatalf("runs: %v\n%s", runs, c)
	}
	again, c := w.begin("resume", runs[0].Run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
}

// The third signal quits at once; the run is as if it had crashed.
func TestThirdSignalQuits(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, strings.Replace(gated, "cat ", "trap '' TERM\ncat ", 1))
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow")
	defer g.arrive()()
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	c.await(t, "to quit at once")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Errorf("exit code %d, want 130\n%s", got, c)
	}
}

// One process drives a run. A second one is refused, and lists show the first.
func TestOneDriver(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	pass := g.arrive()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "running" {
		t.Fatalf("runs: %v", runs)
	}
	for _, args := range [][]string{{"resume", runs[0].Run}, {"runs", "rm", runs[0].Run}, {"runs", "edit", runs[0].Run, "a=1"}, {"runs", "prune", runs[0].Run}} {
		r := w.run(args...)
		if r.code != 8 || !strings.Contains(r.err, "is being driven by process "+itoa(cmd.Process.Pid)) {
			t.Errorf("%v: exit code %d, %s", args, r.code, r.err)
		}
	}
	pass()
	if got := wait(t, cmd); got != 0 {
		t.Errorf("exit code %d", got)
	}
	if runs := w.runs(); runs[0].Status != "done" {
		t.Errorf("runs: %v", runs)
	}
}

// To cancel a run that is being driven stops its process first, which saves the run.
func TestCancelStopsTheDriver(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, c := w.begin("run", "./slow")
	pass := g.arrive()
	run := w.runs()[0].Run
	cancel, said := w.begin("runs", "cancel", run)
	c.await(t, "Stopping after this step.")
	pass()
	if got := wait(t, cmd); got != 143 {
		t.Errorf("the driver: exit code %d, want 143\n%s", got, c)
	}
	if got := wait(t, cancel); got != 0 {
		t.Errorf("cancel: exit code %d\n%s", got, said)
	}
	if runs := w.runs(); runs[0].Status != "abandoned" {
		t.Errorf("runs: %v", runs)
	}
	if r := w.run("resume", run); r.code != 8 || !strings.Contains(r.err, "is over (abandoned)") {
		t.Errorf("resume: exit code %d, %s", r.code, r.err)
	}
}

// What a killed process has left behind is ended before a run is edited, and the
// current step starts again.
func TestEditAfterAKill(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	first := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	first()
	run := w.runs()[0].Run
	if r := w.run("runs", "edit", run, "extra=1"); r.code != 0 {
		t.Fatalf("edit: exit code %d, %s", r.code, r.err)
	}
	again, c := w.begin("resume", run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
	if r := w.run("runs", "show", run); !strings.Contains(r.out, "extra: 1") {
		t.Errorf("show: %s%s", r.out, r.err)
	}
}

// A process that was killed leaves a run that crashed, and no child.
func TestKilledRunGoesOn(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd, _ := w.begin("run", "./slow")
	first := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	first()
	runs := w.runs()
	if len(runs) != 1 || runs[0].Status != "crashed" {
		t.Fatalf("runs: %v", runs)
	}
	again, c := w.begin("resume", runs[0].Run)
	g.arrive()()
	if got := wait(t, again); got != 0 || w.read("log") != "a\na\nb\n" {
		t.Errorf("resumed: exit code %d, log %q\n%s", got, w.read("log"), c)
	}
}
