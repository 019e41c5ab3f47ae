package box

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxEntries bounds the workspace of a box without a layer, which is looked through before and after each command.
const maxEntries = 100_000

// A pathState is what a path was at one moment. The system sets the moment of the last change of a file itself: no program can set it back.
type pathState struct {
	mode    fs.FileMode
	size    int64
	links   uint64
	inode   uint64
	changed syscall.Timespec
}

// A treeState is what a workspace was at one moment: its entries by their paths, which are relative and with slashes.
type treeState map[string]pathState

// scanTree looks through a workspace. What cannot be looked into is left out: a command cannot change it either.
func scanTree(workspace string) (treeState, error) {
	state := treeState{}
	err := filepath.WalkDir(workspace, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == workspace {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if len(state) >= maxEntries {
			return fmt.Errorf("the workspace has more than %d entries, which is too much to look through for each command", maxEntries)
		}
		name := strings.TrimPrefix(at[len(workspace):], "/")
		state[name] = stateOf(info)
		return nil
	})
	return state, err
}

// stateOf returns the state that the system describes.
func stateOf(info fs.FileInfo) pathState {
	s := pathState{mode: info.Mode(), size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.links, s.inode, s.changed = uint64(stat.Nlink), stat.Ino, stat.Ctim
	}
	return s
}

// listChanges returns what happened to paths between two moments, except to some of them: files and links, and directories that were removed or are new
// and empty.
func listChanges(was, is treeState, except map[string]bool) (changes []PathChange) {
	full := map[string]bool{}
	for name := range is {
		full[path.Dir(name)] = true
	}
	for name, now := range is {
		old, existed := was[name]
		switch {
		case except[name] || now.mode.IsDir() && (existed && old.mode.IsDir() || full[name]):
		case !existed:
			changes = append(changes, PathChange{Path: name, Kind: Created, Late: true})
		case old != now:
			changes = append(changes, PathChange{Path: name, Kind: Changed, Late: true})
		}
	}
	for name := range was {
		if _, exists := is[name]; exists || except[name] {
			continue
		}
		dir := path.Dir(name)
		if _, hadParent := was[dir]; hadParent {
			if now, exists := is[dir]; !exists || !now.mode.IsDir() {
				continue // it went with its directory
			}
		}
		changes = append(changes, PathChange{Path: name, Kind: Removed, Late: true})
	}
	return changes
}

// isByProduct reports whether a path lies in a directory of by-products.
func isByProduct(name string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(part string) bool { return slices.Contains(byProducts, part) })
}
