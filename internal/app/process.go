package app

import (
	"errors"
	"log/slog"
	"sync"

	"raddle.dev/internal/config"
	"raddle.dev/internal/provider"
	"raddle.dev/internal/redact"
	"raddle.dev/internal/runs"
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
	Models *provider.Resolver // models of the configured clients
	Runs   *runs.Archive      // runs of the store that the configuration names

	env   config.Environ
	log   *slog.Logger // nil: no log
	known sync.Once    // sets secrets

	secrets *redact.Set
	mu      sync.Mutex
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
	if p.Dirs, err = config.FindDirs(p.env, o.Work); err == nil {
		p.Config, err = config.Load(p.Dirs.Config, p.env)
		if o.Store != "" {
			p.Config.Store = o.Store
		}
	}
	p.Models = provider.NewResolver(&p.Config, p.Dirs, p.env)
	p.Runs = runs.NewArchive(p.Dirs, p.Config.Store)
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
	p.boxes = nil
	return errors.Join(append(failed, p.Runs.Close())...)
}
