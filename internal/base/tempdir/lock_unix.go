//go:build unix

package tempdir

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockDir locks the directory and gives it its final name.
func lockDir(unlocked, dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(unlocked, lockName), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = os.Rename(unlocked, dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// removeUnlocked removes the directory of a process that has died. A directory without a lock file was being removed.
func removeUnlocked(dir string) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err == nil {
		defer lock.Close()
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		_ = os.RemoveAll(dir)
	}
}

// isOwn reports whether the path is a directory, not a link to one, and belongs to this user.
func isOwn(dir string) bool {
	var stat unix.Stat_t
	return unix.Lstat(dir, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR && stat.Uid == uint32(os.Geteuid())
}
