//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package script

import (
	"os"
	"syscall"
)

// lock keeps other recorders, also those of other processes, from writing in
// dir until unlock is called. The directory stands for the file, which is
// replaced while it is locked.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		if err != syscall.EINTR {
			_ = f.Close()
			return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
		}
	}
}
