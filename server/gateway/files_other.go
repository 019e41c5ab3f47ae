//go:build !unix

package gateway

// countFiles returns how many files this process may have open; 0: it is not known.
func countFiles() uint64 { return 0 }
