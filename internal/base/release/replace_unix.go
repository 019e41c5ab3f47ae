//go:build unix

package release

import "os"

// putInPlace gives the program the new content in one step. A running program keeps its file; writing into that one
// would fail, or end programs on macOS, which remembers what it has verified.
func putInPlace(file, program string) error { return os.Rename(file, program) }

// removeOld has nothing to remove: a program can be replaced while it runs.
func removeOld(string) {}
