//go:build !unix

package flow

import (
	"os"
	"path/filepath"
)

// isOwn reports whether a directory lies in the home directory of the user of this process: owners are not known here.
func isOwn(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(home, dir)
	return err == nil && filepath.IsLocal(rel)
}
