package chat

import (
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
)

// The commands that several words of other programs mean.
const (
	nextAgents  = "an agent does this here: /agent lists them; raddle agents new NAME creates one"
	nextRoles   = "a role is a file: roles/NAME.md next to config.yaml; raddle roles ls"
	nextKeys    = "raddle login PROVIDER stores a key"
	nextUndo    = "/undo takes messages back, /rewind also files, /new starts an empty conversation"
	nextSession = "/sessions lists conversations, /name gives this one a name; all are saved"
	nextConfig  = "raddle config edit"
	nextEffort  = "reasoning_effort in the config.yaml of an agent"
)

// otherWords are the commands of Loki, Coyote, aichat, Claude Code, gemini-cli and Codex that raddle has not, without
// their dot or slash, with what to do instead. A command of two words counts before that of its first one, also if
// raddle has that one.
var otherWords = map[string]string{
	"add-dir":           "start raddle in the directory above; raddle help permissions",
	"agents":            "/agent",
	"authenticate":      nextKeys + "; raddle mcp login NAME logs in to a server",
	"bug":               "raddle doctor says what is wrong, and raddle runs export RUN makes a file for a report",
	"chat":              nextSession,
	"clear session":     nextUndo,
	"clear todo":        "the agent keeps its list: ask it to empty it; /todo shows it",
	"config":            nextConfig,
	"delete":            "raddle runs rm RUN removes a conversation; files are yours to remove",
	"directory":         "start raddle in the directory above; raddle help permissions",
	"doctor":            "raddle doctor",
	"edit agent-config": "change the agent's config.yaml: raddle agents show NAME says where it is",
	"edit config":       nextConfig,
	"edit macro":        "a macro is a file: macros/NAME.yaml next to config.yaml",
	"edit mcp-config":   "raddle mcp add, ls, rm",
	"edit rag-docs":     "change documents in the agent's config.yaml, and then: raddle rag build AGENT",
	"edit role":         nextRoles,
	"edit session":      "/edit without a word chooses an earlier message",
	"effort":            nextEffort,
	"empty":             nextUndo,
	"exit rag":          "knowledge bases belong to agents: /agent changes to another one",
	"exit role":         "/agent and /role change to another one",
	"hooks":             "raddle help hooks",
	"info agent":        "/info, /tools, /variables; raddle agents show NAME",
	"info rag":          "/rag",
	"info role":         "raddle roles show NAME",
	"info tools":        "/tools",
	"init":              "ask the agent to write an AGENTS.md",
	"list":              "/sessions, /agent, /skills, /tools, /runs",
	"login":             nextKeys,
	"logout":            "raddle logout PROVIDER",
	"mcp disable":       "change mcp_servers in the agent's config.yaml; /mcp lists them",
	"mcp enable":        "change mcp_servers in the agent's config.yaml; /mcp lists them",
	"memory":            "raddle memory ls; an AGENTS.md holds instructions for a project",
	"output-style":      "change the instructions of an agent: raddle agents copy assistant",
	"plan":              "/mode plan",
	"prelude":           "name the agent: raddle chat AGENT",
	"prompt":            "write it in your message, or create an agent: raddle agents new NAME",
	"reasoning":         nextEffort,
	"rebuild":           "raddle rag build AGENT",
	"resume":            "/sessions lists conversations, and continues one",
	"review":            "/run code-reviewer \"Review my changes\"",
	"save role":         nextRoles,
	"save session":      nextSession,
	"skill":             "the agent loads skills when it needs them; /skills lists them",
	"sources":           "answers name their sources; /rag shows the knowledge base",
	"stats":             "/cost",
	"status":            "/info",
	"thinking":          nextEffort,
	"update":            "raddle models update reads newer models",
	"usage":             "/cost",
	"use":               "/model or /agent",
	"vault":             nextKeys + "; values of config.yaml can name variables, as ${NAME}",
	"vim":               "there are no vim keys; Ctrl-G edits the text in $EDITOR",
}

// findOther returns what to do instead of a command of another program: by its first two words, or by its first one.
func findOther(name, rest string) string {
	word := strings.TrimPrefix(name, ".")
	first, _, _ := strings.Cut(rest, " ")
	if next := otherWords[word+" "+first]; next != "" && first != "" {
		return next
	}
	return otherWords[word]
}

// chooseCommand returns the command of a line. What follows its name must be something that it reads: nothing is
// ignored.
func chooseCommand(name, rest string) (*command, error) {
	shown := strings.TrimSpace(name + " " + rest)
	if !strings.HasPrefix(name, ".") {
		shown = "/" + shown
	}
	if next := findOther(name, rest); next != "" {
		return nil, failure.NewUsage(next, "raddle has no %s", shown)
	}
	c, err := findCommand(name)
	if err == nil && c.args == "" && rest != "" && !slices.Contains(c.accepts, rest) {
		return nil, failure.NewUsage("write /"+c.name+" alone; a message does not begin with a slash", "/%s reads nothing after its name, and %q follows it", c.name, rest)
	}
	return c, err
}
