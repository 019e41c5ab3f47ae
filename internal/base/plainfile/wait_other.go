//go:build !unix

package plainfile

// withoutWaiting is for systems where a path names a pipe only in a place of its own.
const withoutWaiting = 0
