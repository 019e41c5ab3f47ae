package permission

import (
	"fmt"
	"path/filepath"
)

// file is the need for a file that is read or written, with what is right where
// no rule speaks of it. The name is absolute or relative to dir, the text is how
// the call has it.
func (a area) file(f facet, text, dir, name string) need {
	n := need{facet: f, text: text}
	paths, err := places(dir, name)
	if err != nil {
		n.fallback, n.why = Ask, fmt.Sprintf("cannot be looked at (%v)", err)
		return n
	}
	n.paths = paths
	for _, path := range paths {
		if what, root := a.guard(path); f == writing && what != "" {
			n.fallback, n.root, n.why = Ask, root, "is not written without asking: "+what
			return n
		}
		if !a.inside(f, path) {
			n.fallback, n.why = Ask, "is outside the workspace"
			if path != filepath.Clean(name) {
				n.why += " (" + path + ")"
			}
		}
	}
	return n
}

func (a area) inside(f facet, path string) bool {
	if within(a.workspace, path, false) {
		return true
	}
	if f == writing {
		return false
	}
	for _, dir := range a.readable {
		if within(dir, path, false) {
			return true
		}
	}
	return false
}
