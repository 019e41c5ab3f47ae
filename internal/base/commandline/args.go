package commandline

import (
	"slices"
	"strings"
)

// Commands are the words that a command line may begin with. A test compares
// them with the commands.
var Commands = []string{
	"acp", "agents", "answer", "ask", "chaos", "chat", "check", "completion", "config", "dataset", "diff", "doctor", "eval", "events", "examples", "explain", "fmt", "graph", "help", "import", "inbox", "info", "init", "login", "logout", "lsp", "mcp", "memory",
	"models", "rag", "replay", "resume", "roles", "run", "runs", "sandbox", "schema", "serve", "shell", "store", "studio", "test", "tools", "triggers", "try", "update", "version", "wake", "watch", "workers", "__complete", "__completeNoDesc",
}

// TakesValue are the flags of run, and those of every command, whose next word is
// their value. A test compares them with the flags.
var TakesValue = []string{"-a", "--agent", "-m", "--model", "-f", "--file", "-s", "--session", "--mode", "--agent-variable", "--answer", "--output", "--color", "--progress", "--log-level", "--trace", "--user", "--max-cost", "--max-calls", "--max-tokens", "--deadline"}

// Synonyms are words that people try, with the commands that do what they mean.
var Synonyms = map[string]string{
	"ls": "runs ls, or: raddle agents ls", "list": "runs ls, or: raddle agents ls", "ps": "runs ls",
	"new": "agents new NAME", "create": "agents new NAME", "add": "agents new NAME, or: raddle agents add ADDRESS",
	"agents list": "agents ls", "agents create": "agents new NAME",
	"migrate": "runs migrate AGENT", "runs list": "runs ls", "runs delete": "runs rm RUN", "runs remove": "runs rm RUN", "runs log": "runs history RUN", "runs logs": "runs history RUN",
	"models list": "models ls", "tools list": "tools ls", "tools run": "tools call [AGENT] NAME [JSON]", "config list": "config explain", "config ls": "config explain", "config unset": "config edit",
	"server": "serve", "token": "serve token add NAME", "ui": "studio", "web": "studio",
	"setup": "init", "configure": "init", "install": "agents install, or raddle init", "auth": "login PROVIDER", "key": "login PROVIDER", "keys": "info",
	"repl": "chat", "sessions": "chat, and /sessions in it; raddle -c continues the last one", "exec": `run AGENT "PROMPT"`, "start": `run AGENT "PROMPT"`, "continue": "resume RUN", "why": "explain RUN", "emit": "events send NAME", "event": "events send NAME", "signal": "events send NAME", "retry": "resume RUN", "answers": "inbox",
	"show": "runs show RUN", "history": "runs history RUN", "log": "runs history RUN", "logs": "runs history RUN", "fork": "runs fork RUN", "blame": "runs blame RUN",
	"rm": "runs rm RUN", "cancel": "runs cancel RUN", "kill": "runs cancel RUN", "stop": "runs cancel RUN", "export": "runs export RUN", "share": "runs share RUN", "message": "runs message RUN TEXT", "say": "runs message RUN TEXT",
	"evaluate": "eval AGENT --data FILE", "evals": "eval AGENT --data FILE", "experiment": "eval AGENT --data FILE",
	"draw": "graph AGENT", "validate": "check AGENT", "lint": "check AGENT", "format": "fmt FILE", "status": "info", "settings": "config explain", "upgrade": "update", "self-update": "update", "self update": "update", "guide": "help", "docs": "help", "man": "help",
}

// FlagSynonyms are flags of Loki, Coyote, aichat and llm that raddle has not, without their dashes, with what to do
// instead.
var FlagSynonyms = map[string]string{
	"role": "raddle -r ROLE \"PROMPT\"; raddle roles ls", "r": "raddle -r ROLE \"PROMPT\"; raddle roles ls",
	"prompt": "create an agent for it: raddle agents new NAME", "macro": "an agent does this here: raddle AGENT \"PROMPT\"",
	"rag": "knowledge bases belong to agents: raddle help retrieval", "rebuild-rag": "raddle rag build AGENT",
	"execute": "raddle -e \"find large files\"", "e": "raddle -e \"find large files\"",
	"code": "ask for code alone in the question", "serve": "raddle serve", "acp-server": "raddle acp", "acp": "raddle acp",
	"list-models": "raddle models ls", "list-roles": "raddle roles ls", "list-sessions": "raddle chat, and /sessions in it",
	"list-rags": "raddle agents ls", "list-macros": "raddle agents ls", "list-tools": "raddle tools ls", "list-skills": "raddle chat AGENT, and /skills in it",
	"sync-models": "raddle models update", "update": "raddle models update", "empty-session": "raddle chat, and /new in it", "save-session": "every conversation is saved",
	"add-vault-secret": "raddle login PROVIDER", "get-vault-secret": "raddle info says where keys come from", "list-vault-secrets": "raddle info says where keys come from",
	"delete-vault-secret": "raddle logout PROVIDER", "authenticate": "raddle login PROVIDER", "tail-logs": "raddle watch last, or --log-level", "no-log": "runs are recorded; RADDLE_STORE=memory: keeps nothing",
	"dangerously-skip-permissions": "--mode box runs commands in a box without questions: raddle help permissions", "yolo": "--mode box runs commands in a box without questions: raddle help permissions",
	"p": "raddle \"QUESTION\" prints the answer and ends", "print": "raddle \"QUESTION\" prints the answer and ends", "resume": "raddle -c, or raddle resume RUN",
}

// RewriteArgs translates spellings of the reference tool. The name
// and the value of an agent variable become one word. -s without a name means the
// session that is not saved. A command line without a
// command but with -a AGENT becomes "run AGENT", or "info --agent AGENT" with
// --info, or "tools build AGENT" with --build-tools; these two also work without an agent. With -r ROLE it is the same,
// with the agent role:ROLE. -e becomes "shell".
func RewriteArgs(args []string) []string {
	args = nameSessions(joinVariables(args))
	at := -1
	value := ""
	word := false // the first word that is not a flag has been seen
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			i = len(args)
		case arg == "-e" || arg == "--execute":
			return append([]string{"shell"}, slices.Delete(slices.Clone(args), i, i+1)...)
		case (arg == "-r" || arg == "--role") && i+1 < len(args), (arg == "-a" || arg == "--agent") && i+1 < len(args):
			at = i
			if value = args[i+1]; arg == "-r" || arg == "--role" {
				value = "role:" + value
			}
			args = slices.Delete(slices.Clone(args), i, i+2)
			i = len(args)
		case strings.HasPrefix(arg, "--agent="):
			at = i
			value = strings.TrimPrefix(arg, "--agent=")
			args = slices.Delete(slices.Clone(args), i, i+1)
			i = len(args)
		case slices.Contains(TakesValue, arg):
			i++
		case !strings.HasPrefix(arg, "-") || arg == "-":
			if !word && slices.Contains(Commands, arg) {
				return args
			}
			word = true
		}
	}
	if at < 0 {
		if len(args) > 0 && args[0] == "--build-tools" {
			return append([]string{"tools", "build"}, args[1:]...)
		}
		if len(args) > 0 && args[0] == "--info" {
			return append([]string{"info"}, args[1:]...)
		}
		return args
	}
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	if build := slices.Index(args[:end], "--build-tools"); build >= 0 {
		return append([]string{"tools", "build", value}, slices.Delete(args, build, build+1)...)
	}
	if info := slices.Index(args[:end], "--info"); info >= 0 {
		return append([]string{"info", "--agent=" + value}, slices.Delete(args, info, info+1)...)
	}
	if strings.HasPrefix(value, "-") {
		value = "./" + value // an agent's name cannot begin like a flag, but a directory can
	}
	return append([]string{"run", value}, args...)
}

// joinVariables makes "--agent-variable NAME VALUE" one flag with one value.
func joinVariables(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return append(out, args[i:]...)
		case args[i] == "--agent-variable" && i+2 < len(args):
			out = append(out, "--agent-variable="+args[i+1]+"="+args[i+2])
			i += 2
		default:
			out = append(out, args[i])
		}
	}
	return out
}

// nameSessions changes -s without a name to the session that is not saved.
func nameSessions(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if (arg == "-s" || arg == "--session") && (i+1 == len(out) || strings.HasPrefix(out[i+1], "-")) {
			out[i] = "--session=temp"
		}
	}
	return out
}
