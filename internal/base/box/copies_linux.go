package box

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/plainfile"
)

// These bound the copies of a workspace.
const (
	maxCopied      = 64 << 10 // bytes of a file
	maxCopies      = 4000
	maxCopiedBytes = 16 << 20
)

// copies are the contents of the smaller files of a workspace, by their paths, with the states in which they were read.
// Without a layer they are what /rewind puts back.
type copies map[string]copied

// A copied file is a file as it was read.
type copied struct {
	state pathState
	data  []byte
}

// refresh returns copies of the files of a workspace as they are now. Only those that have changed are read.
func (c copies) refresh(workspace string, is treeState) copies {
	var names []string
	for name, s := range is {
		if s.mode.IsRegular() && s.size <= maxCopied && !strings.HasPrefix(name, ".git/") && !strings.Contains(name, "/.git/") && !strings.Contains("/"+name, "/node_modules/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	now := copies{}
	total := int64(0)
	for _, name := range names[:min(len(names), maxCopies)] {
		s := is[name]
		if total += s.size; total > maxCopiedBytes {
			break
		}
		if old, ok := c[name]; ok && old.state == s {
			now[name] = old
		} else if data, err := plainfile.Read(filepath.Join(workspace, filepath.FromSlash(name)), maxCopied); err == nil {
			now[name] = copied{s, data}
		}
	}
	return now
}

// announceLate says what each file was before that has changed.
func announceLate(changes []PathChange, was treeState, c copies, tell func(PathChange)) {
	var gone []string // directories
	for _, change := range changes {
		old, existed := was[change.Path]
		switch {
		case existed && old.mode.IsDir() && change.Kind == Removed:
			gone = append(gone, change.Path+"/")
		case !existed || !old.mode.IsDir():
			tell(c.describeOld(change, was))
		}
	}
	if len(gone) == 0 {
		return
	}
	for name, old := range was {
		if !old.mode.IsDir() && slices.ContainsFunc(gone, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			tell(c.describeOld(PathChange{Path: name, Kind: Removed, Late: true}, was))
		}
	}
}

// describeOld adds to a change what the file was before.
func (c copies) describeOld(change PathChange, was treeState) PathChange {
	old, existed := was[change.Path]
	if !existed {
		return change
	}
	copy, kept := c[change.Path]
	kept = kept && copy.state == old
	change.Old = &OldFile{Mode: old.mode, Size: old.size, Data: copy.data, Kept: kept}
	return change
}
