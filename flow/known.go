package flow

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Known is what the validator may know about the surroundings of a graph. With
// the zero value nothing is known and only the file itself is checked.
type Known struct {
	// Dir is the agent directory. With an empty one, neither scripts nor
	// agents are looked for.
	Dir string
	// AgentDirs are where agents are looked for by name, the first first;
	// empty: the parent of Dir.
	AgentDirs []string
	// Agent answers for an agent that is not looked for in directories, such
	// as one that exists only in memory. Nil: none.
	Agent func(name string) bool

	// Workspace is the directory in which scripts run that do not run in Dir; empty:
	// it is not known.
	Workspace string

	// Loaded says that an agent is loaded and the fields below are complete.
	// Without it, they are not looked at and names are taken on trust.
	Loaded bool
	// Tools are the names of the declared tools, with or without the
	// extension of their file; built-in tools need not be listed.
	Tools []string
	// Servers are the agent's MCP servers.
	Servers []string
	// Model reports whether a model is known; nil: none is.
	Model func(id string) bool
	// ModelHint returns what to do about a model that is not known, or ""; nil: nothing.
	ModelHint func(id string) string
	// Skills are the installed skills.
	Skills []string
	// VisibleSkills, when not nil, are the only ones that may be used.
	VisibleSkills []string
	// NoSkills says that skills are switched off for all agents.
	NoSkills bool
}

// scriptPath is the full path of a script.
func (k Known) scriptPath(script string) string {
	if filepath.IsAbs(script) {
		return script
	}
	return filepath.Join(k.Dir, script)
}

// lookAgent finds the directory of an agent: whether it exists and whether it
// holds a definition.
func (k Known) lookAgent(name string) (found, defined bool) {
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
		if exists(filepath.Join(path, "graph.yaml")) || exists(filepath.Join(path, "config.yaml")) {
			return true, true
		}
	}
	return found, false
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// builtinTools are the tools that every host of a graph offers.
var builtinTools = []string{
	"agent__check_inbox", "agent__send_message",
	"user__ask", "user__checkbox", "user__confirm", "user__input", "user__select",
}

// supervisorTools come in addition for a graph that has an agent node.
var supervisorTools = []string{
	"agent__cancel", "agent__check", "agent__collect", "agent__list", "agent__list_available",
	"agent__list_running", "agent__reply_escalation", "agent__spawn", "agent__task_complete",
	"agent__task_create", "agent__task_fail", "agent__task_list",
}

// toolAliases are further names of built-in tools.
var toolAliases = map[string]string{"user__select": "user__ask", "agent__list_running": "agent__list"}

// toolExtensions are the extensions of files that declare a tool.
var toolExtensions = []string{".sh", ".py", ".ts", ".js"}

// toolStem is the name of a tool without the extension of its file.
func toolStem(name string) string {
	for _, ext := range toolExtensions {
		if stem, ok := strings.CutSuffix(name, ext); ok && stem != "" {
			return stem
		}
	}
	return name
}

// toolNames is the set of names that a whitelist may have.
func (k Known) toolNames(supervisor bool) map[string]bool {
	names := map[string]bool{}
	for _, name := range slices.Concat(k.Tools, builtinTools) {
		names[toolStem(name)] = true
	}
	if supervisor {
		for _, name := range supervisorTools {
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
