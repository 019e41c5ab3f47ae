package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/wording"
	"raddle.dev/store/sqlite"
)

// storeLocation is a parsed store URL.
type storeLocation struct {
	file string // file of SQLite; "": memory
}

// parseStoreURL parses the configured store URL.
func (p *Process) parseStoreURL() (storeLocation, error) {
	url := p.Config.Store
	if url == "" {
		return storeLocation{file: filepath.Join(p.Dirs.State, "runs.db")}, nil
	}
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "memory":
		return storeLocation{}, nil
	case "sqlite":
		rest = strings.TrimPrefix(rest, "//")
		if rest == "" {
			return storeLocation{}, failure.NewInvalid("write sqlite:PATH", "the store %q names no file", url)
		}
		return storeLocation{file: p.Dirs.AbsPath(rest)}, nil
	case "postgres", "postgresql", "redis", "rediss":
		return storeLocation{}, failure.NewInvalid("use sqlite:PATH for now", "stores on %s cannot be opened yet", scheme)
	}
	next := wording.SuggestNearest(scheme, []string{"sqlite", "memory", "postgres", "redis"}, "")
	if next == "" {
		next = "write sqlite:PATH or memory:"
	}
	return storeLocation{}, failure.NewInvalid(next, "the store %q begins with an unknown scheme", url)
}

func (l storeLocation) openStore() (*runStore, error) {
	if l.file == "" {
		return &runStore{Store: graph.NewMemory()}, nil
	}
	st, err := sqlite.Open(l.file)
	if err != nil {
		return nil, err
	}
	return &runStore{Store: st, file: l.file}, nil
}

// exists reports whether there is anything at the place of the store, even if it
// is not a store: opening it then reports that.
func (l storeLocation) exists() bool {
	if l.file == "" {
		return false
	}
	_, err := os.Stat(l.file)
	return !errors.Is(err, fs.ErrNotExist)
}

// openToRead opens the store to look at runs; if it cannot be written, only for reading.
func (l storeLocation) openToRead() (*runStore, error) {
	j, err := l.openStore()
	if err == nil || l.file == "" {
		return j, err
	}
	st, other := sqlite.OpenReadOnly(l.file)
	if other != nil {
		return nil, err
	}
	return &runStore{Store: st, file: l.file}, nil
}

// StoreURL returns the place where runs are saved.
func (p *Process) StoreURL() string {
	where, err := p.parseStoreURL()
	switch {
	case err != nil:
		return p.Config.Store
	case where.file == "":
		return "memory:"
	}
	return "sqlite:" + where.file
}

// KeepsRuns reports whether runs outlive this process.
func (p *Process) KeepsRuns() bool {
	where, err := p.parseStoreURL()
	return err == nil && where.file != ""
}

// lockDir returns the directory of the lock files of a store's runs, or "" if none are needed.
func (j *runStore) lockDir() string {
	if j.file == "" {
		return ""
	}
	return j.file + ".locks"
}
