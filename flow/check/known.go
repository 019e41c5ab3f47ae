package check

import (
	"os"
	"path/filepath"
	"slices"

	"raddle.dev/flow/spec"
)

// Context is what the validator knows about the environment of a graph. With the
// zero value it checks only the file itself.
type Context struct {
	// Dir is the agent directory. If empty, scripts and agents are not checked.
	Dir string
	// AgentDirs are the directories in which agents are searched by name, in
	// this order; if empty, the parent of Dir.
	AgentDirs []string
	// Agent reports whether an agent exists that is not in a directory, such as
	// one that exists only in memory. If nil, there is none.
	Agent func(name string) bool

	// Workspace is the directory in which scripts run that do not run in Dir;
	// if empty, it is unknown.
	Workspace string
	// Unsaved are texts that count instead of the files at their paths.
	Unsaved map[string][]byte

	// Loaded says that an agent is loaded and the fields below are complete. If
	// not set, they are ignored and names are not checked.
	Loaded bool
	// Tools are the names of the declared tools, with or without the extension
	// of their file. Built-in tools are always known.
	Tools []string
	// Servers are the agent's MCP servers.
	Servers []string
	// Model reports whether a model is known; if nil, no model is known.
	Model func(id string) bool
	// ModelHint returns what to do about an unknown model, or ""; if nil, there
	// are no hints.
	ModelHint func(id string) string
	// Skills are the installed skills.
	Skills []string
	// VisibleSkills, if not nil, are the only skills that may be used.
	VisibleSkills []string
	// NoSkills says that skills are switched off for all agents.
	NoSkills bool
}

// FindAgent finds the directory of an agent: found reports whether it exists,
// defined whether it contains a definition.
func (k Context) FindAgent(name string) (found, defined bool) {
	if k.Agent != nil && k.Agent(name) {
		return true, true
	}
	dirs := k.AgentDirs
	if len(dirs) == 0 {
		dirs = []string{filepath.Dir(filepath.Clean(k.Dir))}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); name == "" || err != nil || !info.IsDir() {
			continue
		}
		found = true
		if FileExists(filepath.Join(path, "graph.yaml")) || FileExists(filepath.Join(path, "config.yaml")) {
			return true, true
		}
	}
	return found, false
}

// HasFile reports whether there is something at a path, or an unsaved text.
func (k Context) HasFile(path string) bool {
	_, ok := k.Unsaved[path]
	return ok || FileExists(path)
}

// FileExists reports whether there is a file or a directory at a path.
func FileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// toolNames returns the names that a whitelist may contain.
func (k Context) toolNames(supervisor bool) map[string]bool {
	names := map[string]bool{}
	for _, name := range slices.Concat(k.Tools, spec.BuiltinTools) {
		names[spec.ToolStem(name)] = true
	}
	if supervisor {
		for _, name := range spec.SupervisorTools {
			names[name] = true
		}
	}
	for _, server := range k.Servers {
		for _, meta := range []string{"mcp_invoke_", "mcp_search_", "mcp_describe_"} {
			names[meta+server] = true
		}
	}
	return names
}
