// Package gitrepo asks git which repository it would use in a directory, and where that repository's settings come
// from. It runs nothing that the repository names. It also makes an environment in which git takes no programs from a
// repository.
package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/proc"
)

// timeout limits each question to git, so that a repository on a slow disk delays a decision, and never stops it.
const timeout = 5 * time.Second

// A Repository is what git uses in a directory.
type Repository struct {
	Dir        string   // the directory of git's own files, absolute, as git prints it
	Top        string   // the working tree, absolute; empty: it has none
	Hooks      string   // the directory of hooks, absolute
	Submodules []string // the directories of submodules with a repository of their own, absolute
	Settings   []ConfigEntry
}

// A ConfigEntry is one entry of the configuration that git uses, with included files.
type ConfigEntry struct {
	Scope  string // system, global, local, worktree or command
	Origin string // the file, as git prints it; empty: it comes from no file
	Key    string // in lower case, except for the part between the first and the last dot
	Value  string
}

// FindProgram returns the path of git in a PATH. It skips entries that are not absolute, or that skip reports. The
// error is [exec.ErrNotFound] if there is none.
func FindProgram(path string, skip func(dir string) bool) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || skip(dir) {
			continue
		}
		if program, err := exec.LookPath(filepath.Join(dir, "git")); err == nil {
			return program, nil
		}
	}
	return "", exec.ErrNotFound
}

// InspectRepository asks git about the repository that it would use in a directory and in an environment: program is
// the path of git. It returns nil if git would use none there, and an error if it cannot be known. Nothing that a
// configuration names runs.
func InspectRepository(ctx context.Context, program string, environ []string, dir string) (*Repository, error) {
	q := question{program: program, env: questionEnvironment(environ)}
	out, found, err := q.ask(ctx, dir, "rev-parse", "--absolute-git-dir", "--git-path", "hooks")
	if err != nil || !found {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 {
		return nil, fmt.Errorf("ask git about %s: the names of its directories cannot be read", dir)
	}
	r := &Repository{Dir: lines[0], Hooks: absolute(dir, lines[1])}
	out, inTree, err := q.ask(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return r, err
	}
	if inTree {
		r.Top = strings.TrimSuffix(out, "\n")
	}
	if out, found, err = q.ask(ctx, dir, "config", "--list", "--includes", "-z", "--show-origin", "--show-scope"); err != nil || !found {
		return nil, errors.Join(fmt.Errorf("ask git about %s: its configuration cannot be listed", dir), err)
	}
	// In a working tree git names files relative to its top, wherever it was started.
	if r.Settings, err = parseSettings(cmp.Or(r.Top, dir), out); err != nil {
		return nil, err
	}
	if !inTree {
		return r, nil
	}
	if out, found, err = q.ask(ctx, r.Top, "ls-files", "--stage", "-z"); err != nil || !found {
		return r, err // git cannot read its index: what it would run fails, too
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		stage, name, ok := strings.Cut(entry, "\t")
		if !ok || !strings.HasPrefix(stage, "160000 ") {
			continue
		}
		path := filepath.Join(r.Top, filepath.FromSlash(name))
		if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil && !slices.Contains(r.Submodules, path) {
			r.Submodules = append(r.Submodules, path)
		}
	}
	return r, nil
}

// parseSettings reads the list of a configuration: for each entry the scope, the origin, and the key with the value
// behind a newline.
func parseSettings(dir, list string) (settings []ConfigEntry, err error) {
	fields := strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")
	if list == "" {
		return nil, nil
	}
	if len(fields)%3 != 0 {
		return nil, fmt.Errorf("ask git about %s: its configuration cannot be read", dir)
	}
	for at := range slices.Chunk(fields, 3) {
		s := ConfigEntry{Scope: at[0]}
		if file, ok := strings.CutPrefix(at[1], "file:"); ok {
			s.Origin = absolute(dir, file)
		}
		s.Key, s.Value, _ = strings.Cut(at[2], "\n")
		settings = append(settings, s)
	}
	return settings, nil
}

// absolute returns a path that git has printed relative to a directory.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// A question is how git is asked.
type question struct {
	program string
	env     []string
}

// ask runs a command of git in a directory. found is false if git refuses it with its usual code, such as outside of a
// repository.
func (q question) ask(ctx context.Context, dir string, args ...string) (out string, found bool, err error) {
	const most = 64 << 20 // bytes of a list of files
	res, err := proc.Run(ctx, proc.Command{Path: q.program, Args: args, Dir: dir, Env: q.env, Timeout: timeout, Limit: most})
	if exit, ok := errors.AsType[*proc.ExitError](err); ok && exit.Code == 128 && exit.Signal == "" {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("ask git about %s: %w", dir, err)
	}
	return string(res.Stdout), true, nil
}

// questionEnvironment returns the environment in which git is asked: the given one, in which git writes nothing, asks
// no one and fetches nothing. The setting for the monitor of the file system is the only one that differs from what is
// asked about: the index is read.
func questionEnvironment(given []string) []string {
	var env []string
	for _, pair := range given {
		if !strings.HasPrefix(environ.FoldName(pair), "GIT_TRACE") {
			env = append(env, pair)
		}
	}
	env = append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_PAGER=cat")
	return addSettings(env, [][2]string{{"core.fsmonitor", "false"}})
}
