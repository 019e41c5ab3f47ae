package app

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"raddle.dev/internal/bundle"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/wording"
)

// bundleInstall is the state of the installation of the agents that come with the
// program, in this process.
type bundleInstall struct {
	once sync.Once
	err  error
}

// InstallBundled writes the agents that come with the program into the agents
// directory, unless that was done before: the first command that loads an agent
// installs them. Later calls only read one file. After an error, for example if the
// directory is read-only, only these agents are missing.
func (p *Process) InstallBundled() error {
	p.bundled.once.Do(func() {
		if !bundle.IsInstalled(p.Dirs.Agents) {
			_, p.bundled.err = bundle.Install(p.Dirs.Agents, bundle.Options{})
		}
	})
	return p.bundled.err
}

// InstallOutcome is the outcome for an agent that was to be installed.
type InstallOutcome = bundle.Outcome

// BundledAgents returns the names of the agents that come with the program, sorted.
func BundledAgents() []string { return bundle.Names() }

// ReinstallBundled restores agents that come with the program: those that names lists, or
// all if it is empty. Files that the user has changed stay, unless force replaces
// them.
func (p *Process) ReinstallBundled(names []string, force bool) ([]InstallOutcome, error) {
	if len(names) == 0 {
		names = nil
	}
	outcomes, err := bundle.Install(p.Dirs.Agents, bundle.Options{Agents: names, Force: force})
	if unknown, ok := errors.AsType[*bundle.UnknownError](err); ok {
		next := cmp.Or(wording.SuggestNearest(unknown.Name, bundle.Names(), ""), "see: raddle agents install --help")
		return nil, &failure.Error{Kind: failure.Usage, Err: err, Next: next}
	}
	if err != nil {
		err = fmt.Errorf("the agents that come with raddle cannot be written to %s: %w", p.Dirs.ShortPath(p.Dirs.Agents), err)
	}
	return outcomes, err
}
