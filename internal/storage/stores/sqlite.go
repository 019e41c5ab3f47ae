package stores

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/store/sqlite"
)

func locateFile(url, rest string, dirs config.Dirs) (string, error) {
	rest = strings.TrimPrefix(rest, "//")
	if rest == "" {
		return "", failure.NewInvalid("write sqlite:PATH", "the store %q names no file", url)
	}
	return dirs.AbsPath(rest), nil
}

func openFile(path string) (journal.Store, error) {
	st, err := sqlite.Open(path)
	if err != nil {
		return nil, err
	}
	return st, nil
}

func readFile(path string) (journal.Store, error) {
	st, err := sqlite.OpenReadOnly(path)
	if err != nil {
		return nil, err
	}
	return st, nil
}

func existsFile(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func fileLockDir(path string) string { return filepath.Clean(path + ".locks") }
