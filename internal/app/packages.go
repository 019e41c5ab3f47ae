package app

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/interpreter"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// Interpreters and packages in the workspace run with the tools of an agent
// only after consent, which covers everything in them. Those of an agent that the user
// named or installed need no consent.

// packageDirs returns the directories whose interpreters and packages the scripts of an
// agent may use, in order of preference.
func (b *toolbox) packageDirs(agentDir string) []string {
	p := b.process
	var list []string
	if p.isNamedOrInstalled(agentDir, b.named) {
		list = append(list, agentDir)
	}
	list = append(list, p.Dirs.Functions)
	for _, dir := range b.foundPackages(agentDir) {
		if p.hasTreeConsent(dir, b.workspace) {
			list = append(list, dir)
		}
	}
	return list
}

// foundPackages returns the directories with interpreters or packages that the user has
// not named: of an agent that was picked up, between an agent and the workspace around
// it, in the workspace, and in the PATH.
func (b *toolbox) foundPackages(agentDir string) (dirs []string) {
	add := func(dir string) {
		if isDir(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if agentDir != "" && !b.process.isNamedOrInstalled(agentDir, b.named) {
		add(filepath.Join(agentDir, ".venv"))
		add(filepath.Join(agentDir, "node_modules"))
	}
	add(filepath.Join(b.workspace, ".venv"))
	if agentDir != "" && isBelow(agentDir, b.workspace) {
		for dir := filepath.Dir(agentDir); dir != b.workspace && isBelow(dir, b.workspace); dir = filepath.Dir(dir) { // the root is its own parent
			add(filepath.Join(dir, "node_modules"))
		}
	}
	add(filepath.Join(b.workspace, "node_modules"))
	for _, dir := range b.pathPackages() {
		add(dir)
	}
	return dirs
}

// pathPackages returns the directories that entries of PATH in the workspace belong
// to.
func (b *toolbox) pathPackages() (dirs []string) {
	b.leftOnce.Do(func() { _, b.left = interpreter.FilterEnvironment(b.process.scriptEnv(), b.workspace, nil) })
	for _, l := range b.left {
		if l.Variable != "PATH" || !filepath.IsAbs(l.Entry) || !isDir(l.Entry) || isBelow(b.workspace, l.Entry) {
			continue
		}
		dirs = append(dirs, packageRoot(filepath.Clean(l.Entry), b.workspace))
	}
	return dirs
}

// packageRoot returns the environment or node_modules that a directory of programs
// belongs to, or the directory itself.
func packageRoot(dir, workspace string) string {
	for at := dir; isBelow(at, workspace) && !isBelow(workspace, at); at = filepath.Dir(at) {
		if slices.Contains([]string{".venv", "venv", "node_modules"}, filepath.Base(at)) || isFile(filepath.Join(at, "pyvenv.cfg")) {
			return at
		}
	}
	return dir
}

// hasTreeConsent reports whether the user has agreed to everything in a directory, as
// it is now.
func (p *Process) hasTreeConsent(dir, workspace string) bool {
	answer, _, err := p.consentStore().LookUpConsent(dir)
	if err != nil || answer == "" {
		return false
	}
	p.mu.Lock()
	known, ok := p.trees[dir]
	p.mu.Unlock()
	if !ok {
		known, _ = permission.DigestTree(dir, workspace) // "" means that there is no answer
		p.mu.Lock()
		p.trees[dir] = known
		p.mu.Unlock()
	}
	return known == answer
}

// childEnv returns the environment of child processes in a workspace: that of scripts,
// without what leads into the workspace. Packages that the user has agreed to stay.
func (b *toolbox) childEnv() []string {
	b.envOnce.Do(func() {
		b.env, _ = interpreter.FilterEnvironment(b.process.scriptEnv(), b.workspace, b.packageDirs(""))
	})
	return b.env
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
func (p *Process) findPackageDirs(a *flow.Agent) (list []ImplicitDir) {
	b := &toolbox{process: p, workspace: p.Dirs.Work, named: a.Dir}
	wanted := map[string]bool{}
	for _, child := range a.Agents() {
		python, typescript := false, false
		if child.Tools != nil { // a script node takes the interpreter from PATH
			python = slices.ContainsFunc(child.Tools.Scripts, func(file string) bool { return filepath.Ext(file) == ".py" })
		}
		for _, file := range child.ScriptFiles() {
			typescript = typescript || filepath.Ext(file) == ".ts"
		}
		for _, dir := range b.foundPackages(child.Dir) {
			environment := filepath.Base(dir) == ".venv"
			if environment && python || filepath.Base(dir) == "node_modules" && typescript {
				wanted[dir] = true
			}
		}
		if runsPrograms(child) {
			for _, dir := range b.pathPackages() {
				wanted[dir] = true
			}
		}
	}
	for _, child := range a.Agents() {
		for _, dir := range b.foundPackages(child.Dir) {
			if !wanted[dir] {
				continue
			}
			wanted[dir] = false
			if _, no, err := p.consentStore().LookUpConsent(dir); err != nil || no || p.hasTreeConsent(dir, p.Dirs.Work) {
				continue
			}
			list = append(list, ImplicitDir{Dir: dir, Packages: true})
		}
	}
	return list
}
