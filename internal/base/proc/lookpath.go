package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/environ"
)

// lookPath finds the program in the PATH of the child's own environment, or in that of this process where env has none,
// with the rules of the system about endings. It ignores relative entries: the program must not depend on a working
// directory.
func lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		return name, nil
	}
	list := os.Getenv("PATH")
	if e := environ.Environ(env); e.IsSet("PATH") {
		list = e.Get("PATH")
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}
