package app

import (
	"errors"
	"log/slog"
	"sync"

	"raddle.dev/graph"
	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/redact"
)

// Options change how a process uses its surroundings. The zero value changes
// nothing.
type Options struct {
	Environ []string     // nil: the environment of this process
	Work    string       // working directory; "": that of this process
	Store   string       // URL; "": as the configuration says
	Log     *slog.Logger // developer log; nil: none
}

// Process is the part of a raddle process that all user interfaces share. It is
// safe for concurrent use.
type Process struct {
	Dirs   config.Dirs
	Config config.Config

	env   config.Environ
	log   *slog.Logger // nil: no log
	known sync.Once    // sets secrets

	secrets *redact.Set
	mu      sync.Mutex
	store   *runStore // nil before its first use
	boxes   []*toolbox
	trees   map[string]string // digests of directories with packages, "" for a missing one, from the first time they were needed

	bundled bundleInstall
}

// Open finds the directories and reads the configuration. If the configuration
// has errors, it returns them together with a Process that works without it, so
// that the caller can still report on the surroundings.
func Open(o Options) (*Process, error) {
	p := &Process{env: config.NewEnviron(o.Environ), log: o.Log, trees: map[string]string{}}
	var err error
	if p.Dirs, err = config.FindDirs(p.env, o.Work); err != nil {
		return p, err
	}
	p.Config, err = config.Load(p.Dirs.Config, p.env)
	if o.Store != "" {
		p.Config.Store = o.Store
	}
	return p, err
}

// Close ends the servers of tools and closes the store.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var failed []error
	for _, b := range p.boxes {
		failed = append(failed, b.Close())
	}
	if p.store != nil {
		failed = append(failed, p.store.Close())
	}
	p.boxes, p.store = nil, nil
	return errors.Join(failed...)
}

// runStore is the open store of runs.
type runStore struct {
	graph.Store
	file string // file of SQLite; "": the store exists in this process only
}

// openStore returns the store, opening it when it is first needed.
func (p *Process) openStore() (*runStore, error) { return p.openAs(storeLocation.openStore) }

func (p *Process) openAs(open func(storeLocation) (*runStore, error)) (*runStore, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store != nil {
		return p.store, nil
	}
	where, err := p.parseStoreURL()
	if err != nil {
		return nil, err
	}
	st, err := open(where)
	if err != nil {
		return nil, &failure.Error{Kind: failure.Invalid, Msg: "the store of runs cannot be opened", Err: err, Next: p.storeHint()}
	}
	p.store = st
	return st, nil
}

// storeHint returns what to do about a store that cannot be opened.
func (p *Process) storeHint() string {
	if p.Config.Store == "" {
		return "name another file: RADDLE_STORE=sqlite:PATH, or `store` in config.yaml; RADDLE_STORE=memory: saves nothing"
	}
	return "correct `store` in config.yaml or RADDLE_STORE"
}

// errNoStore reports that there is no store yet, and so no runs.
var errNoStore = errors.New("no run has been started yet")

// openExistingStore returns the store if it exists, so that a command that only reads runs
// creates nothing. It opens a store that cannot be written for reading.
func (p *Process) openExistingStore() (*runStore, error) {
	where, err := p.parseStoreURL()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	opened := p.store != nil
	p.mu.Unlock()
	if !opened && !where.exists() {
		return nil, errNoStore
	}
	return p.openAs(storeLocation.openToRead)
}
