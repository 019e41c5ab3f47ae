//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package script

import (
	"os"
	"syscall"
)

// lock prevents other recorders, also those of other processes, from writing in
// dir until unlock is called. It locks the directory, because the file itself
// is replaced during the lock.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing the file unlocks it
		}
		if err != syscall.EINTR {
			_ = f.Close()
			return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
		}
	}
}
