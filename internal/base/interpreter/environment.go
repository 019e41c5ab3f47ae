package interpreter

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
)

// searched are variables that list directories or files from which programs load
// code.
var searched = []string{
	"PATH", "PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "LUA_PATH", "LUA_CPATH",
	"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES", "DYLD_FALLBACK_LIBRARY_PATH",
}

// loaded are variables that name one file or directory from which programs load
// code or settings.
var loaded = []string{
	"BASH_ENV", "ENV", "ZDOTDIR", "INPUTRC", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PYTHONPLATLIBDIR",
	"TSX_TSCONFIG_PATH", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG", "NPM_CONFIG_PREFIX", "NPM_CONFIG_LOCAL_PREFIX",
	"NPM_CONFIG_SCRIPT_SHELL", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "OPENSSL_CONF", "RIPGREP_CONFIG_PATH",
}

// options are variables that hold flags of a program, which may name code.
var options = []string{"NODE_OPTIONS", "NPM_CONFIG_NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"}

// A RemovedEntry is something that FilterEnvironment has left out: a variable, or one entry of its list.
type RemovedEntry struct {
	Variable string
	Entry    string // the entry as written; an empty entry means the working directory
}

// FilterEnvironment returns an environment for child processes that run in a workspace,
// without the settings that make them load code from there: entries of search paths
// that are relative or lie in the workspace, and settings that name such a file. Paths
// below one of the packages stay. If the home directory lies in the workspace,
// absolute entries below home also stay: they are the user's own programs.
func FilterEnvironment(env []string, workspace string, packages []string) (kept []string, left []RemovedEntry) {
	f := environmentFilter{workspace: resolveLinks(workspace)}
	for _, dir := range packages {
		f.packages = append(f.packages, resolveLinks(dir))
	}
	if home := environ.Environ(env).FindHome(); filepath.IsAbs(home) && isBelow(resolveLinks(home), f.workspace) {
		f.packages = append(f.packages, resolveLinks(home))
	}
	kept = make([]string, 0, len(env))
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		switch upper := strings.ToUpper(name); {
		case value == "":
		case slices.Contains(searched, upper):
			clean, removed := f.filterList(value)
			for _, entry := range removed {
				left = append(left, RemovedEntry{name, entry})
			}
			if removed != nil {
				pair = name + "=" + clean
			}
			if removed != nil && clean == "" {
				continue
			}
		case slices.Contains(loaded, upper) && !f.isUsablePath(value), slices.Contains(options, upper) && !f.areFlagsSafe(value):
			left = append(left, RemovedEntry{name, value})
			continue
		}
		kept = append(kept, pair)
	}
	return kept, left
}

// An environmentFilter knows which paths are in the workspace.
type environmentFilter struct {
	workspace string
	packages  []string
}

// filterList returns a list without the entries that may not be used, and those entries.
func (f environmentFilter) filterList(value string) (clean string, left []string) {
	var kept []string
	for _, entry := range filepath.SplitList(value) {
		if f.isUsablePath(entry) {
			kept = append(kept, entry)
			continue
		}
		left = append(left, entry)
	}
	return strings.Join(kept, string(filepath.ListSeparator)), left
}

// isUsablePath reports whether a path is absolute and does not lie in the workspace, or
// lies in its packages.
func (f environmentFilter) isUsablePath(path string) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	at := resolveLinks(path)
	if f.workspace == "" || !isBelow(at, f.workspace) {
		return true
	}
	return slices.ContainsFunc(f.packages, func(dir string) bool { return isBelow(at, dir) })
}

// areFlagsSafe reports whether flags name no code, or only code that may be used.
func (f environmentFilter) areFlagsSafe(flags string) bool {
	words := strings.FieldsFunc(flags, func(r rune) bool { return r == ' ' || r == '\t' || r == '=' || r == ',' || r == '"' || r == '\'' })
	for i, w := range words {
		switch w {
		case "-r", "--require", "--import", "--loader", "--experimental-loader", "-I", "-M", "-m":
			if i+1 >= len(words) || !f.isUsablePath(words[i+1]) {
				return false
			}
			continue
		}
		if name := strings.TrimLeft(w, "-"); name != w {
			if len(w) > 2 && w[1] != '-' && strings.IndexByte("rIMm", w[1]) >= 0 {
				return false // -rFILE and similar flags
			}
			continue
		}
		if strings.ContainsAny(w, `/\`) && !f.isUsablePath(w) {
			return false
		}
	}
	return true
}

// SetsCode reports whether a variable decides which code a program runs, so that a
// file that other users may write must not set it.
func SetsCode(name string) bool {
	upper := strings.ToUpper(name)
	if slices.Contains(searched, upper) || slices.Contains(loaded, upper) || slices.Contains(options, upper) {
		return true
	}
	switch upper {
	case "IFS", "PS4", "SHELL", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "HOME", "EDITOR", "VISUAL", "PAGER", "BROWSER", "TMPDIR", "TMP", "TEMP", "MAKEFLAGS":
		return true
	}
	return slices.ContainsFunc([]string{"LD_", "DYLD_", "PYTHON", "NODE_", "NPM_", "TSX_", "GIT_", "BASH_", "PERL", "RUBY", "JAVA_", "JDK_", "LLM_", "RADDLE_"},
		func(prefix string) bool { return strings.HasPrefix(upper, prefix) })
}

// isBelow reports whether a path is a directory or lies in it. Both are clean.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// resolveLinks returns a path with links followed as far as the path exists.
func resolveLinks(path string) string {
	if path == "" {
		return ""
	}
	path = filepath.Clean(path)
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
