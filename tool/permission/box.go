package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Box is a place of the operating system in which commands can run without a question, because it holds them: they
// read no secrets, change nothing but the workspace, and reach no network.
type Box struct {
	// Holds reports whether the box holds on this system. It is called when a decision needs it for the first time.
	Holds func() bool
	// Hides reports whether commands in the box see a path empty. A call that is known to read such a path asks, so
	// that it is not answered with nothing. The path is absolute.
	Hides func(path string) bool
}

// noConsent says why a call asks that can run in the box as a whole.
const noConsent = "is a script of an agent that you did not name"

// boxesNeed reports whether a need that no rule decides is covered if the commands of its call run in the box. A file
// that the call is known to write outside of what the box lets it write asks, as does a file that the box hides.
func (p *Policy) boxesNeed(m matcher, n need) bool {
	switch {
	case p.Box == nil || !m.boxes && n.why != noConsent || p.Mode != ModeEdits && p.Mode != ModeBox && p.Mode != "":
		return false
	case n.kind == theCall && n.why != noConsent || n.kind == network || n.kind == writing && !n.guess:
		return false
	case n.kind == reading && slices.ContainsFunc(n.paths, p.Box.Hides):
		return false
	}
	return p.Box.Holds()
}

// boxFree are names of directories that are protected because programs run what is in them, and that a command in the
// box may change nevertheless: managers of packages write them, and what they hold does what the sources of the
// workspace do.
var boxFree = []string{".venv", "venv", "node_modules", "site-packages", "__pycache__", ".yarn"}

// gitRead are the files of a repository that name programs or other places, relative to its .git. Everything else in it
// is data.
var gitRead = []string{"config", "config.worktree", "hooks", "info/attributes", "commondir", "gitdir", "objects/info/alternates"}

// BoxReason returns why a command in the box must not change a path of the workspace, as the end of a sentence that
// begins with the path; "": it may. The path is absolute and without links. made is the file that the command put
// there, outside of the workspace; "": it removed the path.
func (p *Policy) BoxReason(path, made string) string {
	a, err := p.resolveArea()
	if err != nil {
		return "cannot be judged: " + err.Error()
	}
	relative, err := filepath.Rel(a.workspace, path)
	if err != nil {
		return "is not in the workspace"
	}
	if why := p.ruleReason(a, path); why != "" {
		return why
	}
	parts := strings.Split(filepath.ToSlash(relative), "/")
	for i, part := range parts {
		switch name := plainName(part); {
		case slices.Contains(boxFree, name):
			why, _ := a.protectReason(filepath.Join(a.workspace, filepath.Join(parts[:i]...)))
			return why
		case name == ".git" && i == len(parts)-1:
			if isNew(path) && pointsToRepository(a.workspace, path, made) {
				return ""
			}
			return "it names the repository that git uses"
		case name == ".git":
			why := gitReason(parts[i+1:], made)
			if why != "" && isNew(path) && isHarmlessGitFile(a.workspace, parts[i+1:], made) {
				return ""
			}
			return why
		}
	}
	why, _ := a.protectReason(path)
	return why
}

// ruleReason returns why a rule keeps a command in the box from changing a path, which is judged by itself: every file
// that changes below a directory is judged, too. "": no rule does. A rule that asks keeps it as well, because no one
// was asked.
func (p *Policy) ruleReason(a area, path string) string {
	n := a.fileNeed(writing, itself, path, a.workspace, path)
	m := matcher{tool: "execute_command", shell: true, boxes: true, area: a, home: p.Home, patterns: map[string]pathPattern{}, trees: map[string]*subtree{}}
	for _, rules := range p.Rules {
		for _, r := range rules.Deny {
			if m.forbidsNeed(r, n) != no {
				return "is denied by the rule " + r.describeRule()
			}
		}
		for _, r := range rules.Ask {
			if m.forbidsNeed(r, n) != no {
				return "is asked about by the rule " + r.describeRule()
			}
		}
	}
	return ""
}

// gitReason returns why a path in a .git directory must not be changed; "": it may. The directories of submodules and
// worktrees are repositories. A link would replace one of them by a directory that is not judged.
func gitReason(parts []string, made string) string {
	if info, err := os.Lstat(made); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return "a link in a repository leads git to other places"
	}
	for i := range parts {
		rest := strings.ToLower(strings.Join(parts[i:], "/"))
		for _, name := range gitRead {
			if (rest == name || strings.HasPrefix(rest, name+"/")) && (i == 0 || parts[0] == "modules" || parts[0] == "worktrees") {
				return "git reads programs and places from it"
			}
		}
	}
	return ""
}
