package interpreter

import (
	"net/url"
	"os"
	"path/filepath"
)

// isProgram reports whether a path, with one of the usual endings, is a file.
func isProgram(path string) bool {
	for _, ending := range []string{"", ".exe", ".cmd", ".bat"} {
		if info, err := os.Stat(path + ending); err == nil && info.Mode().IsRegular() && filepath.Ext(path+ending) != "" {
			return true
		}
	}
	return false
}

// fileURL returns an absolute path as a URL.
func fileURL(path string) string {
	return (&url.URL{Scheme: "file", Path: "/" + filepath.ToSlash(path)}).String()
}
