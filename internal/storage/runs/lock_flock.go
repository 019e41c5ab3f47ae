//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runs

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens and locks a file. If the last owner has removed the file in
// between, it locks the next one.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := tryFlock(f, syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if sameFile(f, path) {
			return f, nil
		}
		_ = f.Close()
	}
}

// tryLock returns errLocked if another process holds the lock. It does not keep the
// lock.
func tryLock(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return tryFlock(f, syscall.LOCK_SH)
}

func tryFlock(f *os.File, how int) error {
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
