// Package tempdir creates temporary directories and removes them soon after their process ends. A process that is killed cannot remove
// its directories; the next process removes them with [RemoveStale].
//
// All directories of a process are below one of its own, whose lock file the process keeps locked. The system releases the lock when the
// process dies, whatever the reason.
package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	prefix         = "raddle-tmp-" // of the directory of a process
	unlockedPrefix = "raddle-new-" // of a directory that is not locked yet
	lockName       = "lock"
	// unlockedAge is far longer than a process needs to lock its directory.
	unlockedAge = time.Hour
)

// process is the directory of this process. It exists while something in it is in use.
var process struct {
	sync.Mutex
	dir   string
	lock  *os.File
	users int
}

// New creates an empty directory that only this user can read, in the system's directory for temporary files. remove deletes it with all
// its contents; it may be called more than once. New is safe for concurrent use.
func New(pattern string) (dir string, remove func(), err error) {
	process.Lock()
	defer process.Unlock()
	if process.users == 0 {
		if err := openProcess(); err != nil {
			return "", nil, err
		}
	}
	if dir, err = os.MkdirTemp(process.dir, pattern); err != nil {
		if process.users == 0 {
			closeProcess()
		}
		return "", nil, err
	}
	process.users++
	return dir, sync.OnceFunc(func() { releaseDir(dir) }), nil
}

func releaseDir(dir string) {
	_ = os.RemoveAll(dir)
	process.Lock()
	defer process.Unlock()
	if process.users--; process.users == 0 {
		closeProcess()
	}
}

// openProcess creates the directory of the process. The directory gets its name after it is locked, so that no other process considers it stale.
func openProcess() error {
	unlocked, err := os.MkdirTemp("", unlockedPrefix)
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(unlocked), prefix+strings.TrimPrefix(filepath.Base(unlocked), unlockedPrefix))
	lock, err := lockDir(unlocked, dir)
	if err != nil {
		return errors.Join(fmt.Errorf("temporary directory: %w", err), os.RemoveAll(unlocked))
	}
	process.dir, process.lock = dir, lock
	return nil
}

// closeProcess removes the directory of the process, and its lock file last.
func closeProcess() {
	_ = os.RemoveAll(process.dir)
	_ = process.lock.Close()
	_ = os.RemoveAll(process.dir) // on systems where a locked file cannot be removed
}

// RemoveStale removes what killed processes of this user have left behind. What it cannot remove stays until the next
// call.
func RemoveStale() {
	root := os.TempDir()
	f, err := os.Open(root)
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(-1)
	_ = f.Close()
	for _, name := range names {
		dir := filepath.Join(root, name)
		switch {
		case strings.HasPrefix(name, prefix):
			if isOwn(dir) {
				removeUnlocked(dir)
			}
		case strings.HasPrefix(name, unlockedPrefix):
			if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > unlockedAge && isOwn(dir) {
				_ = os.RemoveAll(dir)
			}
		}
	}
}
