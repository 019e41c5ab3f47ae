package proc

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// endWait is how long End waits for a killed process to be gone.
const endWait = 5 * time.Second

// A Handle identifies a child for good, also after its process id has been given to another process and after a reboot. It is plain
// data, made to be written down by [Command.Started] and given to [End] by a later process on the same machine.
type Handle struct {
	PID  int `json:"pid"`
	PGID int `json:"pgid"`
	// Start tells apart the processes that had this PID, by the system's own record of when they started. It is opaque, and empty
	// where the system keeps no such record or hides it.
	Start string `json:"start,omitempty"`
	// Mark is the Command's. What still has it in its environment is ended with the child, also after the child itself has gone.
	Mark string `json:"mark,omitempty"`
}

// A sighting is what the system says of the process that has a certain id now.
type sighting struct {
	start string // as in Handle
	dead  bool   // it has ended and waits to be reaped
}

// identifyChild makes the handle of a child that leads its own group. The child must not have been reaped.
func identifyChild(pid int, mark string) Handle {
	s, _ := look(pid)
	return Handle{PID: pid, PGID: pid, Start: s.start, Mark: mark}
}

// End kills the process that h names together with its group, and returns when it is gone. It reports whether there was such a
// process alive. A process that merely has the same id is left alone: the start must match as well. On Linux, processes that have
// left the group and kept the Mark are killed as well.
//
// A handle without a start cannot be verified: the error is then errors.ErrUnsupported, and nothing is done. The zero handle names
// nothing, and that is no error.
func End(h Handle) (bool, error) {
	switch {
	case h == Handle{}:
		return false, nil
	case h.PID <= 1 || h.PGID != h.PID || h.PID == os.Getpid():
		return false, fmt.Errorf("process %d of group %d is not a child that was started here: nothing is ended", h.PID, h.PGID)
	case h.Start == "":
		return false, fmt.Errorf("process %d cannot be told from another one with its id; if it still runs, end it by hand: %w",
			h.PID, errors.ErrUnsupported)
	}
	if h.Mark != "" {
		defer endMarked(h.Mark)
	}
	s, ok := look(h.PID)
	if !ok || s.start != h.Start {
		return false, nil
	}
	// As long as the process exists, even dead, no other group can have its id.
	if err := killGroup(h.PGID); err != nil {
		return false, fmt.Errorf("ending process %d and its group: %w", h.PID, err)
	}
	return !s.dead, h.waitGone()
}

// waitGone waits until the process has ended. It is not our child, so there is nothing to wait on and we have to look.
func (h Handle) waitGone() error {
	deadline := time.Now().Add(endWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		s, ok := look(h.PID)
		if !ok || s.dead || s.start != h.Start {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d was killed but has not ended after %v: it is stuck in the system", h.PID, endWait)
		}
		time.Sleep(pause)
	}
}
