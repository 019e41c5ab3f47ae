package permission

import (
	"io/fs"
	"path/filepath"
	"slices"
)

// mostEntries is how many names below a directory are looked at.
const mostEntries = 100_000

// A subtree holds the names below a directory. Links are not followed.
type subtree struct {
	paths []string // of everything, absolute
	links []string // where the links among them lead
	whole bool     // nothing was left out
}

// treeOf reads the names below a directory, once for each decision.
func (m matcher) treeOf(dir string) *subtree {
	if t := m.trees[dir]; t != nil {
		return t
	}
	t := readTree(dir)
	if m.trees != nil {
		m.trees[dir] = t
	}
	return t
}

func readTree(dir string) *subtree {
	t := &subtree{whole: true}
	// A link is not entered, so that the walk begins where it leads.
	if at, err := resolvePath(dir); err == nil {
		dir = at
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what raddle cannot read, its children cannot read either
		case len(t.paths) >= mostEntries:
			t.whole = false
			return fs.SkipAll
		}
		t.paths = append(t.paths, path)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := resolvePath(path)
			if err != nil {
				t.whole = false
				return nil
			}
			t.links = append(t.links, to)
		}
		return nil
	})
	return t
}

// mayHold reports whether something that a pattern matches is in the tree, or may be.
func (t *subtree) mayHold(p pathPattern) bool {
	return !t.whole || p.unclear || slices.ContainsFunc(t.paths, func(path string) bool {
		matches, _ := p.comparePath(path)
		return matches
	})
}

// leadsTo reports whether a link of the tree leads to something that a pattern
// matches, or may match below it.
func (t *subtree) leadsTo(p pathPattern) bool {
	return !t.whole || slices.ContainsFunc(t.links, func(path string) bool {
		matches, below := p.comparePath(path)
		return matches || below && isDir(path)
	})
}
