package app

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/bundle"
	"raddle.dev/internal/storage/config"
)

// Bundled installs the agents that come with the program. It is safe for concurrent use.
type Bundled struct {
	dirs config.Dirs
	once sync.Once
	err  error
}

// InstallOnce writes the agents that come with the program into the agents
// directory, unless that was done before: the first command that loads an agent
// installs them. Later calls only read one file. After an error, for example if the
// directory is read-only, only these agents are missing.
func (b *Bundled) InstallOnce() error {
	b.once.Do(func() {
		if !bundle.IsInstalled(b.dirs.Agents) {
			_, b.err = bundle.Install(b.dirs.Agents, bundle.Options{})
		}
	})
	return b.err
}

// InstallOutcome is the outcome for an agent that was to be installed.
type InstallOutcome = bundle.Outcome

// BundledAgents returns the names of the agents that come with the program, sorted.
func BundledAgents() []string { return bundle.Names() }

// Reinstall restores agents that come with the program: those that names lists, or
// all if it is empty. Files that the user has changed stay, unless force replaces
// them.
func (b *Bundled) Reinstall(names []string, force bool) ([]InstallOutcome, error) {
	if len(names) == 0 {
		names = nil
	}
	outcomes, err := bundle.Install(b.dirs.Agents, bundle.Options{Agents: names, Force: force})
	if unknown, ok := errors.AsType[*bundle.UnknownError](err); ok {
		next := cmp.Or(wording.SuggestNearest(unknown.Name, bundle.Names(), ""), "see: raddle agents install --help")
		return nil, &failure.Error{Kind: failure.Usage, Err: err, Next: next}
	}
	if err != nil {
		err = fmt.Errorf("the agents that come with raddle cannot be written to %s: %w", b.dirs.ShortPath(b.dirs.Agents), err)
	}
	return outcomes, err
}
