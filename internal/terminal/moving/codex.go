package moving

import (
	"path/filepath"
)

// readCodex reads Codex.
func readCodex(r *reader) {
	if t, ok := r.readTOML("config.toml"); ok {
		for _, key := range t.listKeys() {
			r.readCodexSetting(t, key)
		}
	}
	r.takeCommands("prompts")
	r.takeSkills("skills")
	r.takeInstructions("AGENTS.md")
	for _, path := range r.listFiles("rules", ".rules") {
		r.leaveThing(kindRule, filepath.Base(path), path, "it is a program that decides: write rules of raddle: raddle help permissions")
	}
	if n := len(r.listFiles("sessions", ".jsonl")); n > 0 {
		r.leaveThing(kindSession, "sessions", "sessions", "raddle cannot continue conversations of another program")
	}
}

// codexModes are the ways in which Codex asks, in the words of raddle.
var codexModes = map[string]string{"untrusted": "ask", "on-request": "edits", "on-failure": "edits"}

func (r *reader) readCodexSetting(t tree, key string) {
	switch key {
	case "mcp_servers":
		servers := t.getTable(key)
		for _, id := range servers.listKeys() {
			r.takeServer(t.path, id, codexServer(servers.getTable(id)), serverNames{on: "enabled", seconds: "tool_timeout_sec"})
		}
	case "model_providers":
		providers := t.getTable(key)
		for _, name := range providers.listKeys() {
			r.takeCodexProvider(name, providers.getTable(name))
		}
	case "model":
		client := t.getText("model_provider")
		if client == "" {
			client = "openai"
		}
		r.takeSetting(t.path, key, "model", client+":"+t.getText(key), "with the name of its client")
	case "model_provider", "tui", "history", "file_opener":
	case "approval_policy":
		mode := codexModes[t.getText(key)]
		if mode == "" {
			r.leaveThing(kindSetting, key+" "+t.getText(key), t.path, "raddle has no mode that allows everything; --mode box runs commands in a box without questions")
			return
		}
		r.takeSetting(t.path, key, "permission_mode", mode, "it is called "+mode)
	case "sandbox_mode":
		why := "commands run in raddle's box where one holds"
		if t.getText(key) == "danger-full-access" {
			why = "raddle has no mode that allows everything; --mode box runs commands in a box without questions"
		}
		r.leaveThing(kindSetting, key+" "+t.getText(key), t.path, why)
	case "profiles":
		for _, name := range t.getTable(key).listKeys() {
			r.leaveThing(kindSetting, "profiles."+name, t.path, "an agent has settings of its own: raddle agents new "+name)
		}
	case "notify", "hooks":
		r.leaveThing(kindHook, key, t.path, "a hook runs a program: write it as one of raddle's; raddle help hooks")
	case "projects":
		r.leaveThing(kindSetting, key, t.path, "raddle asks once for each project what it may bring")
	case "model_reasoning_effort":
		r.leaveThing(kindSetting, key, t.path, "write reasoning_effort in the config.yaml of an agent")
	default:
		r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
	}
}

// codexServer returns the fields of a server with references in place of the fields that name variables.
func codexServer(t tree) tree {
	values := map[string]any{}
	headers := map[string]any{}
	for _, key := range t.listKeys() {
		switch key {
		case "bearer_token_env_var":
			headers["Authorization"] = "Bearer ${" + t.getText(key) + "}"
		case "bearer_token":
			headers["Authorization"] = "Bearer " + t.getText(key)
		case "http_headers":
			for name, value := range t.getTexts(key) {
				headers[name] = value
			}
		case "env_http_headers":
			for name, variable := range t.getTexts(key) {
				headers[name] = "${" + variable + "}"
			}
		case "startup_timeout_sec", "startup_timeout_ms":
		default:
			values[key] = t.values[key]
		}
	}
	if len(headers) > 0 {
		values["headers"] = headers
	}
	t.values = values
	return t
}

// takeCodexProvider takes a provider of models.
func (r *reader) takeCodexProvider(name string, t tree) {
	c := newClient(name, t.path)
	c.setText("type", "openai-compatible")
	c.setText("api_base", t.getText("base_url"))
	if t.getText("base_url") == "" {
		r.leaveThing(kindClient, name, t.path, "it has no address")
		return
	}
	if variable := t.getText("env_key"); variable != "" {
		r.setKey(c, "${"+variable+"}")
	}
	if t.getText("wire_api") == "responses" {
		c.setText("wire", "responses")
	}
	if headers := t.getTexts("http_headers"); len(headers) > 0 {
		r.setHeaders(c, headers)
	}
	r.takeCompleted(c)
}
