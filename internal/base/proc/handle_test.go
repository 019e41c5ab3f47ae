//go:build linux || darwin

package proc

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// survivor starts a script as a driver that has died would have left it: in its own group, without a process that waits for it.
func survivor(t *testing.T, w *wire, script string) (*exec.Cmd, Handle) {
	t.Helper()
	cmd := exec.Command("bash", "-c", w.script(script))
	cmd.SysProcAttr = childAttributes()
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := identifyChild(cmd.Process.Pid, "")
	t.Cleanup(func() {
		killGroup(cmd.Process.Pid)
		cmd.Wait()
	})
	if h.PID != cmd.Process.Pid || h.PGID != h.PID || h.Start == "" {
		t.Fatalf("handle %+v of process %d", h, cmd.Process.Pid)
	}
	return cmd, h
}

func TestEnd(t *testing.T) {
	w := newWire(t)
	cmd, h := survivor(t, w, "trap '' TERM; (say word; forever) & say word; forever")
	w.expect("word")
	w.expect("word")
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var read Handle
	if err := json.Unmarshal(text, &read); err != nil || read != h {
		t.Fatalf("%s is read as %+v, %v, want %+v", text, read, err, h)
	}

	for _, want := range []bool{true, false} {
		if got, err := EndHandle(read); got != want || err != nil {
			t.Fatalf("End = %v, %v, want %v, nil", got, err, want)
		}
		w.expectEnd() // the grandchild too
	}
	cmd.Wait()
	if got, err := EndHandle(read); got || err != nil {
		t.Errorf("End of a reaped process = %v, %v, want false, nil", got, err)
	}
}

func TestEndLeavesOtherProcessesAlone(t *testing.T) {
	w := newWire(t)
	_, h := survivor(t, w, "say ready; forever")
	w.expect("ready")
	cases := []struct {
		name   string
		handle Handle
		failed bool
	}{
		{name: "nothing", handle: Handle{}},
		{name: "started earlier", handle: Handle{PID: h.PID, PGID: h.PGID, Start: earlier(h.Start)}},
		{name: "another boot", handle: Handle{PID: h.PID, PGID: h.PGID, Start: "another" + h.Start}},
		{name: "unknown start", handle: Handle{PID: h.PID, PGID: h.PGID}, failed: true},
		{name: "in another group", handle: Handle{PID: h.PID, PGID: h.PGID + 1, Start: h.Start}, failed: true},
		{name: "all processes", handle: Handle{PID: 1, PGID: 1, Start: h.Start}, failed: true},
		{name: "negative", handle: Handle{PID: -h.PID, PGID: -h.PID, Start: h.Start}, failed: true},
		{name: "ourselves", handle: identifyChild(os.Getpid(), ""), failed: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, err := EndHandle(c.handle); got || (err != nil) != c.failed {
				t.Errorf("End = %v, %v", got, err)
			}
		})
	}
	if _, err := EndHandle(Handle{PID: h.PID, PGID: h.PGID}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v without a start, want %v", err, errors.ErrUnsupported)
	}
	if s, ok := inspectProcess(h.PID); !ok || s.dead {
		t.Error("the process was ended")
	}
	if got, err := EndHandle(h); !got || err != nil {
		t.Errorf("End of the right handle = %v, %v", got, err)
	}
}

// earlier returns the start of a process that had the id before: only its last digit differs.
func earlier(start string) string {
	last := start[len(start)-1:]
	return strings.TrimSuffix(start, last) + string('0'+('9'-last[0]))
}
