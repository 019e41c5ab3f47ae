package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/wording"
	"raddle.dev/store/sqlite"
)

// location is a parsed store URL.
type location struct {
	file string // file of SQLite; "": memory
}

// location parses the configured store URL.
func (p *Process) location() (location, error) {
	url := p.Config.Store
	if url == "" {
		return location{file: filepath.Join(p.Dirs.State, "runs.db")}, nil
	}
	scheme, rest, _ := strings.Cut(url, ":")
	switch scheme {
	case "memory":
		return location{}, nil
	case "sqlite":
		rest = strings.TrimPrefix(rest, "//")
		if rest == "" {
			return location{}, invalid("write sqlite:PATH", "the store %q names no file", url)
		}
		return location{file: p.Dirs.Abs(rest)}, nil
	case "postgres", "postgresql", "redis", "rediss":
		return location{}, invalid("use sqlite:PATH for now", "stores on %s cannot be opened yet", scheme)
	}
	next := wording.SuggestNearest(scheme, []string{"sqlite", "memory", "postgres", "redis"}, "")
	if next == "" {
		next = "write sqlite:PATH or memory:"
	}
	return location{}, invalid(next, "the store %q begins with an unknown scheme", url)
}

func (l location) open() (*journals, error) {
	if l.file == "" {
		return &journals{Store: graph.NewMemory()}, nil
	}
	st, err := sqlite.Open(l.file)
	if err != nil {
		return nil, err
	}
	return &journals{Store: st, file: l.file}, nil
}

// exists reports whether there is anything at the place of the store, even if it
// is not a store: opening it then reports that.
func (l location) exists() bool {
	if l.file == "" {
		return false
	}
	_, err := os.Stat(l.file)
	return !errors.Is(err, fs.ErrNotExist)
}

// openToRead opens the store to look at runs; if it cannot be written, only for reading.
func (l location) openToRead() (*journals, error) {
	j, err := l.open()
	if err == nil || l.file == "" {
		return j, err
	}
	st, other := sqlite.OpenReadOnly(l.file)
	if other != nil {
		return nil, err
	}
	return &journals{Store: st, file: l.file}, nil
}

// StoreURL returns the place where runs are saved.
func (p *Process) StoreURL() string {
	where, err := p.location()
	switch {
	case err != nil:
		return p.Config.Store
	case where.file == "":
		return "memory:"
	}
	return "sqlite:" + where.file
}

// Kept reports whether runs outlive this process.
func (p *Process) Kept() bool {
	where, err := p.location()
	return err == nil && where.file != ""
}

// locks returns the directory of the lock files of a store's runs, or "" if none are needed.
func (j *journals) locks() string {
	if j.file == "" {
		return ""
	}
	return j.file + ".locks"
}
