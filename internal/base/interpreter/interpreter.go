// Package interpreter chooses the programs that run Python and TypeScript files. It
// uses nothing only because it is in the working directory: no .venv, no
// node_modules, no tsconfig.json and no package.json.
//
//	s := interpreter.Search{Path: path, Packages: []string{agentDir}, Workspace: dir}
//	program := s.Python()
package interpreter

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"

	"raddle.dev/internal/base/plainfile"
)

// A Search says where to take interpreters and packages from.
type Search struct {
	// Path is the PATH of the child process.
	Path string
	// Packages are directories whose interpreters and packages may be used, in order of
	// preference. Each is a virtual environment or a node_modules, or holds one as .venv or
	// node_modules.
	Packages []string
	// Workspace is the directory whose packages are not used, except for those below
	// one of Packages. If empty, there is no such directory.
	Workspace string
}

// FindPython returns the interpreter of the first of the packages that has one, otherwise
// the name under which it is in Path.
func (s Search) FindPython() string {
	for _, dir := range s.Packages {
		for _, name := range []string{".venv/bin/python", ".venv/Scripts/python.exe", "bin/python", "Scripts/python.exe"} {
			if path := filepath.Join(dir, filepath.FromSlash(name)); isProgram(path) && (name[0] == '.' || isEnvironment(dir)) {
				return path
			}
		}
	}
	for _, name := range []string{"python3", "python"} {
		if s.hasProgram(name) {
			return name
		}
	}
	return "python3"
}

// isEnvironment reports whether a directory is a virtual environment.
func isEnvironment(dir string) bool {
	if filepath.Base(dir) == ".venv" || filepath.Base(dir) == "venv" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "pyvenv.cfg"))
	return err == nil
}

//go:embed packages.mjs
var packages []byte

// largestSettings is the size in bytes of the largest tsconfig.json that counts.
const largestSettings = 1 << 20

// FindTypeScript returns the command that runs a TypeScript file: the program, and the arguments
// before the file. It writes files to scratch, a directory of the caller, that keep
// the workspace's packages and settings out.
//
// The program is the tsx of the first of the packages that has one, otherwise that of
// Path, otherwise npx, which downloads it.
func (s Search) FindTypeScript(file, scratch string) (program string, args []string, err error) {
	guard := filepath.Join(scratch, "packages.mjs")
	config := filepath.Join(scratch, "tsconfig.json")
	rules, err := json.Marshal(struct {
		Denied  []string `json:"denied"`
		Allowed []string `json:"allowed"`
	}{resolveExistingPaths([]string{s.Workspace}), resolveExistingPaths(s.Packages)})
	if err != nil {
		return "", nil, err
	}
	text := append([]byte("const rules = "), rules...)
	text = append(append(text, ";\n"...), packages...)
	if err := os.WriteFile(guard, text, 0o600); err != nil {
		return "", nil, err
	}
	// The file's own settings count, unless they include those of another directory.
	if own, err := plainfile.Read(filepath.Join(filepath.Dir(file), "tsconfig.json"), largestSettings); err == nil && !bytes.Contains(own, []byte("extends")) {
		config = filepath.Join(filepath.Dir(file), "tsconfig.json")
	} else if err := os.WriteFile(config, []byte("{}\n"), 0o600); err != nil {
		return "", nil, err
	}
	args = []string{"--tsconfig", config, "--import", fileURL(guard)}
	for _, dir := range s.Packages {
		for _, name := range []string{"node_modules/.bin/tsx", ".bin/tsx"} {
			if path := filepath.Join(dir, filepath.FromSlash(name)); isProgram(path) {
				return path, args, nil
			}
		}
	}
	if s.hasProgram("tsx") {
		return "tsx", args, nil
	}
	// Without --prefix npx takes the program and its settings from the directory that it runs in.
	return "npx", append([]string{"--prefix", scratch, "tsx"}, args...), nil
}

// resolveExistingPaths returns paths with links followed, as Node sees them. It leaves out what does
// not exist.
func resolveExistingPaths(paths []string) []string {
	list := []string{}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if at, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, filepath.ToSlash(at))
		}
	}
	return list
}

// hasProgram reports whether Path contains a program.
func (s Search) hasProgram(name string) bool {
	for _, dir := range filepath.SplitList(s.Path) {
		if filepath.IsAbs(dir) && isProgram(filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}
