package chat

import (
	"slices"
	"strings"
	"testing"
)

// The dot commands of Loki and Coyote, and the commands of other programs, are never messages.
func TestWordsOfOtherPrograms(t *testing.T) {
	words := []string{
		".role coder", ".prompt be brief", ".info role", ".edit role", ".save role", ".exit role", ".session", ".empty session", ".compress session",
		".info session", ".edit session", ".save session", ".exit session", ".agent coder", ".starter 1", ".edit agent-config", ".info agent",
		".exit agent", ".rag docs", ".edit rag-docs", ".rebuild rag", ".sources rag", ".info rag", ".exit rag", ".macro daily", ".file a.txt",
		".continue", ".regenerate", ".copy", ".set temperature 0.2", ".delete role", ".edit config", ".exit", ".variable a b", ".vault list",
		".mcp enable a", ".skill load git", ".clear todo", ".undo", ".fork", ".redo", ".install agents", ".update", ".authenticate", ".reasoning high",
		".memory", ".usage", ".theme dark", ".list roles", ".edit mcp-config", ".todo", ".info tools", ".help", ".model", "/role x", "/clear", "/memory",
	}
	for _, line := range words {
		name, rest, ok := parseCommand(line)
		if !ok {
			t.Errorf("%s is a message", line)
			continue
		}
		if _, err := chooseCommand(name, rest); err != nil && strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, text := range []string{".env is missing", "...", ". and then", ".gitignore", ".roles are fine", "the .role of it", " .role", ".role\nand more"} {
		if _, _, ok := parseCommand(text); ok {
			t.Errorf("%q is a command", text)
		}
	}
}

// What follows a command is read or refused.
func TestArgumentsAreNeverIgnored(t *testing.T) {
	for line, want := range map[string]string{
		".edit config":      "raddle has no .edit config",
		".exit rag":         "raddle has no .exit rag",
		".info tools":       "raddle has no .info tools",
		"/info tools":       "raddle has no /info tools",
		".rag docs":         `/rag reads nothing after its name, and "docs" follows it`,
		"/undo 2":           "",
		".exit session":     "",
		".exit":             "",
		".compress session": "",
		"/continue please":  "/continue reads nothing",
	} {
		name, rest, _ := parseCommand(line)
		_, err := chooseCommand(name, rest)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// No word of another program hides a command of raddle.
func TestOtherWordsHideNothing(t *testing.T) {
	for _, c := range listCommands() {
		for _, name := range slices.Concat([]string{c.name}, c.also, c.dots) {
			if otherWords[name] != "" {
				t.Errorf("raddle has a command %s", name)
			}
		}
	}
}
