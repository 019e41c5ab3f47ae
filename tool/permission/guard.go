package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The reasons to ask before something is written that several places share.
const (
	editorRuns  = "an editor runs what it names"
	agentRuns   = "other agents run or follow what it says"
	serverRuns  = "a build server runs what it says"
	packagesRun = "interpreters and packages run from there"
	agentReads  = "agents follow what it says"
	gitRuns     = "git runs what it names"
)

// codeDirs are names of directories whose files run, or decide what runs, although no command names
// them, with the reason to ask before they are written. A name with a slash is that of a directory in another one.
var codeDirs = map[string]string{
	".git": "it belongs to git", ".githooks": "it belongs to git", ".husky": "it belongs to git",
	".venv": packagesRun, "venv": packagesRun, "node_modules": packagesRun, "site-packages": packagesRun,
	"__pycache__": "Python runs it in place of a source file",
	".raddle":     "it decides what raddle may do in this project",

	".vscode": editorRuns, ".idea": editorRuns, ".devcontainer": editorRuns, ".fleet": editorRuns, ".zed": editorRuns,
	".claude": agentRuns, ".codex": agentRuns, ".gemini": agentRuns, ".cursor": agentRuns, ".agents": agentRuns, ".windsurf": agentRuns, ".roo": agentRuns, ".kiro": agentRuns,
	".qwen": agentRuns, ".opencode": agentRuns, ".continue": agentRuns, ".clinerules": agentRuns, ".amazonq": agentRuns, ".junie": agentRuns, ".crush": agentRuns,
	".github/workflows": serverRuns, ".github/actions": serverRuns, ".github/instructions": agentReads, ".github/prompts": agentReads, ".github/agents": agentReads, ".github/hooks": agentRuns,
	".circleci": serverRuns, ".buildkite": serverRuns, ".gitlab/ci": serverRuns, ".forgejo/workflows": serverRuns, ".gitea/workflows": serverRuns, ".woodpecker": serverRuns,
	".cargo": "it names programs that cargo runs", ".mise": "it sets variables of programs", ".config/mise": "it sets variables of programs", ".direnv": "it sets variables of programs",
	".yarn/releases": packagesRun, ".yarn/plugins": packagesRun,
}

// codeFiles are names of files that decide what runs, with the reason to ask.
var codeFiles = map[string]string{
	"permissions.yaml": "it decides about permissions", "mcp.json": "it names servers to start", ".mcp.json": "it names servers to start", "graph.yaml": "it is an agent",
	"pyvenv.cfg": "it makes a directory an environment of Python", ".envrc": "it sets variables of programs", ".mise.toml": "it sets variables of programs", "mise.toml": "it sets variables of programs",
	".mise.local.toml": "it sets variables of programs", "mise.local.toml": "it sets variables of programs",
	".gitconfig": "it names programs that git runs", ".npmrc": "it names programs that npm runs", ".gitmodules": gitRuns, ".gitattributes": gitRuns, ".lfsconfig": gitRuns,
	".pre-commit-config.yaml": gitRuns, ".pre-commit-config.yml": gitRuns, "lefthook.yml": gitRuns, "lefthook.yaml": gitRuns, ".lefthook.yml": gitRuns, ".lefthook.yaml": gitRuns,
	".yarnrc.yml": "it names programs that yarn runs", ".yarnrc": "it names programs that yarn runs", ".pnpmfile.cjs": "pnpm runs it",
	"conftest.py": "pytest runs it", "sitecustomize.py": "Python runs it", "usercustomize.py": "Python runs it",
	".gitlab-ci.yml": serverRuns, ".gitlab-ci.yaml": serverRuns, ".travis.yml": serverRuns, "azure-pipelines.yml": serverRuns, "bitbucket-pipelines.yml": serverRuns, "jenkinsfile": serverRuns,
	".drone.yml": serverRuns, ".woodpecker.yml": serverRuns, ".gitpod.yml": serverRuns,
	".exrc": editorRuns, ".vimrc": editorRuns, ".nvimrc": editorRuns, ".nvim.lua": editorRuns, ".dir-locals.el": editorRuns, ".gdbinit": "gdb runs it", ".lldbinit": "lldb runs it",
	"agents.md": agentReads, "agents.override.md": agentReads, "agents.local.md": agentReads, "agent.md": agentReads, "claude.md": agentReads, "claude.local.md": agentReads, "gemini.md": agentReads, "qwen.md": agentReads,
	"crush.md": agentReads, "warp.md": agentReads, "copilot-instructions.md": agentReads, ".cursorrules": agentReads, ".windsurfrules": agentReads, ".clinerules": agentReads, ".roorules": agentReads,
	".goosehints": agentReads, ".rules": agentReads, ".aider.conf.yml": agentRuns, "opencode.json": agentRuns, "opencode.jsonc": agentRuns, ".opencode.json": agentRuns, ".crush.json": agentRuns, "crush.json": agentRuns,
}

// codeEndings are endings of names of files that decide what runs.
var codeEndings = map[string]string{".pth": "Python runs it", ".code-workspace": editorRuns}

// startFiles are names of files that a shell or a session of a person runs when it starts.
var startFiles = []string{".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".cshrc", ".kshrc", ".login", ".logout", ".mkshrc", ".profile",
	".tcshrc", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc"}

// agentTools are the files that hold an agent's own tools. A config.yaml alone may belong to any
// program; with one of these next to it, it is an agent.
var agentTools = []string{"tools.sh", "tools.py", "tools.ts"}

// guardReason returns why writing a path needs a question although the path is in the workspace,
// with the root that is guarded; "": it needs none. A rule that allows the write must name the
// root, or something in it.
// A directory around a guarded place is guarded, too: a call that writes it may replace what is in
// it. Names are compared without case, because some file systems do not distinguish it.
func (a area) guardReason(path string) (what, root string) {
	for _, list := range []struct {
		paths          []string
		inside, around string // why a path in one of them, or around one of them, asks; "": it does not
	}{
		{a.guarded, "it decides about permissions", "it holds files that decide about permissions"},
		{a.code, "its files run without being named", "files that run without being named lie in it"},
		{a.readable, "it belongs to the agent", ""},
	} {
		for _, g := range list.paths {
			if isWithin(g, path, true) {
				return list.inside, g
			}
			if list.around != "" && isWithin(path, g, true) {
				return list.around, g
			}
		}
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := range parts {
		if why := codeDirReason(parts[:i+1]); why != "" {
			return why, filepath.FromSlash(strings.Join(parts[:i+1], "/"))
		}
	}
	if why := codeFileReason(filepath.Base(path)); why != "" {
		return why, path
	}
	return a.findCodeDir(path)
}

// findCodeDir looks for directories around a file whose contents may run: directories of agents, and
// Python environments with any name.
// It looks only at directories in the workspace, from the file upwards.
func (a area) findCodeDir(path string) (what, root string) {
	for dir := filepath.Dir(path); isWithin(a.workspace, dir, false); dir = filepath.Dir(dir) {
		if isFile(filepath.Join(dir, "pyvenv.cfg")) {
			return codeDirs["venv"], dir
		}
		if mayRun(path) && isAgent(dir, path) {
			return "it belongs to an agent", dir
		}
	}
	return "", ""
}

// codeDirReason returns why the files in a directory run later, by the names on the way to it; "": its name does not
// say so.
func codeDirReason(parts []string) string {
	name := plainName(parts[len(parts)-1])
	if why := lookUpName(codeDirs, name); why != "" || len(parts) == 1 {
		return why
	}
	return lookUpName(codeDirs, plainName(parts[len(parts)-2])+"/"+name)
}

// codeFileReason returns why a file with a name runs later, or decides what runs; "": the name does not say so.
func codeFileReason(name string) string {
	name = plainName(name)
	if slices.Contains(startFiles, name) {
		return "it runs when a shell or a session starts"
	}
	for ending, why := range codeEndings {
		if strings.HasSuffix(name, ending) {
			return why
		}
	}
	return lookUpName(codeFiles, name)
}

// lookUpName returns the entry of a name, or of a name for which it may be the short form that some file systems
// accept.
func lookUpName(table map[string]string, name string) string {
	if why := table[name]; why != "" || !strings.Contains(name, "~") {
		return why
	}
	for long, why := range table {
		if isShortName(name, long) {
			return why
		}
	}
	return ""
}

// plainName returns a name as file systems compare it that know more spellings than one: in lower case, without blanks
// and dots at its end, without the name of a stream after a colon, and without characters that are not seen.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, strings.ToLower(name))
	if at := strings.IndexByte(name, ':'); at > 0 {
		name = name[:at]
	}
	if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
		return trimmed
	}
	return name
}

// isShortName reports whether a name is a short form of another one, such as git~1 of .git: at most six characters
// without dots, ~ with a number, and at most three characters of the ending.
func isShortName(short, long string) bool {
	stem, ending, _ := strings.Cut(short, ".")
	stem, number, ok := strings.Cut(stem, "~")
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" || stem == "" {
		return false
	}
	long = long[strings.LastIndexByte(long, '/')+1:]
	full := strings.TrimLeft(long, ".")
	longEnding := ""
	if at := strings.LastIndexByte(full, '.'); at >= 0 {
		full, longEnding = full[:at], full[at+1:]
	}
	full = strings.ReplaceAll(full, ".", "")
	return full[:min(6, len(full))] == stem && longEnding[:min(3, len(longEnding))] == ending
}

// isAgent reports whether a directory is an agent's, or becomes one by the file
// that is written.
func isAgent(dir, written string) bool {
	has := func(file string) bool {
		path := filepath.Join(dir, file)
		return path == written || isFile(path)
	}
	if has("graph.yaml") {
		return true
	}
	return has("config.yaml") && (slices.ContainsFunc(agentTools, has) || has("mcp.json"))
}

// mayRun reports whether a file may be run, or decide what runs, by its name or by
// its mode.
func mayRun(path string) bool {
	if slices.Contains(scriptEndings, strings.ToLower(filepath.Ext(path))) || slices.Contains(scriptNames, filepath.Base(path)) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isFile reports whether there is a regular file at a path, also through a link.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
