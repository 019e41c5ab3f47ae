//go:build !windows

package interpreter

import (
	"net/url"
	"os"
)

// isProgram reports whether a path is a file that may be executed.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// fileURL returns an absolute path as a URL.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }
