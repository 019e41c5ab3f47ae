//go:build unix

package proc

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/testkit/testneed"
)

func TestRunEndsWhatHasLeftTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the environment of other processes can be read on Linux only")
	}
	testneed.RequirePrograms(t, "setsid")
	w := newWire(t)
	c := bash(`exec 9>"$WIRE"; (setsid sleep 1000 >/dev/null 2>&1 </dev/null &)`)
	c.Mark = "MARK=" + w.path
	c.Env = append(c.Env, "WIRE="+w.path, c.Mark)
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	<-w.end
}

// A handle finds processes by its mark when the child itself has ended.
func TestEndFindsTheMark(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the environment of other processes can be read on Linux only")
	}
	w := newWire(t)
	c := bash(`exec 9>"$WIRE"; (setsid sleep 1000 >/dev/null 2>&1 </dev/null &)`)
	mark := "MARK=" + w.path
	c.Env = append(c.Env, "WIRE="+w.path, mark)
	var h Handle
	c.Started = func(started Handle) error { h = started; return nil }
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.Mark = mark // as if the process that ran it had died before it could look
	if alive, err := EndHandle(h); alive || err != nil {
		t.Errorf("%v, %v", alive, err)
	}
	<-w.end
}

func TestRunLeavesThoseWithAnotherMark(t *testing.T) {
	other := exec.Command("sleep", "1000")
	other.Env = []string{"PATH=" + os.Getenv("PATH"), "MARK=other"}
	if err := other.Start(); err != nil {
		t.Skipf("sleep is not installed: %v", err)
	}
	c := bash("true")
	c.Mark = "MARK=othe" // the beginning of the other's
	c.Env = append(c.Env, c.Mark)
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := other.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("it was ended before: %v", err)
	}
}

func TestWatchSeesAllOfStdout(t *testing.T) {
	var seen bytes.Buffer
	c := bash("for i in 1 2 3 4 5; do echo line $i; done; echo other >&2")
	c.Watch, c.Limit = &seen, 10
	res, err := Run(t.Context(), c)
	if err != nil || res.StdoutDropped == 0 {
		t.Errorf("%+v %v", res, err)
	}
	if want := "line 1\nline 2\nline 3\nline 4\nline 5\n"; seen.String() != want {
		t.Errorf("got %q", seen.String())
	}
}
