//go:build unix

package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookPath finds the program in the PATH of the child's own environment. It ignores relative entries: the program must not
// depend on a working directory.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, dir := range filepath.SplitList(searchPath(env)) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		st, err := os.Stat(path)
		if err == nil && !st.IsDir() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// searchPath returns the last PATH of env, otherwise that of this process.
func searchPath(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if path, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return path
		}
	}
	return os.Getenv("PATH")
}
