package flow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// adviseDocuments warns of files and folders of documents that are not there: the
// build would tell it only when it comes to them.
func (a *Agent) adviseDocuments() {
	for _, k := range a.knowledge() {
		at := a.documentsAt(k.id)
		for i, d := range k.documents {
			if !plainPath(d) {
				continue
			}
			path := d
			if !filepath.IsAbs(path) {
				path = filepath.Join(a.Dir, path)
			}
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				a.advise(Finding{Code: "document-missing", Message: fmt.Sprintf("documents: there is no file or folder '%s'", d), Hint: "relative paths begin at the agent's directory", Pos: at(i)})
			}
		}
	}
}

// documentsAt is where the sources of a base stand.
func (a *Agent) documentsAt(id string) func(i int) Pos {
	if a.Config != nil {
		return a.Config.src.items("documents")
	}
	return a.File.Node(id).src.items("documents")
}

// plainPath tells whether a source names one file or folder: no pattern, no address,
// nothing for a loader, and nothing that is refused anyway.
func plainPath(source string) bool {
	return source != "" && !strings.ContainsAny(source, "*?[]{}:@") && !strings.HasPrefix(source, "~") && !strings.Contains(source, "..")
}
