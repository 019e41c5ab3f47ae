package chat

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
)

// walkFiles returns the files below a directory without version control, relative to it; hidden ones and dependencies
// are left out.
func walkFiles(ctx context.Context, dir string) []string {
	var paths []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is left out
		switch {
		case ctx.Err() != nil || len(paths) >= maxListed:
			return fs.SkipAll
		case err != nil || path == dir:
			return nil
		case strings.HasPrefix(d.Name(), ".") || d.IsDir() && d.Name() == "node_modules":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Type().IsRegular():
			if rel, err := filepath.Rel(dir, path); err == nil {
				paths = append(paths, filepath.ToSlash(rel))
			}
		}
		return nil
	})
	return paths
}
