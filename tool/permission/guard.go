package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// codeDirs are names of directories whose files run, or decide what runs, although no command names
// them, with the reason to ask before they are written.
var codeDirs = map[string]string{
	".git": "it belongs to git", ".githooks": "it belongs to git", ".husky": "it belongs to git",
	".venv": "interpreters and packages run from there", "venv": "interpreters and packages run from there",
	"node_modules": "interpreters and packages run from there", "site-packages": "interpreters and packages run from there",
	"__pycache__": "Python runs it in place of a source file",
	".raddle":     "it decides what raddle may do in this project",
}

// codeFiles are names of files that decide what runs, with the reason to ask.
var codeFiles = map[string]string{
	"permissions.yaml": "it decides about permissions", "mcp.json": "it names servers to start", "graph.yaml": "it is an agent",
	"pyvenv.cfg": "it makes a directory an environment of Python", ".envrc": "it sets variables of programs",
	".gitconfig": "it names programs that git runs", ".npmrc": "it names programs that npm runs",
}

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
	for i, part := range parts {
		if why := codeDirs[strings.ToLower(part)]; why != "" {
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

// codeFileReason returns why a file with a name runs later, or decides what runs; "": the name does not say so.
func codeFileReason(name string) string {
	name = strings.ToLower(name)
	if slices.Contains(startFiles, name) {
		return "it runs when a shell or a session starts"
	}
	return codeFiles[name]
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
