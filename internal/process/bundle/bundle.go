// Package bundle holds the agents that come with the program, and writes them to a
// directory where a user can run, read and change them. It overwrites what the user
// has changed only if the caller asks for it.
package bundle

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed all:agents
var embedded embed.FS

// shared is the directory of the files that the scripts of several agents use. It is
// not an agent, and always installed.
const shared = ".shared"

// Names returns the names of the agents, sorted.
func Names() []string {
	return slices.DeleteFunc(unitNames(), func(name string) bool { return name == shared })
}

// unitNames returns the directories of the bundle, sorted; the shared one is the first.
func unitNames() []string {
	entries, _ := embedded.ReadDir("agents") // the bundle is part of the program
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// A file is one file of the bundle.
type file struct {
	name string // below its directory, with slashes
	text []byte
}

// fileMode returns the mode of the file where it is installed: scripts are executable.
func (f *file) fileMode() fs.FileMode {
	if ext := path.Ext(f.name); ext == ".sh" || ext == ".py" {
		return 0o755
	}
	return 0o644
}

// definitions are the files that make a directory an agent; it has one of them.
var definitions = []string{"config.yaml", "graph.yaml"}

func (f *file) isDefinition() bool { return slices.Contains(definitions, f.name) }

// listFiles returns the files of a directory of the bundle, sorted by their names.
func listFiles(unit string) (list []file) {
	root := "agents/" + unit
	_ = fs.WalkDir(embedded, root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		list = append(list, file{strings.TrimPrefix(name, root+"/"), text})
		return err
	})
	return list
}
