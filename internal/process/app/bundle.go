package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/bundle"
	"raddle.dev/internal/storage/config"
)

// Bundled are the agents that come with the program. They are read from the program: scripts and definitions run from
// the cache, and nothing is written to the agents directory unless a person asks for it. It is safe for concurrent use.
type Bundled struct {
	dirs  config.Dirs
	once  sync.Once
	place string
	err   error
}

// Unpack returns the directory with the agents that come with the program, which it writes if necessary. The error says
// why they cannot be written to the cache.
func (b *Bundled) Unpack() (string, error) {
	b.once.Do(func() {
		if b.place, b.err = bundle.Unpack(b.dirs.Bundled); b.err != nil {
			b.err = fmt.Errorf("the agents that come with raddle cannot be written to %s: %w", b.dirs.ShortPath(b.dirs.Bundled), b.err)
		}
	})
	return b.place, b.err
}

// replaces reports whether an agent that comes with the program is used in place of a directory: the directory is not
// there, or a copy that raddle has written and that was not changed since.
func (b *Bundled) replaces(dir string) bool {
	name := filepath.Base(dir)
	if filepath.Dir(dir) != b.dirs.Agents || !slices.Contains(bundle.Names(), name) {
		return false
	}
	_, err := os.Lstat(dir)
	return err != nil || bundle.IsUnchanged(b.dirs.Agents, name)
}

// isCopy reports whether two directories are the same agent of the program: in the cache, of this version or another
// one, or where a person has copied it.
func (b *Bundled) isCopy(one, other string) bool {
	return filepath.Base(one) == filepath.Base(other) && (isInside(one, b.dirs.Bundled) || isInside(other, b.dirs.Bundled))
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
