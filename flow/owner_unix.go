//go:build unix

package flow

import (
	"os"
	"syscall"
)

// isOwn reports whether a directory belongs to the user of this process.
func isOwn(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
