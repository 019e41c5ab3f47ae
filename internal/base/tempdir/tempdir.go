// Package tempdir creates temporary directories and removes them soon after their process ends. A process that is
// killed cannot remove its directories; the next process removes them with [RemoveStale].
//
// All directories of a process are below one of its own, whose lock file the process keeps locked. The system releases
// the lock when the process dies, whatever the reason.
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

// An owner is the directory of this process in a root. It exists while something in it is in use.
type owner struct {
	dir   string
	lock  *os.File
	users int
}

// owners are those of this process, by their root.
var owners = struct {
	sync.Mutex
	of map[string]*owner
}{of: map[string]*owner{}}

// New creates an empty directory that only this user can read, in the system's directory for temporary files. remove
// deletes it with all its contents; it may be called more than once. New is safe for concurrent use.
func New(pattern string) (dir string, remove func(), err error) { return NewIn(os.TempDir(), pattern) }

// NewIn is like New, for a directory that exists in place of the system's. The caller also calls [RemoveStaleIn].
func NewIn(root, pattern string) (dir string, remove func(), err error) {
	owners.Lock()
	defer owners.Unlock()
	o := owners.of[root]
	if o == nil {
		if o, err = openOwner(root); err != nil {
			return "", nil, err
		}
		owners.of[root] = o
	}
	if dir, err = os.MkdirTemp(o.dir, pattern); err != nil {
		if o.users == 0 {
			closeOwner(root, o)
		}
		return "", nil, fmt.Errorf("temporary directory: %w", err)
	}
	o.users++
	return dir, sync.OnceFunc(func() { removeDir(root, o, dir) }), nil
}

// removeDir deletes a directory, and that of the process if it was the last one in it.
func removeDir(root string, o *owner, dir string) {
	_ = os.RemoveAll(dir)
	owners.Lock()
	defer owners.Unlock()
	if o.users--; o.users == 0 {
		closeOwner(root, o)
	}
}

// openOwner creates the directory of the process. The directory gets its name after it is locked, so that no other
// process considers it stale.
func openOwner(root string) (*owner, error) {
	unlocked, err := os.MkdirTemp(root, unlockedPrefix)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(filepath.Dir(unlocked), prefix+strings.TrimPrefix(filepath.Base(unlocked), unlockedPrefix))
	lock, err := lockDir(unlocked, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("temporary directory: %w", err), os.RemoveAll(unlocked))
	}
	return &owner{dir: dir, lock: lock}, nil
}

// closeOwner removes the directory of the process, and its lock file last. The caller holds the lock of owners.
func closeOwner(root string, o *owner) {
	_ = os.RemoveAll(o.dir)
	_ = o.lock.Close()
	_ = os.RemoveAll(o.dir) // on systems where a locked file cannot be removed
	delete(owners.of, root)
}

// RemoveStale removes what killed processes of this user have left behind. What it cannot remove stays until the next
// call.
func RemoveStale() { RemoveStaleIn(os.TempDir()) }

// RemoveStaleIn is like RemoveStale, for the directories of [NewIn].
func RemoveStaleIn(root string) {
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
