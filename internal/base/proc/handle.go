package proc

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// endWait limits how long EndHandle waits for a killed process to end.
const endWait = 5 * time.Second

// A Handle identifies a child permanently, also after its process id has been given to another process and after a
// reboot. It is plain data: [Command.Started] can record it, and a later process on the same machine can pass it to
// [EndHandle].
type Handle struct {
	PID  int `json:"pid"`
	PGID int `json:"pgid"`
	// Start distinguishes the processes that had this PID, by the system's own record of when they started. It is
	// opaque, and empty if the system keeps no such record or hides it.
	Start string `json:"start,omitempty"`
	// Mark is the Mark of the Command. Processes that still have it in their environment are ended with the child, also
	// after the child has ended.
	Mark string `json:"mark,omitempty"`
}

// A processInfo is what the system reports about the process that has a certain id now.
type processInfo struct {
	start string // as in Handle
	dead  bool   // it has ended and waits to be reaped
}

// identifyChild returns the handle of a child that leads its own group. The child must not have been reaped.
func identifyChild(pid int, mark string) Handle {
	s, _ := inspectProcess(pid)
	return Handle{PID: pid, PGID: pid, Start: s.start, Mark: mark}
}

// EndHandle kills the process that h names together with its group, and returns when the process has ended. It reports
// whether such a process was alive. A process that only has the same id is not touched: the start must match as well.
// On Linux, processes that have left the group and kept the Mark are killed as well.
//
// A handle without a start cannot be verified: EndHandle then does nothing and returns errors.ErrUnsupported. The zero
// handle names no process; EndHandle does nothing and returns no error.
func EndHandle(h Handle) (bool, error) {
	switch {
	case h == Handle{}:
		return false, nil
	case h.PID <= 1 || h.PGID != h.PID || h.PID == os.Getpid():
		return false, fmt.Errorf("process %d of group %d is not a child that was started here: nothing is ended", h.PID, h.PGID)
	case h.Start == "":
		return false, fmt.Errorf("process %d cannot be distinguished from another one with its id; if it still runs, end it by hand: %w",
			h.PID, errors.ErrUnsupported)
	}
	if h.Mark != "" {
		defer endMarked(h.Mark)
	}
	s, ok := inspectProcess(h.PID)
	if !ok || s.start != h.Start {
		return false, nil
	}
	// As long as the process exists, even as a zombie, no other group can have its id.
	if err := killGroup(h.PGID); err != nil {
		return false, fmt.Errorf("ending process %d and its group: %w", h.PID, err)
	}
	return !s.dead, h.waitGone()
}

// CurrentHandle returns the handle of this process, with which a later one can ask whether it is alive. [EndHandle]
// refuses it.
func CurrentHandle() Handle {
	s, _ := inspectProcess(os.Getpid())
	return Handle{PID: os.Getpid(), Start: s.start}
}

// IsAlive reports whether the process that h names is alive. One that cannot be distinguished from another one with its
// id counts as alive if there is any.
func (h Handle) IsAlive() bool {
	s, ok := inspectProcess(h.PID)
	return ok && !s.dead && (h.Start == "" || s.start == h.Start)
}

// waitGone waits until the process has ended. It is not a child of this process, so it can only be polled.
func (h Handle) waitGone() error {
	deadline := time.Now().Add(endWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		s, ok := inspectProcess(h.PID)
		if !ok || s.dead || s.start != h.Start {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d was killed but has not ended after %v: it is stuck in the system", h.PID, endWait)
		}
		time.Sleep(pause)
	}
}
