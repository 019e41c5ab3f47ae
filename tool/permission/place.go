package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// linksFollowed is how many symbolic links a path may lead through.
const linksFollowed = 100

// resolvePath returns the absolute path that the system would open, with symbolic
// links followed one by one. Of a path that does not exist, what exists is
// resolved and the rest appended. Unlike filepath.Clean it does not take a/link/..
// for a.
func resolvePath(path string) (string, error) {
	at, _, err := resolveVia(path)
	return at, err
}

// resolveVia is like resolvePath. It also returns the names under which the path was reached,
// before each link was followed. A link in /proc leads to a different place in each process, and is
// an error.
func resolveVia(path string) (at string, via []string, err error) {
	rest := strings.Split(filepath.ToSlash(path), "/")
	at = filepath.VolumeName(path) + string(filepath.Separator)
	if v := filepath.VolumeName(path); v != "" {
		rest = rest[1:]
	}
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			at = next
			continue
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		case isWithin("/proc", next, false):
			return "", nil, fmt.Errorf("%s leads through %s, which is different in each process", path, next)
		}
		if links++; links > linksFollowed {
			return "", nil, fmt.Errorf("%s leads through too many links", path)
		}
		via = append(via, filepath.Join(append([]string{next}, rest...)...))
		to, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + string(filepath.Separator)
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	return at, via, nil
}

// possiblePaths returns all that a path may mean: as the shell and the system read it,
// and cleaned first, as programs do. The path is absolute or relative to dir.
func possiblePaths(dir, path string) ([]string, error) {
	all, _, err := placesVia(dir, path)
	return all, err
}

// placesVia is like possiblePaths. It also returns the names under which the paths were reached.
func placesVia(dir, path string) (all, via []string, err error) {
	if !filepath.IsAbs(path) {
		path = dir + string(filepath.Separator) + path
	}
	raw, via, err := resolveVia(path)
	if err != nil {
		return nil, nil, err
	}
	clean, more, err := resolveVia(filepath.Clean(path))
	if err != nil {
		return nil, nil, err
	}
	if clean == raw {
		return []string{raw}, via, nil
	}
	return []string{raw, clean}, append(via, more...), nil
}

// isWithin reports whether a path is a directory or lies below it. Upper and lower
// case are the same where fold is set.
func isWithin(dir, path string, fold bool) bool {
	if fold {
		dir, path = strings.ToLower(dir), strings.ToLower(path)
	}
	if dir == path {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// devices do not count as files: data that is read from them or written to them stays in the call.
func isDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	number, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// An area holds the directories that a policy knows without any rule.
type area struct {
	workspace string
	readable  []string
	guarded   []string
	code      []string
}

// resolveArea resolves the directories of the policy.
func (p *Policy) resolveArea() (area, error) {
	var a area
	var err error
	if !filepath.IsAbs(p.Workspace) {
		return a, fmt.Errorf("the workspace of a permission policy must be an absolute path, not %q", p.Workspace)
	}
	if a.workspace, err = resolvePath(p.Workspace); err != nil {
		return a, err
	}
	all := func(paths []string) (list []string) {
		for _, path := range paths {
			if at, e := resolvePath(path); e == nil && filepath.IsAbs(path) {
				list = append(list, at)
			} else {
				err = errors.Join(err, e)
			}
		}
		return list
	}
	a.readable, a.guarded, a.code = all(p.Readable), all(p.Guarded), all(p.Code)
	return a, err
}
