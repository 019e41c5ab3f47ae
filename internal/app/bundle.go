package app

import (
	"errors"
	"fmt"
	"sync"

	"raddle.dev/internal/bundle"
	"raddle.dev/internal/wording"
)

// bundled is what this process knows of the installation of the agents that come
// with the program.
type bundled struct {
	once sync.Once
	err  error
}

// InstallBundled writes the agents that come with the program into the agents
// directory, unless that was done before: the first command that looks for an agent
// brings them. Later it costs one look at a file. An error, of a directory that
// cannot be written to for example, takes away nothing but these agents.
func (p *Process) InstallBundled() error {
	p.bundled.once.Do(func() {
		if !bundle.Installed(p.Dirs.Agents) {
			_, p.bundled.err = bundle.Install(p.Dirs.Agents, bundle.Options{})
		}
	})
	return p.bundled.err
}

// Installed is what became of an agent that was to be installed.
type Installed = bundle.Outcome

// BundledAgents names the agents that come with the program, sorted.
func BundledAgents() []string { return bundle.Names() }

// Reinstall brings agents that come with the program back to what it has: those of
// the names, or all. Files that the user has changed stay, unless force replaces
// them.
func (p *Process) Reinstall(names []string, force bool) ([]Installed, error) {
	if len(names) == 0 {
		names = nil
	}
	outcomes, err := bundle.Install(p.Dirs.Agents, bundle.Options{Agents: names, Force: force})
	if unknown, ok := errors.AsType[*bundle.UnknownError](err); ok {
		next := wording.SuggestNearest(unknown.Name, bundle.Names(), "")
		if next == "" {
			next = "see: raddle agents install --help"
		}
		return nil, &Error{Kind: Usage, Err: err, Next: next}
	}
	if err != nil {
		err = fmt.Errorf("the agents that come with raddle cannot be written to %s: %w", p.Dirs.Short(p.Dirs.Agents), err)
	}
	return outcomes, err
}
