package spec

import (
	"strings"
)

// BuiltinTools are the tools that every host of a graph offers.
var BuiltinTools = []string{
	"agent__check_inbox", "agent__send_message",
	"user__ask", "user__checkbox", "user__confirm", "user__input", "user__select",
}

// SupervisorTools are additional tools of a graph that has an agent node.
var SupervisorTools = []string{
	"agent__cancel", "agent__check", "agent__collect", "agent__list", "agent__list_available",
	"agent__list_running", "agent__reply_escalation", "agent__spawn", "agent__task_complete",
	"agent__task_create", "agent__task_fail", "agent__task_list",
}

// ToolAliases are other names of built-in tools.
var ToolAliases = map[string]string{"user__select": "user__ask", "agent__list_running": "agent__list"}

// toolExtensions are the extensions of files that declare a tool.
var toolExtensions = []string{".sh", ".py", ".ts", ".js"}

// ToolStem returns the name of a tool without the extension of its file.
func ToolStem(name string) string {
	for _, ext := range toolExtensions {
		if stem, ok := strings.CutSuffix(name, ext); ok && stem != "" {
			return stem
		}
	}
	return name
}
