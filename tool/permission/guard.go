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
	"pyvenv.cfg": "it makes a directory an environment of Python", ".envrc": "it sets what programs heed",
}

// agentTools are the files that hold an agent's own tools.
var agentTools = []string{"tools.sh", "tools.py", "tools.ts"}

// guardReason returns why writing a path needs a question although the path is in the workspace,
// with the root that is guarded; "": it needs none. A rule that allows the write must name the
// root, or something in it.
func (a area) guardReason(path string) (what, root string) {
	for _, list := range []struct {
		paths    []string
		it, lies string
	}{
		{a.guarded, "it decides about permissions", "it holds files that decide about permissions"},
		{a.code, "its files run without being named", "files that run without being named lie in it"},
		{a.readable, "it belongs to the agent", ""},
	} {
		for _, g := range list.paths {
			if isWithin(g, path, true) {
				return list.it, g
			}
			if list.lies != "" && isWithin(path, g, true) {
				return list.lies, g
			}
		}
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, part := range parts {
		if why := codeDirs[strings.ToLower(part)]; why != "" {
			return why, filepath.FromSlash(strings.Join(parts[:i+1], "/"))
		}
	}
	if why := codeFiles[strings.ToLower(filepath.Base(path))]; why != "" {
		return why, path
	}
	return a.codeAround(path)
}

// codeAround looks for directories around a file whose contents may run: directories of agents, and
// Python environments with any name.
func (a area) codeAround(path string) (what, root string) {
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

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
