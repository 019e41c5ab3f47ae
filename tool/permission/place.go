package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// linksFollowed is how many symbolic links a path may lead through.
const linksFollowed = 100

// resolve returns the absolute path that the system would open, with symbolic
// links followed one by one. Of a path that does not exist, what exists is
// resolved and the rest appended. Unlike filepath.Clean it does not take a/link/..
// for a.
func resolve(path string) (string, error) {
	rest := strings.Split(filepath.ToSlash(path), "/")
	at := filepath.VolumeName(path) + string(filepath.Separator)
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
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > linksFollowed {
			return "", fmt.Errorf("%s leads through too many links", path)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + string(filepath.Separator)
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	return at, nil
}

// places returns all that a path may mean: as the shell and the system read it,
// and cleaned first, as programs do. The path is absolute or relative to dir.
func places(dir, path string) ([]string, error) {
	if !filepath.IsAbs(path) {
		path = dir + string(filepath.Separator) + path
	}
	raw, err := resolve(path)
	if err != nil {
		return nil, err
	}
	clean, err := resolve(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	if clean == raw {
		return []string{raw}, nil
	}
	return []string{raw, clean}, nil
}

// within reports whether a path is a directory or lies below it. Upper and lower
// case are the same where fold is set.
func within(dir, path string, fold bool) bool {
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

// devices are no files: what is read from them or written to them stays in the call.
func isDevice(path string) bool {
	switch path {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero":
		return true
	}
	number, ok := strings.CutPrefix(path, "/dev/fd/")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// An area is what of the file system a policy knows by itself.
type area struct {
	workspace string
	readable  []string
	guarded   []string
}

// area resolves the directories of the policy.
func (p *Policy) area() (area, error) {
	var a area
	var err error
	if !filepath.IsAbs(p.Workspace) {
		return a, fmt.Errorf("the workspace of a permission policy must be an absolute path, not %q", p.Workspace)
	}
	if a.workspace, err = resolve(p.Workspace); err != nil {
		return a, err
	}
	all := func(paths []string) (list []string) {
		for _, path := range paths {
			if at, e := resolve(path); e == nil && filepath.IsAbs(path) {
				list = append(list, at)
			} else {
				err = errors.Join(err, e)
			}
		}
		return list
	}
	a.readable, a.guarded = all(p.Readable), all(p.Guarded)
	return a, err
}

// guard names what makes writing a path a matter to ask about though it lies in
// the workspace, with its root; empty: nothing.
func (a area) guard(path string) (what, root string) {
	for _, g := range a.guarded {
		if within(g, path, true) {
			return "it decides about permissions", g
		}
		if within(path, g, true) {
			return "what decides about permissions lies in it", g
		}
	}
	for _, r := range a.readable {
		if within(r, path, true) {
			return "it belongs to the agent", r
		}
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	if i := slices.IndexFunc(parts, func(s string) bool { return strings.EqualFold(s, ".git") }); i >= 0 {
		return "it belongs to git", filepath.FromSlash(strings.Join(parts[:i+1], "/"))
	}
	return "", ""
}
