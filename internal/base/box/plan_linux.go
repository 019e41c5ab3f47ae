package box

import "slices"

// A plan tells the first process in the namespaces what to prepare and what to run. It reaches that process in a file
// without a name, as gob and not as JSON: paths and arguments need not be UTF-8.
type plan struct {
	Overlays []overlay // in any order
	Writable []string  // directories that stay writable
	Shown    []string  // directories that are seen as they are at each moment, and stay read-only
	Hidden   []string  // paths that are seen empty

	Passes bool   // the first process passes an open file out
	Proxy  string // the address of the listener that is passed out; empty: none

	Dir  string
	Path string   // the program; empty: nothing is run, and the box only tried
	Args []string // with the name of the program
	Env  []string
}

// An overlay covers a directory with a layer.
type overlay struct {
	Dir   string
	Upper string // an empty or used directory
	Work  string // an empty directory on the same file system
}

// A report is what the first process says at its end. It takes the place of the plan in the file.
type report struct {
	Failed string // why the box could not be prepared; empty: it was
}

// writableDirs returns all directories that the command may write.
func (p plan) writableDirs() []string {
	dirs := slices.Clone(p.Writable)
	for _, o := range p.Overlays {
		dirs = append(dirs, o.Dir)
	}
	return dirs
}
