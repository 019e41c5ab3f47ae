package runs

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph/journal"
)

// BusyError reports that another process works on a run.
type BusyError struct {
	Run string // its thread
	PID int    // 0 if unknown
	// Lease says that another machine drives the run, or a program other than raddle: there is no lock on this machine.
	Lease journal.Lease
}

func (e *BusyError) Error() string {
	what := "run " + e.Run
	if agent, name, ok := SessionOf(e.Run); ok {
		what = fmt.Sprintf("session '%s' of agent '%s'", name, agent)
	}
	if e.Lease.Owner != "" {
		return fmt.Sprintf("%s is being driven by %s; its lease ends at %s", what, e.Lease, e.Lease.Until.Local().Format("15:04:05"))
	}
	if e.PID == 0 {
		return what + " is being driven by another process"
	}
	return fmt.Sprintf("%s is being driven by process %d", what, e.PID)
}

// errLocked reports that another process holds a lock.
var errLocked = errors.New("locked")

// A listing takes a lock for a moment to see whether a run is driven. A process
// that wants to drive the run therefore tries for a little longer than a moment.
const (
	lockTries = 10
	lockPause = 10 * time.Millisecond
)

// A Lock is held while a run is driven. The system releases it when the process
// ends, whatever the reason.
//
// The lease that a drive holds in the store has the same purpose for other machines and
// programs that use package graph. The lock covers more: the time in which a run is
// prepared, in which a person thinks about a question, and in which it is edited or
// removed. It does not depend on a clock.
type Lock struct{ file *os.File }

// TakeLock takes the lock of a run, or another one with a name of its own, in a directory that it creates if necessary.
// If dir is empty, there are no locks.
func TakeLock(dir, run string) (*Lock, error) {
	if dir == "" {
		return &Lock{}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the lock of run %s: %w", run, err)
	}
	path := lockPath(dir, run)
	for try := 0; ; try++ {
		f, err := lockFile(path)
		if err == nil {
			return recordLockHolder(f), nil
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("the lock of run %s: %w", run, err)
		}
		if try == lockTries {
			return nil, &BusyError{Run: run, PID: readLockHolder(path)}
		}
		time.Sleep(lockPause)
	}
}

// lockPath returns the path of a thread's lock file.
func lockPath(dir, thread string) string { return filepath.Join(dir, url.PathEscape(thread)) }

// recordLockHolder records the owner in the lock file. If the disk is full it records nothing:
// it must still be possible to remove runs.
func recordLockHolder(f *os.File) *Lock {
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{file: f}
}

// readLockHolder reads the process id of the owner, or 0 if the file does not hold it.
func readLockHolder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// Release releases the lock. It removes the file first: once the file is unlocked,
// another process may be about to use it.
func (l *Lock) Release() {
	if l.file == nil {
		return
	}
	_ = os.Remove(l.file.Name()) // a file that remains does no harm
	_ = l.file.Close()
	l.file = nil
}

// listLocks returns the threads with lock files in a directory; a process need not hold them any more.
func listLocks(dir string) (threads []string) {
	files, err := os.ReadDir(dir)
	if dir == "" || err != nil {
		return nil
	}
	for _, f := range files {
		if thread, err := url.PathUnescape(f.Name()); err == nil {
			threads = append(threads, thread)
		}
	}
	return threads
}

// findDriver reports whether a process drives a run, and its id.
func findDriver(dir, run string) (pid int, yes bool) {
	if dir == "" {
		return 0, false
	}
	path := lockPath(dir, run)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return 0, false
	}
	switch err := tryLock(path); {
	case errors.Is(err, errLocked):
		return readLockHolder(path), true
	default:
		return 0, false
	}
}
