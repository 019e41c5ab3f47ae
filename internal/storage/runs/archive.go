package runs

import (
	"errors"
	"sync"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/stores"
	"raddle.dev/memory"
)

// Archive has the runs of a store: it lists and shows them, compares and copies them, and
// removes them. It opens the store when it is first needed, and is safe for concurrent use.
type Archive struct {
	dirs config.Dirs
	url  string // of the store

	mu    sync.Mutex
	store *Store // nil before its first use
}

// NewArchive returns an archive of the store that a URL names; "" means the default store. It opens
// nothing: if the URL is not valid, the first call that needs the store returns the error.
func NewArchive(dirs config.Dirs, url string) *Archive { return &Archive{dirs: dirs, url: url} }

// Store is an open store of runs. Its failures are of the kind [failure.Unavailable].
type Store struct {
	journal.Store
	Location stores.Location

	guard *guard
}

// newStore returns an open store at a location.
func newStore(st journal.Store, at stores.Location) *Store {
	guarded, g := guardStore(st)
	return &Store{guarded, at, g}
}

// inside returns the store behind the guard, for what only some stores can do.
func (s *Store) inside() journal.Store { return s.guard.Store }

// OpenExistingMemory is OpenMemory for commands that only read: it creates no store.
func (a *Archive) OpenExistingMemory() (memory.Store, error) {
	if _, err := a.openExistingStore(); errors.Is(err, errNoStore) {
		return memory.New(), nil
	} else if err != nil {
		return nil, err
	}
	return a.OpenMemory()
}

// AttachStore makes the archive use an open store instead of opening the one of its URL,
// which says where it is. Close closes it.
func (a *Archive) AttachStore(st journal.Store) error {
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store = newStore(st, at)
	return nil
}

// Close closes the store, if it is open.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store == nil {
		return nil
	}
	err := a.store.Close()
	a.store = nil
	return err
}

// OpenStore returns the store, opening it when it is first needed, and creating it if it
// does not exist.
func (a *Archive) OpenStore() (*Store, error) { return a.openAs(stores.Location.Open) }

func (a *Archive) openAs(open func(stores.Location) (journal.Store, error)) (*Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.store != nil {
		return a.store, nil
	}
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return nil, err
	}
	st, err := open(at)
	if err != nil {
		return nil, &failure.Error{Kind: failure.Invalid, Msg: "the store of runs cannot be opened", Err: err, Next: a.storeHint()}
	}
	a.store = newStore(st, at)
	return a.store, nil
}

// storeHint returns what to do about a store that cannot be opened.
func (a *Archive) storeHint() string {
	if a.url == "" {
		return "name another file: RADDLE_STORE=sqlite:PATH, or `store` in config.yaml; RADDLE_STORE=memory: saves nothing"
	}
	return "correct `store` in config.yaml or RADDLE_STORE"
}

// errNoStore reports that there is no store yet, and so no runs.
var errNoStore = errors.New("no run has been started yet")

// openExistingStore returns the store if it exists, so that a command that only reads runs
// creates nothing. It opens a store that cannot be written for reading.
func (a *Archive) openExistingStore() (*Store, error) {
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	opened := a.store != nil
	a.mu.Unlock()
	if !opened && !at.Exists() {
		return nil, errNoStore
	}
	return a.openAs(stores.Location.OpenToRead)
}

// StoreURL returns the URL of the store of runs, or the configured URL if it is not valid,
// without a password.
func (a *Archive) StoreURL() string {
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return stores.HidePassword(a.url)
	}
	return at.URL()
}

// KeepsRuns reports whether runs outlive this process.
func (a *Archive) KeepsRuns() bool {
	at, err := stores.Parse(a.url, a.dirs)
	return err == nil && at.KeepsRuns()
}

// LockDir returns the directory of the lock files of driven runs, or "" if there is none.
func (a *Archive) LockDir() string {
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return ""
	}
	return at.LockDir()
}

// LockRun takes the lock of a run that is to be driven. The error is a [*BusyError] if
// another process holds it.
func (s *Store) LockRun(thread string) (*Lock, error) {
	return TakeLock(s.Location.LockDir(), thread)
}
