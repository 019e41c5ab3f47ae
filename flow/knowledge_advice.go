package flow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"raddle.dev/internal/strictyaml"
)

// adviseDocuments warns about files and folders of documents that do not exist.
// Otherwise only the build would report them.
func adviseDocuments(a *Agent) {
	for _, k := range a.knowledgeBases() {
		at := documentsAt(a, k.id)
		for i, d := range k.documents {
			if !plainPath(d) {
				continue
			}
			path := d
			if !filepath.IsAbs(path) {
				path = filepath.Join(a.Dir, path)
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				addWarning(a, strictyaml.Finding{Code: "document-missing", Message: fmt.Sprintf("documents: there is no file or folder '%s'", d), Hint: "relative paths start at the agent's directory", Pos: at(i)})
			}
		}
	}
}

// documentsAt returns a function that returns the position of a source of a
// base.
func documentsAt(a *Agent, id string) func(i int) strictyaml.Pos {
	if a.Config != nil {
		return a.Config.Src.ItemPositions("documents")
	}
	return a.File.Node(id).Src.ItemPositions("documents")
}

// plainPath reports whether a source is the path of one file or folder: not a
// pattern, an address, a source for a loader, or a source that is rejected in
// any case.
func plainPath(source string) bool {
	return source != "" && !strings.ContainsAny(source, "*?[]{}:@") && !strings.HasPrefix(source, "~") && !strings.Contains(source, "..")
}
