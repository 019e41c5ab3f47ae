package toolbox

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// sharedDir holds what several agents use, next to their directories.
const sharedDir = ".shared"

// codePaths returns the files and directories from which raddle itself runs code, or
// reads what decides about that: the user's configuration, the agents of the run
// with what their scripts name outside their directories, and the programs of
// servers. No tool may write there without permission.
func (tb *Toolbox) codePaths() []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	paths := []string{tb.shared.Dirs.Config, tb.shared.Dirs.Functions, tb.shared.Dirs.Agents, tb.shared.Dirs.Bundled}
	for _, dir := range slices.Sorted(maps.Keys(tb.agents)) {
		if tb.agents[dir] == nil {
			tb.agents[dir] = append([]string{dir, filepath.Join(filepath.Dir(dir), sharedDir)}, namedBeside(dir)...)
		}
		paths = append(paths, tb.agents[dir]...)
	}
	for _, path := range slices.Sorted(maps.Keys(tb.servers)) {
		for _, program := range tb.servers[path].ProgramPaths() {
			if config.IsFile(program) {
				paths = append(paths, program)
			}
		}
	}
	return paths
}

// outside matches a path in a script that leads out of the script's directory, and
// loads matches a line that may run what it names. A path that depends on the rest
// of the line, such as "cd ../src && make", does not count.
var (
	outside = pattern.CompileLater(`(?:\.\./)+[A-Za-z0-9_.@-]+(?:/[A-Za-z0-9_.@-]+)*`)
	loads   = pattern.CompileLater(`\b(source|import|require|from|exec|eval|BASH_SOURCE|__file__|dirname|bash|sh|python3?|node|tsx|npx|sys\.path)\b|^\s*\.\s|\$0`)
)

// largestScript is the size in bytes above which a script is not searched for paths.
const largestScript = 1 << 20

// namedBeside returns what the scripts of an agent load from outside its directory,
// such as a library in ../lib. It leaves out directories that contain the agent
// itself.
func namedBeside(dir string) (paths []string) {
	_, files, err := permission.Digest(dir)
	if err != nil {
		return nil
	}
	add := func(path string) {
		if !isBelow(dir, path) && !isBelow(path, dir) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, file := range files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		text, err := plainfile.Read(path, largestScript)
		if err != nil {
			continue
		}
		if up := filepath.Dir(dir); bytes.Contains(text, []byte("/utils/")) && filepath.Base(up) == "agents" {
			// in a collection laid out like llm-functions: see package script
			add(filepath.Join(filepath.Dir(up), "utils"))
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "../") || !loads().MatchString(line) {
				continue
			}
			for _, name := range outside().FindAllString(line, -1) {
				for _, from := range []string{filepath.Dir(path), dir} {
					at := filepath.Join(from, filepath.FromSlash(name))
					add(at)
					if filepath.Ext(at) != "" {
						add(filepath.Dir(at)) // what the file itself loads
					}
				}
			}
		}
	}
	return paths
}
