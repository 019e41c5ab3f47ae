package moving

import (
	"slices"
	"strings"

	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// opencodeTools are the tools of opencode, with those of raddle.
var opencodeTools = map[string]string{
	"read": "fs_read", "write": "fs_write", "edit": "fs_edit", "patch": "fs_patch", "glob": "fs_glob", "grep": "fs_grep", "list": "fs_ls", "bash": "execute_command",
	"webfetch": "fetch_url_via_curl", "websearch": "web_search", "todowrite": "", "todoread": "", "skill": "", "question": "",
}

// readOpencode reads opencode.
func readOpencode(r *reader) {
	for _, name := range []string{"opencode.json", "opencode.jsonc", "config.json"} {
		if t, ok := r.readJSON(name, largestText); ok {
			r.readOpencodeSettings(t)
		}
	}
	for _, dir := range []string{"agent", "agents"} {
		for _, path := range r.listFiles(dir, ".md") {
			r.takeMarkdownAgent(path, opencodeTools)
		}
	}
	r.takeCommands("command")
	r.takeCommands("commands")
	r.takeSkills("skill")
	r.takeSkills("skills")
	r.takeInstructions("AGENTS.md")
	for _, name := range []string{"plugin", "plugins", "tool", "tools"} {
		if r.hasFile(name) {
			r.leaveThing(kindOther, name, name, "it is a program for another program; write it as a tool: raddle help tools")
		}
	}
}

func (r *reader) readOpencodeSettings(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case "mcp":
			servers := t.getTable(key)
			for _, id := range servers.listKeys() {
				server := servers.getTable(id)
				if command := server.values["command"]; server.getText("type") == "local" {
					words, _ := command.([]any)
					if len(words) > 0 {
						server.values["command"] = words[0]
						server.values["args"] = words[1:]
					}
				}
				delete(server.values, "type")
				r.takeServer(t.path, id, server, serverNames{env: "environment", on: "enabled"})
			}
		case "provider":
			providers := t.getTable(key)
			for _, name := range providers.listKeys() {
				r.takeOpencodeProvider(name, providers.getTable(name))
			}
		case "model":
			provider, model, _ := strings.Cut(t.getText(key), "/")
			r.takeSetting(t.path, key, "model", provider+":"+model, "with a colon")
		case "agent":
			for _, name := range t.getTable(key).listKeys() {
				r.takeOpencodeAgent(name, t.getTable(key).getTable(name))
			}
		case "command":
			for _, name := range t.getTable(key).listKeys() {
				c := t.getTable(key).getTable(name)
				r.takeCommandText(name, t.path, c.getText("description"), c.getText("template"))
			}
		case "permission":
			r.takeOpencodePermissions(t.getTable(key))
		case "instructions":
			r.leaveThing(kindInstructions, key, t.path, "raddle reads AGENTS.md of the project; write the others into it")
		case "$schema", "theme", "keybinds", "tui", "autoupdate", "share", "username":
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// takeOpencodeProvider takes a provider of models that is compatible with OpenAI's.
func (r *reader) takeOpencodeProvider(name string, t tree) {
	options := t.getTable("options")
	c := newClient(name, t.path)
	c.setText("api_base", options.getText("baseURL"))
	switch known := config.FindProvider(name); {
	case options.getText("baseURL") != "":
		c.setText("type", "openai-compatible")
	case known != nil && slices.Contains(config.ClientTypes(), name):
		c.setText("type", name)
	default:
		r.leaveThing(kindClient, name, t.path, "it has no address; raddle knows "+strings.Join(config.ClientTypes(), ", "))
		return
	}
	r.setKey(c, options.getText("apiKey"))
	if headers := options.getTexts("headers"); len(headers) > 0 {
		r.setHeaders(c, headers)
	}
	r.setModelNames(c, t.getTable("models").listKeys())
	r.takeCompleted(c)
}

// takeOpencodeAgent takes an agent that the settings define.
func (r *reader) takeOpencodeAgent(name string, t tree) {
	if !isName(name) || t.getText("prompt") == "" || strings.HasPrefix(t.getText("prompt"), "{file:") {
		r.leaveThing(kindAgent, name, t.path, "it changes an agent of opencode, or its instructions are in another file")
		return
	}
	fields := []agentfile.Field{
		{Key: "name", Value: name},
		{Key: "description", Value: t.getText("description")},
		{Key: "global_tools", Value: allTools},
		{Key: "instructions", Value: t.getText("prompt")},
	}
	r.takeAgentFields(name, t.path, fields, []string{"it has the usual tools and your default model"})
}

// takeOpencodePermissions takes rules by tools and by commands.
func (r *reader) takeOpencodePermissions(t tree) {
	names := map[string]string{"edit": "Edit", "bash": "Bash", "webfetch": "WebFetch", "read": "Read"}
	for _, key := range t.listKeys() {
		tool := names[key]
		if _, isText := t.values[key].(string); isText {
			r.takeOpencodeRule(t, key, t.getText(key), tool)
			continue
		}
		patterns := t.getTable(key)
		for _, pattern := range patterns.listKeys() {
			if tool == "" || pattern == "*" {
				r.takeOpencodeRule(patterns, key+" "+pattern, patterns.getText(pattern), tool)
				continue
			}
			r.takeOpencodeRule(patterns, key+" "+pattern, patterns.getText(pattern), tool+"("+pattern+")")
		}
	}
}

func (r *reader) takeOpencodeRule(t tree, name, verdict, rule string) {
	isList := slices.Contains([]string{permission.ListAllow, permission.ListAsk, permission.ListDeny}, verdict)
	switch {
	case rule == "" || !isList:
		r.leaveThing(kindRule, name+": "+verdict, t.path, "raddle decides by what a call touches: raddle help permissions")
	case strings.HasSuffix(name, " *") && verdict != permission.ListDeny:
		r.leaveThing(kindRule, name+": "+verdict, t.path, "a rule for everything else is raddle's mode: raddle help permissions")
	default:
		r.takeRule(t.path, verdict, rule)
	}
}
