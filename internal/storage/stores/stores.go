// Package stores opens the store that a URL names. A kind of store is one row of a table:
// how its URL names a place, and how what is there is opened.
package stores

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/config"
)

// A kind is a kind of store. One that has no open function is a plan: its URLs are
// refused with a message that says so.
type kind struct {
	schemes []string // of its URLs; messages use the first
	locate  func(url, rest string, dirs config.Dirs) (place string, err error)
	open    func(place string) (journal.Store, error)
	read    func(place string) (journal.Store, error) // opens for reading only; nil: there is no such way
	// reports whether there is anything at the place, even if it is not a store
	exists func(place string) bool
	// directory of the locks of its runs; nil: no other process can see its runs, or leases are enough
	lockDir func(place string) string
	address func(place string) string // URL of the place without a password; nil: the place has none
	keeps   bool                      // its runs outlive the process
	shared  bool                      // other machines use it, too
}

var kinds = []kind{
	{schemes: []string{"sqlite"}, locate: locateFile, open: openFile, read: readFile, exists: existsFile, lockDir: fileLockDir, keeps: true},
	{schemes: []string{"memory"}, locate: locateMemory, open: openMemory, exists: func(string) bool { return false }},
	{schemes: []string{"postgres", "postgresql"}, locate: locatePostgres, open: openPostgres, exists: existsServer, address: HidePassword, keeps: true, shared: true},
	{schemes: []string{"redis", "rediss"}, locate: locateRedis, open: openRedis, exists: existsServer, address: hideUser, keeps: true, shared: true},
}

// A Location is where a store is, as its URL says. It is not opened yet.
type Location struct {
	kind  *kind
	place string
}

// Parse returns the location that a URL names; "" names a file in the directory of state.
// Relative paths belong to the working directory. The error is a [*failure.Error].
func Parse(url string, dirs config.Dirs) (Location, error) {
	if url == "" {
		return Location{&kinds[0], filepath.Join(dirs.State, "runs.db")}, nil
	}
	scheme, rest, _ := strings.Cut(url, ":")
	i := slices.IndexFunc(kinds, func(k kind) bool { return slices.Contains(k.schemes, scheme) })
	if i < 0 {
		next := cmp.Or(wording.SuggestNearest(scheme, listSchemes(), ""), "write sqlite:PATH, postgres://USER@HOST/NAME, redis://HOST or memory:")
		return Location{}, failure.NewInvalid(next, "the store %q begins with an unknown scheme", HidePassword(url))
	}
	place, err := kinds[i].locate(url, rest, dirs)
	return Location{&kinds[i], place}, err
}

// listSchemes returns the first scheme of each kind.
func listSchemes() []string {
	var names []string
	for i := range kinds {
		names = append(names, kinds[i].schemes[0])
	}
	return names
}

// URL returns the location in the form that [Parse] reads, with an absolute path and without
// a password.
func (l Location) URL() string {
	if l.kind.address != nil {
		return l.kind.address(l.place)
	}
	return l.kind.schemes[0] + ":" + l.place
}

// Place returns the location as a person knows it: the path of a file, otherwise the URL.
func (l Location) Place() string {
	if l.place == "" || l.kind.address != nil {
		return l.URL()
	}
	return l.place
}

// KeepsRuns reports whether runs outlive the process.
func (l Location) KeepsRuns() bool { return l.kind.keeps }

// IsShared reports whether the store is a server, so that other machines may use it, too.
func (l Location) IsShared() bool { return l.kind.shared }

// LockDir returns the directory of the lock files of runs, or "" if none are needed.
func (l Location) LockDir() string {
	if l.kind.lockDir == nil {
		return ""
	}
	return l.kind.lockDir(l.place)
}

// Exists reports whether there is anything at the location, even if it is not a store:
// opening it then reports that.
func (l Location) Exists() bool { return l.kind.exists(l.place) }

// Open opens the store, and creates it if it does not exist.
func (l Location) Open() (journal.Store, error) { return l.kind.open(l.place) }

// OpenToRead opens the store to look at runs; if it cannot be written, only for reading.
func (l Location) OpenToRead() (journal.Store, error) {
	st, err := l.Open()
	if err == nil || l.kind.read == nil {
		return st, err
	}
	if st, other := l.kind.read(l.place); other == nil {
		return st, nil
	}
	return nil, err
}
