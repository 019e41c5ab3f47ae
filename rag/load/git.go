package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/tempdir"
)

// isRepository reports whether a source is the address of a git repository.
func isRepository(source string) bool {
	if strings.HasPrefix(source, "git@") || strings.HasPrefix(source, "ssh://") || strings.HasPrefix(source, "git://") {
		return true
	}
	u, err := url.Parse(source)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.HasSuffix(u.Path, ".git")
}

// runGit runs git, with all its questions turned off and without what a repository tells it to run.
func (l *lister) runGit(args ...string) ([]byte, error) {
	env := append(slices.Clone(l.o.Env), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=http:https:ssh:git:file",
		"GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	res, err := proc.Run(l.ctx, proc.Command{Path: "git", Args: args, Env: gitrepo.HardenEnvironment(env), Timeout: commandTimeout})
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	if res.StdoutDropped > 0 {
		return nil, errors.New("the list of its files is too long")
	}
	return res.Stdout, nil
}

// listRepository lists the files that git tracks: of the folder p.at, or of a shallow clone of an address, which it
// removes after reading.
func (l *lister) listRepository(p sourceSpec) {
	if p.kind == kindLocalRepository {
		for _, name := range l.listTracked(p, p.at) {
			l.addFile(p.source, cmp.Or(p.root, p.at), filepath.Join(p.at, name))
		}
		return
	}
	temp, remove, err := tempdir.New("load-*")
	if err != nil {
		l.addProblem(p.source, "", err)
		return
	}
	defer remove()
	if _, err := l.runGit("clone", "--quiet", "--depth=1", "--no-tags", "--single-branch", "--config=core.symlinks=false", "--", p.at, temp); err != nil {
		l.addProblem(p.source, "", err)
		return
	}
	for _, name := range l.listTracked(p, temp) {
		at := strings.TrimSuffix(p.at, "/") + "/" + name
		data, err := readFile(temp, filepath.FromSlash(name), l.o.maxBytes())
		if err != nil {
			l.addProblem(p.source, at, err)
			continue
		}
		l.addEntry(Entry{Path: at, Source: p.source, ext: fileExtension(name), data: data})
	}
}

// listTracked returns the names of the regular files that git tracks, sorted.
func (l *lister) listTracked(p sourceSpec, dir string) (names []string) {
	out, err := l.runGit("-C", dir, "ls-files", "-z", "--stage")
	if err != nil {
		l.addProblem(p.source, "", err)
		return nil
	}
	for line := range bytes.SplitSeq(out, []byte{0}) {
		mode, name, ok := strings.Cut(string(line), "\t")
		if ok && strings.HasPrefix(mode, "100") && !slices.Contains(names[max(0, len(names)-1):], name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
