package flow

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckContext is what the validator knows about the environment of a graph. With the
// zero value it checks only the file itself.
type CheckContext struct {
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

// scriptPath returns the full path of a script.
func (k CheckContext) scriptPath(script string) string {
	if filepath.IsAbs(script) {
		return script
	}
	return filepath.Join(k.Dir, script)
}

// lookAgent finds the directory of an agent: found reports whether it exists,
// defined whether it contains a definition.
func (k CheckContext) lookAgent(name string) (found, defined bool) {
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
		if fileExists(filepath.Join(path, "graph.yaml")) || fileExists(filepath.Join(path, "config.yaml")) {
			return true, true
		}
	}
	return found, false
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// builtinTools are the tools that every host of a graph offers.
var builtinTools = []string{
	"agent__check_inbox", "agent__send_message",
	"user__ask", "user__checkbox", "user__confirm", "user__input", "user__select",
}

// supervisorTools are additional tools of a graph that has an agent node.
var supervisorTools = []string{
	"agent__cancel", "agent__check", "agent__collect", "agent__list", "agent__list_available",
	"agent__list_running", "agent__reply_escalation", "agent__spawn", "agent__task_complete",
	"agent__task_create", "agent__task_fail", "agent__task_list",
}

// toolAliases are other names of built-in tools.
var toolAliases = map[string]string{"user__select": "user__ask", "agent__list_running": "agent__list"}

// toolExtensions are the extensions of files that declare a tool.
var toolExtensions = []string{".sh", ".py", ".ts", ".js"}

// toolStem returns the name of a tool without the extension of its file.
func toolStem(name string) string {
	for _, ext := range toolExtensions {
		if stem, ok := strings.CutSuffix(name, ext); ok && stem != "" {
			return stem
		}
	}
	return name
}

// toolNames returns the names that a whitelist may contain.
func (k CheckContext) toolNames(supervisor bool) map[string]bool {
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
