package testrun

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
)

// agentsDir is the directory of the copies of agents in a scratch directory.
const agentsDir = "agents"

// Limits of what is copied for a case.
const (
	maxFiles = 20_000
	maxBytes = 256 << 20
)

// packageDirs are directories of packages that scripts use. They are not copied: a link leads to them.
var packageDirs = []string{"node_modules", ".venv", "venv"}

// skippedDirs are not copied: no agent needs them.
var skippedDirs = []string{".git", "__pycache__"}

// listChildren returns the directories of the agents below an agent. They are found once for each agent.
func (r *Runner) listChildren(dir, scratch string) (dirs []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if dirs, known := r.children[dir]; known {
		return dirs, nil
	}
	p, err := r.openProcess(scratch, dir, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	a, err := p.Load(app.LoadRequest{Agent: dir})
	if err != nil {
		return nil, err
	}
	for _, child := range a.Agents()[1:] {
		dirs = append(dirs, child.Dir)
	}
	if r.children == nil {
		r.children = map[string][]string{}
	}
	r.children[dir] = dirs
	return dirs, nil
}

// copier copies directories and counts what it copies.
type copier struct {
	files int
	bytes int64
}

// sharedDir is a directory next to agents with files that several of them use, as the agents that come with raddle do.
const sharedDir = ".shared"

// copyAgents copies directories of agents into a directory, each under its own name. Of two with one name, the first is
// copied.
func copyAgents(dirs []string, to string) error {
	var c copier
	if shared := filepath.Join(filepath.Dir(dirs[0]), sharedDir); config.IsDir(shared) {
		dirs = append(slices.Clone(dirs), shared)
	}
	for _, dir := range dirs {
		target := filepath.Join(to, filepath.Base(dir))
		if _, err := os.Lstat(target); err == nil {
			continue
		}
		if err := c.copyDir(dir, target, nil); err != nil {
			return fmt.Errorf("the copy of %s for the test: %w", dir, err)
		}
	}
	return nil
}

// copyDir copies a directory. above are the real paths of the directories around it: a link to one of them is left out.
func (c *copier) copyDir(from, to string, above []string) error {
	path, err := filepath.EvalSymlinks(from)
	if err != nil || slices.Contains(above, path) {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		source := filepath.Join(from, e.Name())
		target := filepath.Join(to, e.Name())
		if slices.Contains(skippedDirs, e.Name()) {
			continue
		}
		if slices.Contains(packageDirs, e.Name()) {
			if err := os.Symlink(source, target); err != nil {
				return err
			}
			continue
		}
		info, err := os.Stat(source) // follows links, so that no write goes through one
		switch {
		case err != nil && e.Type()&fs.ModeSymlink != 0: // a link to nothing
		case err != nil:
			return err
		case info.IsDir():
			err = c.copyDir(source, target, append(above, path))
		case info.Mode().IsRegular():
			err = c.copyFile(source, target, info)
		}
		if err != nil && e.Type()&fs.ModeSymlink == 0 {
			return err
		}
	}
	return nil
}

func (c *copier) copyFile(from, to string, info fs.FileInfo) error {
	c.files++
	c.bytes += info.Size()
	if c.files > maxFiles || c.bytes > maxBytes {
		return fmt.Errorf("the directory has more than %d files or %d MiB, and each test has its own copy: put the agent into a directory of its own", maxFiles, maxBytes>>20)
	}
	in, err := plainfile.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxBytes))
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
