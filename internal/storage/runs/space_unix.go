//go:build darwin || linux

package runs

import "syscall"

// readFreeSpace returns how many bytes a user may still write on the disk of a directory.
func readFreeSpace(dir string) (bytes uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
