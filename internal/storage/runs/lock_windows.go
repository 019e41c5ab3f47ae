package runs

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedByte lies far after the text, because other processes cannot read a locked
// byte.
const lockedByte = 1 << 30

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockHandle(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tryLock returns errLocked if another process holds the lock.
func tryLock(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close() // Close releases the lock
	return lockHandle(f)
}

func lockHandle(f *os.File) error {
	at := &windows.Overlapped{Offset: lockedByte}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
