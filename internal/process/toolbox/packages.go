package toolbox

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// Interpreters and packages in the workspace run with the tools of an agent
// only after consent, which covers everything in them. Those of an agent that the user
// named or installed need no consent.

// PackageDirs returns the directories whose interpreters and packages the scripts of an
// agent may use, in order of preference.
func (tb *Toolbox) PackageDirs(agentDir string) []string {
	s := tb.shared
	var list []string
	if tb.isApproved(agentDir) {
		list = append(list, agentDir)
	}
	list = append(list, s.Dirs.Functions)
	for _, dir := range tb.FoundPackages(agentDir) {
		if s.hasTreeConsent(dir, tb.workspace) {
			list = append(list, dir)
		}
	}
	return list
}

// FoundPackages returns the directories with interpreters or packages that the user has
// not named: of an agent that was picked up, between an agent and the workspace around
// it, in the workspace, and in the PATH.
func (tb *Toolbox) FoundPackages(agentDir string) (dirs []string) {
	add := func(dir string) {
		if config.IsDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if agentDir != "" && !tb.isApproved(agentDir) {
		add(filepath.Join(agentDir, ".venv"))
		add(filepath.Join(agentDir, "node_modules"))
	}
	add(filepath.Join(tb.workspace, ".venv"))
	if agentDir != "" && isBelow(agentDir, tb.workspace) {
		// the root is its own parent
		for dir := filepath.Dir(agentDir); dir != tb.workspace && isBelow(dir, tb.workspace); dir = filepath.Dir(dir) {
			add(filepath.Join(dir, "node_modules"))
		}
	}
	add(filepath.Join(tb.workspace, "node_modules"))
	for _, dir := range tb.pathPackages() {
		add(dir)
	}
	return dirs
}

// pathPackages returns the directories that entries of PATH in the workspace belong
// to.
func (tb *Toolbox) pathPackages() (dirs []string) {
	tb.leftOnce.Do(func() { _, tb.left = interpreter.FilterEnvironment(tb.shared.ScriptEnv(), tb.workspace, nil) })
	for _, l := range tb.left {
		if environ.FoldName(l.Variable) != "PATH" || !filepath.IsAbs(l.Entry) || !config.IsDir(l.Entry) || isBelow(tb.workspace, l.Entry) {
			continue
		}
		dirs = append(dirs, packageRoot(filepath.Clean(l.Entry), tb.workspace))
	}
	return dirs
}

// packageRoot returns the environment or node_modules that a directory of programs
// belongs to, or the directory itself.
func packageRoot(dir, workspace string) string {
	for at := dir; isBelow(at, workspace) && !isBelow(workspace, at); at = filepath.Dir(at) {
		if slices.Contains([]string{".venv", "venv", "node_modules"}, filepath.Base(at)) || config.IsFile(filepath.Join(at, "pyvenv.cfg")) {
			return at
		}
	}
	return dir
}

// TrustsTree reports whether the user has agreed to everything in a directory of the working directory, as it is now.
func (s *Shared) TrustsTree(dir string) bool { return s.hasTreeConsent(dir, s.Dirs.Work) }

// hasTreeConsent reports whether the user has agreed to everything in a directory, as
// it is now.
func (s *Shared) hasTreeConsent(dir, workspace string) bool {
	answer, _, err := s.consentStore().LookUpConsent(dir)
	if err != nil || answer == "" {
		return false
	}
	s.mu.Lock()
	known, ok := s.trees[dir]
	s.mu.Unlock()
	if !ok {
		known, _ = permission.DigestTree(dir, workspace) // "" means that there is no answer
		s.mu.Lock()
		s.trees[dir] = known
		s.mu.Unlock()
	}
	return known == answer
}

// ChildEnv returns the environment of child processes in a workspace: that of scripts,
// without what leads into the workspace. Packages that the user has agreed to stay.
func (tb *Toolbox) ChildEnv() []string {
	tb.envOnce.Do(func() {
		tb.env, _ = interpreter.FilterEnvironment(tb.shared.ScriptEnv(), tb.workspace, tb.PackageDirs(""))
	})
	return tb.env
}

// WorkEnv returns the environment of child processes in the working directory that belong to no agent.
func (s *Shared) WorkEnv() []string {
	return (&Toolbox{shared: s, workspace: s.Dirs.Work}).ChildEnv()
}

// runsPrograms reports whether the tools or nodes of an agent start programs by name.
func runsPrograms(a *flow.Agent) bool {
	if len(a.ScriptFiles()) > 0 {
		return true
	}
	return a.Tools != nil && (len(a.Tools.Servers) > 0 || slices.ContainsFunc(a.Tools.Tools, func(t tool.Tool) bool {
		return strings.HasPrefix(t.Name, "execute_") || strings.HasPrefix(t.Name, "query_")
	}))
}

// findPackageDirs returns the packages that a run would use with the user's consent.
func (s *Shared) findPackageDirs(a *flow.Agent) (list []ImplicitDir) {
	tb := &Toolbox{shared: s, workspace: s.Dirs.Work, named: a.Dir}
	wanted := map[string]bool{}
	for _, child := range a.Agents() {
		python := false
		typescript := false
		if child.Tools != nil { // a script node takes the interpreter from PATH
			python = slices.ContainsFunc(child.Tools.Scripts, func(file string) bool { return filepath.Ext(file) == ".py" })
		}
		for _, file := range child.ScriptFiles() {
			typescript = typescript || filepath.Ext(file) == ".ts"
		}
		for _, dir := range tb.FoundPackages(child.Dir) {
			environment := filepath.Base(dir) == ".venv"
			if environment && python || filepath.Base(dir) == "node_modules" && typescript {
				wanted[dir] = true
			}
		}
		if runsPrograms(child) {
			for _, dir := range tb.pathPackages() {
				wanted[dir] = true
			}
		}
	}
	for _, child := range a.Agents() {
		for _, dir := range tb.FoundPackages(child.Dir) {
			if !wanted[dir] {
				continue
			}
			wanted[dir] = false
			if _, no, err := s.consentStore().LookUpConsent(dir); err != nil || no || s.hasTreeConsent(dir, s.Dirs.Work) {
				continue
			}
			list = append(list, ImplicitDir{Dir: dir, Packages: true})
		}
	}
	return list
}
