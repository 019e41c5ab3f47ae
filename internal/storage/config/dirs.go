package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
)

// Dirs are the directories of the process, all absolute. None of them needs to
// exist.
type Dirs struct {
	Config    string `json:"config"`    // config.yaml
	Agents    string `json:"agents"`    // agents that are called by their name
	Functions string `json:"functions"` // global tools, and mcp.json
	State     string `json:"state"`     // runs and journals
	Cache     string `json:"cache"`     // data that can be created again
	Bundled   string `json:"-"`         // below Cache: the agents that come with the program, as files
	Work      string `json:"work"`      // where the process was started
	Home      string `json:"-"`         // of the user; "" if there is none
	workGone  bool   // the directory where the process was started no longer exists
}

// goneDir replaces a working directory that was deleted. It never exists, so
// that relative paths name nothing.
var goneDir = filepath.Join(string(filepath.Separator), "(deleted working directory)")

// RequireWork returns an error if the working directory was deleted: a run needs a
// workspace.
func (d Dirs) RequireWork() error {
	if d.workGone {
		return failure.NewUsage("change to a directory that exists, and try again", "the working directory was deleted")
	}
	return nil
}

// FindDirs applies RADDLE_CONFIG_DIR, RADDLE_FUNCTIONS_DIR and the XDG variables.
func FindDirs(env environ.Environ, work string) (Dirs, error) {
	d := Dirs{Work: work, Home: env.FindHome()}
	if work == "" {
		var err error
		if d.Work, err = os.Getwd(); err != nil {
			d.Work = goneDir
			d.workGone = true
		}
	}
	if d.Home == "" {
		d.Home, _ = os.UserHomeDir() // if there is none, whatever needs it reports that
	}
	if runtime.GOOS == "windows" {
		d.Config = baseDir(env, "XDG_CONFIG_HOME", env.Get("APPDATA"))
		d.State = baseDir(env, "XDG_STATE_HOME", env.Get("LOCALAPPDATA"))
		d.Cache = baseDir(env, "XDG_CACHE_HOME", env.Get("LOCALAPPDATA"))
	} else {
		d.Config = baseDir(env, "XDG_CONFIG_HOME", filepath.Join(d.Home, ".config"))
		d.State = baseDir(env, "XDG_STATE_HOME", filepath.Join(d.Home, ".local", "state"))
		d.Cache = baseDir(env, "XDG_CACHE_HOME", filepath.Join(d.Home, ".cache"))
	}
	if dir, ok := env.Lookup("RADDLE_CONFIG_DIR"); ok {
		d.Config = d.AbsPath(dir)
	}
	for _, dir := range []string{d.Config, d.State, d.Cache} {
		if !filepath.IsAbs(dir) {
			return d, failure.NewUsage("set HOME, or RADDLE_CONFIG_DIR, XDG_STATE_HOME and XDG_CACHE_HOME",
				"there is no home directory for configuration and runs")
		}
	}
	d.Agents = filepath.Join(d.Config, "agents")
	d.Bundled = filepath.Join(d.Cache, "bundled")
	d.Functions = filepath.Join(d.Config, "functions")
	if dir, ok := env.Lookup("RADDLE_FUNCTIONS_DIR"); ok {
		d.Functions = d.AbsPath(dir)
	}
	return d, nil
}

// baseDir returns raddle's directory below the one that a variable names. As the XDG
// specification requires, it ignores a relative path in the variable.
func baseDir(env environ.Environ, name, fallback string) string {
	if dir := env.Get(name); filepath.IsAbs(dir) {
		return filepath.Join(dir, "raddle")
	}
	return filepath.Join(fallback, "raddle")
}

// AbsPath returns a path as the user of this process means it: relative to the working
// directory, or to the home directory after "~/".
func (d Dirs) AbsPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && d.Home != "" {
		return filepath.Join(d.Home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(d.Work, path)
}

// ShortPath returns a path for people: relative if it lies in the working directory,
// with "~" if it lies in the home directory.
func (d Dirs) ShortPath(path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(d.Work, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if d.Home != "" && d.Home != "/" {
		if rel, err := filepath.Rel(d.Home, path); err == nil && filepath.IsLocal(rel) && rel != "." {
			return filepath.Join("~", rel)
		}
	}
	return path
}

// IsDir reports whether a path is that of a directory, with links followed.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// IsFile reports whether a path is that of something other than a directory, with links followed.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
