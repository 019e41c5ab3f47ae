//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package app

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens and locks a file. Between the two its last holder may have
// removed it; then there is another file to lock.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f, syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if sameFile(f, path) {
			return f, nil
		}
		_ = f.Close()
	}
}

// tryLock tells with errLocked that somebody holds the lock, and takes it for no
// longer than it needs to find out.
func tryLock(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return flock(f, syscall.LOCK_SH)
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == syscall.EWOULDBLOCK:
			return errLocked
		case err != syscall.EINTR:
			return err
		}
	}
}

func sameFile(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(ours, now)
}
