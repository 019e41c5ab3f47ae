package box

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxEntries bounds the workspace of a box without a layer, which is looked through before and after each command.
const maxEntries = 100_000

// A pathState is what a path was at one moment. The system sets the moment of the last change of a file itself: no
// program can set it back.
type pathState struct {
	mode    fs.FileMode
	size    int64
	links   uint64
	inode   uint64
	changed syscall.Timespec
}

// A treeState is what a workspace was at one moment: its entries by their paths, which are relative and with slashes.
type treeState map[string]pathState

// scanTree looks through a workspace before a command. What cannot be looked into is left out: it is looked into when a
// command has made that possible.
func scanTree(workspace string) (treeState, error) {
	state := treeState{}
	err := walkTree(workspace, func(name string, info fs.FileInfo) error {
		if len(state) >= maxEntries {
			return fmt.Errorf("the workspace has more than %d entries, which is too much to look through for each command", maxEntries)
		}
		state[name] = stateOf(info)
		return nil
	})
	return state, err
}

// rescanTree looks through a workspace after a command, however much it holds then. Directories that the command has
// locked are opened, and returned with the modes that it gave them.
func rescanTree(workspace string, was treeState) (is treeState, locked map[string]fs.FileMode, err error) {
	is = treeState{}
	locked = map[string]fs.FileMode{}
	err = walkTree(workspace, func(name string, info fs.FileInfo) error {
		is[name] = stateOf(info)
		if mode := info.Mode(); mode.IsDir() && mode.Perm()&0o700 != 0o700 && was[name].mode != mode {
			locked[name] = mode
			return os.Chmod(filepath.Join(workspace, filepath.FromSlash(name)), mode.Perm()|0o700)
		}
		return nil
	})
	return is, locked, err
}

// walkTree calls visit for each entry of a workspace, for directories before they are read.
func walkTree(workspace string, visit func(name string, info fs.FileInfo) error) error {
	return filepath.WalkDir(workspace, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == workspace {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has gone
		}
		return visit(strings.TrimPrefix(at[len(workspace):], "/"), info)
	})
}

// stateOf returns the state that the system describes.
func stateOf(info fs.FileInfo) pathState {
	s := pathState{mode: info.Mode(), size: info.Size()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.links = uint64(stat.Nlink)
		s.inode = stat.Ino
		s.changed = stat.Ctim
	}
	return s
}

// listChanges returns what happened to paths between two moments, except to some of them: files and links, and
// directories that were removed or are new and empty.
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
