//go:build !unix

package tempdir

import (
	"os"
	"path/filepath"
)

// lockDir gives the directory its name and opens its lock file: an open file cannot be removed here.
func lockDir(unlocked, dir string) (*os.File, error) {
	if err := os.Rename(unlocked, dir); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
}

// removeUnlocked removes the directory of a process that has died. It leaves a directory without a lock file: its
// process may be about to open one.
func removeUnlocked(dir string) {
	if os.Remove(filepath.Join(dir, lockName)) == nil {
		_ = os.RemoveAll(dir)
	}
}

// isOwn reports whether the path is a directory. On these systems each user has a directory of temporary files.
func isOwn(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}
