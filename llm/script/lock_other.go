//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package script

import "sync"

var locked sync.Mutex

// lock prevents other recorders of this process from writing until unlock is
// called. This system has no flock, so several processes must not record into
// one file.
func lock(string) (unlock func(), err error) {
	locked.Lock()
	return locked.Unlock, nil
}
