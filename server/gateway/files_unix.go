//go:build unix

package gateway

import "syscall"

// countFiles returns how many files this process may have open; 0: it is not known.
func countFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) // it is signed on some systems
}
