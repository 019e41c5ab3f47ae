package permission

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/base/plainfile"
)

// deepestSubmodule is how many submodules in submodules are looked at, and mostRepositories how many repositories in a
// decision.
const (
	deepestSubmodule = 5
	mostRepositories = 50
)

// lookTime is how long a decision looks at repositories, all together.
const lookTime = 10 * time.Second

// repositoryLooks are what a decision has found out about the repositories of directories.
type repositoryLooks struct {
	known map[string]string                                      // what speaks against a directory; empty: nothing
	ask   func(program, dir string) (*gitrepo.Repository, error) // asks git, until the decision has taken too long
	path  string                                                 // where the commands of the call find git
}

// newRepositoryLooks returns looks that end with ctx, for commands with an environment.
func newRepositoryLooks(ctx context.Context, env []string) *repositoryLooks {
	if env == nil {
		env = os.Environ()
	}
	l := &repositoryLooks{known: map[string]string{}}
	for _, pair := range env {
		if path, ok := strings.CutPrefix(pair, "PATH="); ok {
			l.path = path
		}
	}
	l.ask = func(program, dir string) (*gitrepo.Repository, error) {
		return gitrepo.InspectRepository(ctx, program, env, dir)
	}
	return l
}

// judgeRepositories returns why a command of git that only reads may do more in the directories in which it may work:
// the repository there names programs that git would run, or is none that a person made with git. It is empty if
// nothing speaks against the command. git itself is asked what it would use: its search for a repository and for
// settings is not imitated.
func (s *shellAnalyzer) judgeRepositories(args []word) (why string) {
	dirs, _, _, known := s.gitCommand(args)
	if s.lost || !known {
		return "works in a repository that is known only when it runs"
	}
	for _, dir := range dirs {
		if why := s.lookAtRepository(dir, 0); why != "" {
			return why
		}
	}
	return ""
}

// namesRisk is how a reason begins if git would run a program of the repository.
const namesRisk = "may run a program: "

// gitRisk returns the harm that a command of git may do that would only read in another repository.
func (s *shellAnalyzer) gitRisk(args []word) string {
	if gitCheck(args) == "" && strings.HasPrefix(s.judgeRepositories(args), namesRisk) {
		return "runs a program that the repository names"
	}
	return ""
}

// lookAtRepository is judgeRepositories for one directory, which is looked at once in a decision.
func (s *shellAnalyzer) lookAtRepository(dir string, depth int) (why string) {
	if why, ok := s.looks.known[dir]; ok {
		return why
	}
	if len(s.looks.known) >= mostRepositories || depth > deepestSubmodule {
		return "works in too many repositories to look at"
	}
	s.looks.known[dir] = "" // a repository may be a submodule of itself
	s.looks.known[dir] = s.area.judgeRepository(dir, s.looks, func(sub string) string { return s.lookAtRepository(sub, depth+1) })
	return s.looks.known[dir]
}

// judgeRepository returns why git may run a program in a directory, or read files of another place. judgeSub does so
// for a submodule.
func (a area) judgeRepository(dir string, looks *repositoryLooks, judgeSub func(dir string) string) (why string) {
	if !isDir(dir) {
		if dir == a.workspace {
			return "" // nothing can run
		}
		return "works in a directory that is not there yet"
	}
	if mayBecomeRepository(dir) {
		return "would take a directory of the workspace for a repository and use its configuration"
	}
	program, err := gitrepo.FindProgram(looks.path, func(at string) bool { return !a.holdsHome && isWithin(a.workspace, at, false) })
	if errors.Is(err, exec.ErrNotFound) {
		return "works in a repository that only git can look at, and git is not installed"
	}
	r, err := looks.ask(program, dir)
	if errors.Is(err, context.DeadlineExceeded) {
		return "works in a repository that git takes too long to describe"
	}
	if err != nil {
		return "works in a repository that git cannot describe (" + err.Error() + ")"
	}
	if r == nil {
		return ""
	}
	if isWithin(resolveOr(r.Dir), resolveOr(dir), false) {
		return "would take the directory " + filepath.Base(r.Dir) + " itself for a repository and use its configuration"
	}
	if !a.ownsRepository(r) {
		return "works in a repository or a working tree outside of the workspace (" + r.Dir + ")"
	}
	for _, set := range r.Settings {
		if a.namesProgram(set) {
			return namesRisk + "the repository sets " + set.Key + " (" + set.Origin + ")"
		}
	}
	if info, err := os.Stat(filepath.Join(r.Hooks, "post-index-change")); err == nil && !info.IsDir() {
		return namesRisk + "the repository has the hook post-index-change"
	}
	for _, sub := range r.Submodules {
		if why := judgeSub(sub); why != "" {
			return why
		}
	}
	return ""
}

// mayBecomeRepository reports whether a directory, or one above it, has parts of a repository without a working tree
// before one has a .git: a person who can write files can add the others at any time.
func mayBecomeRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return false
		}
		if isDir(filepath.Join(dir, "objects")) || isDir(filepath.Join(dir, "refs")) {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// resolveOr returns a path with links followed, or the path itself where they cannot be.
func resolveOr(path string) string {
	if at, err := resolvePath(path); err == nil {
		return at
	}
	return path
}

// ownsRepository reports whether a repository is one of the workspace, or one around it: its files, and the working
// tree that it shows, belong together. A file named .git and the setting core.worktree may name any other place. A
// linked working tree is known by the file that git keeps for it in the repository.
func (a area) ownsRepository(r *gitrepo.Repository) bool {
	top := resolveOr(r.Top)
	dir := resolveOr(r.Dir)
	around := func(path string) bool {
		return isWithin(a.workspace, path, false) || isWithin(path, a.workspace, false)
	}
	if r.Top == "" || !around(top) {
		return false
	}
	if isWithin(a.workspace, dir, false) || dir == filepath.Join(top, ".git") {
		return true
	}
	back, err := readSmallFile(filepath.Join(dir, "gitdir")) // of a linked working tree
	if err == nil && resolveOr(strings.TrimSpace(back)) == filepath.Join(top, ".git") {
		return true
	}
	// A submodule whose parent is outside: the parent's settings name its working tree.
	return slices.ContainsFunc(r.Settings, func(s gitrepo.ConfigEntry) bool {
		return s.Key == "core.worktree" && resolveOr(s.Origin) == filepath.Join(dir, "config") && resolveOr(absoluteIn(dir, s.Value)) == top
	})
}

func absoluteIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + string(filepath.Separator) + path
}

// readSmallFile reads a regular file of at most 4 KiB.
func readSmallFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a file")
	}
	text, err := plainfile.Read(path, 4096)
	return string(text), err
}

// programSections are sections of a configuration of git in which every key names a program or changes one.
var programSections = []string{"alias", "browser", "credential", "difftool", "filter", "gpg", "guitool", "hook", "imap", "include", "instaweb", "interactive", "lfs",
	"man", "mergetool", "pager", "sendemail", "sequence", "trailer", "uploadpack", "web"}

// programKeys are last parts of keys that name a program, or make git fetch objects with one.
var programKeys = []string{"alternaterefscommand", "askpass", "browser", "clean", "cmd", "command", "custompath", "difffilter", "driver", "editor", "external", "fsmonitor", "gitproxy", "guitool", "helper", "packobjectshook",
	"pager", "partialclone", "process", "program", "promisor", "proxycommand", "receivepack", "smudge", "sshcommand", "templatedir", "textconv", "tool", "tunnel", "uploadpack", "vcs", "viewer"}

// namesProgram reports whether a setting lets the repository, or a file of the workspace, name a program that git may
// run. Settings of the user and of the system may do so, unless the program lies in the workspace.
func (a area) namesProgram(s gitrepo.ConfigEntry) bool {
	key := strings.ToLower(s.Key)
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndex(key, ".")+1:]
	names := slices.Contains(programSections, section) || slices.Contains(programKeys, last) ||
		strings.HasSuffix(last, "command") || strings.HasSuffix(last, "cmd") || strings.HasSuffix(last, "hook") || key == "diff.tool" || key == "merge.tool" ||
		section == "submodule" && last == "update" && strings.HasPrefix(strings.TrimSpace(s.Value), "!") || section == "remote" && last == "url" && strings.Contains(s.Value, "::")
	if !names || section == "include" || section == "includeif" {
		return false // what is included is in the list itself
	}
	switch strings.ToLower(s.Value) {
	case "", "true", "false", "yes", "no", "on", "off", "0", "1":
		return last == "promisor" && s.Value != "false"
	}
	if s.Scope == "local" || s.Scope == "worktree" || s.Origin != "" && a.mayBeWritten(s.Origin) {
		return true
	}
	program, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(s.Value), "!\"'"), " ")
	if !strings.Contains(program, "/") || strings.HasPrefix(program, "~/") || strings.HasPrefix(program, "$") {
		return false
	}
	return !filepath.IsAbs(program) && section != "alias" || !a.holdsHome && isWithin(a.workspace, resolveOr(program), false)
}

// mayBeWritten reports whether a file lies in the workspace where a call may write it without a question.
func (a area) mayBeWritten(path string) bool {
	at := resolveOr(path)
	if !isWithin(a.workspace, at, false) {
		return false
	}
	if !a.holdsHome {
		return true
	}
	// In a home directory as the workspace, hidden files are the user's own: writing them asks.
	rel, err := filepath.Rel(a.workspace, at)
	return err != nil || !strings.HasPrefix(rel, ".") && !strings.Contains(rel, string(filepath.Separator)+".")
}
