package moving

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
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

// setHeaders sets headers of every request of a client, without secrets.
func (r *reader) setHeaders(c *client, headers map[string]string) {
	h := &secretHider{server: c.name}
	own := map[string]any{}
	for name, value := range h.hideTable(headers) {
		own[name] = value
	}
	c.fields["extra_headers"] = own
	if len(h.variables) > 0 {
		c.addNote("set " + strings.Join(h.variables, ", ") + ": secrets are not copied")
	}
}

// geminiTools are the tools of gemini-cli, with those of raddle.
var geminiTools = map[string]string{
	"read_file": "fs_read", "read_many_files": "fs_read", "write_file": "fs_write", "replace": "fs_edit", "list_directory": "fs_ls", "glob": "fs_glob",
	"grep_search": "fs_grep", "search_file_content": "fs_grep", "run_shell_command": "execute_command", "web_fetch": "fetch_url_via_curl", "google_web_search": "web_search",
	"write_todos": "", "ask_user": "", "activate_skill": "",
}

// readGemini reads gemini-cli.
func readGemini(r *reader) {
	if t, ok := r.readJSON("settings.json", largestText); ok {
		r.readGeminiSettings(t)
	}
	for _, path := range r.listFiles("commands", ".toml") {
		r.takeTOMLCommand(path)
	}
	for _, path := range r.listFiles("agents", ".md") {
		r.takeMarkdownAgent(path, geminiTools)
	}
	r.takeSkills("skills")
	r.takeInstructions("GEMINI.md")
	r.readLokiEnv()
	for _, path := range r.listFiles("policies", ".toml") {
		r.leaveThing(kindRule, filepath.Base(path), path, "write rules of raddle: raddle help permissions")
	}
	for _, name := range r.listNames("extensions") {
		if r.isDir(filepath.Join("extensions", name)) {
			r.leaveThing(kindOther, "extension "+name, filepath.Join("extensions", name), "raddle has no extensions; its server can be added: raddle mcp add")
		}
	}
	if r.hasFile("tmp") {
		r.leaveThing(kindSession, "tmp", "tmp", "raddle cannot continue conversations of another program")
	}
}

func (r *reader) readGeminiSettings(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case "mcpServers":
			servers := t.getTable(key)
			for _, id := range servers.listKeys() {
				server := servers.getTable(id)
				if address := server.getText("httpUrl"); address != "" {
					server.values["url"] = address
				} else if server.hasKey("url") && !server.hasKey("type") {
					server.values["type"] = "sse"
				}
				r.takeServer(t.path, id, server, serverNames{})
			}
		case "model":
			name := ""
			if _, isText := t.values[key].(string); isText {
				name = t.getText(key)
			} else {
				name = t.getTable(key).getText("name")
			}
			if name != "" {
				r.takeSetting(t.path, key, "model", "gemini:"+name, "with the name of its client")
			}
		case "tools":
			r.takeGeminiTools(t.getTable(key), "exclude", "allowed")
		case "excludeTools", "allowedTools":
			r.takeGeminiTools(t, "excludeTools", "allowedTools")
		case "hooks":
			r.leaveThing(kindHook, key, t.path, "a hook runs a program: write it as one of raddle's; raddle help hooks")
		case "ui", "general", "security", "privacy", "telemetry", "theme", "ide", "$schema", "selectedAuthType", "output":
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// takeGeminiTools takes the lists of tools that are left out, and of calls that run without a question.
func (r *reader) takeGeminiTools(t tree, exclude, allow string) {
	for _, list := range []string{permission.ListDeny, permission.ListAllow} {
		key := exclude
		if list == permission.ListAllow {
			key = allow
		}
		for _, name := range t.getList(key) {
			tool, inner, hasInner := strings.Cut(name, "(")
			switch own := geminiTools[tool]; {
			case tool == "run_shell_command" || tool == "ShellTool":
				rule := "Bash"
				if hasInner {
					rule = "Bash(" + strings.TrimSuffix(inner, ")") + ":*)"
				}
				r.takeRule(t.path, list, rule)
			case own == "" || list == permission.ListAllow:
				r.leaveThing(kindRule, list+" "+name, t.path, "raddle decides by what a call touches, not by the tool: raddle help permissions")
			default:
				to := "permissions.yaml: " + list + " " + own
				r.takeThing(kindRule, list+" "+name, t.path, to, rulePart{list: list, rules: []string{own}}, "the tool is called "+own)
			}
		}
	}
}

// takeTOMLCommand takes a command that is a table of TOML.
func (r *reader) takeTOMLCommand(path string) {
	t, ok := r.readTOML(path)
	if !ok {
		return
	}
	rel, _ := filepath.Rel("commands", path)
	name := strings.TrimSuffix(filepath.ToSlash(rel), ".toml")
	prompt := t.getText("prompt")
	if prompt == "" {
		r.leaveThing(kindCommand, name, path, "it has no prompt")
		return
	}
	r.takeCommandText(name, path, t.getText("description"), strings.ReplaceAll(prompt, "{{args}}", "$ARGUMENTS"))
}

// takeCommandText takes a command that is written in another form.
func (r *reader) takeCommandText(name, from, description, prompt string) {
	var head strings.Builder
	if description != "" {
		text, err := agentfile.WriteConfig(agentfile.Field{Key: "description", Value: strings.Join(strings.Fields(description), " ")})
		if err == nil {
			head.WriteString("---\n" + string(text) + "---\n\n")
		}
	}
	r.takeCommand(name, from, []byte(head.String()+strings.TrimSpace(prompt)+"\n"))
}

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

// setModelNames sets the models of a client by their names.
func (r *reader) setModelNames(c *client, names []string) {
	if c.fields["type"] == "openai-compatible" && len(names) > 0 {
		var models []any
		for _, name := range names {
			models = append(models, map[string]any{"name": name})
		}
		c.fields["models"] = models
	}
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

// readCrush reads crush.
func readCrush(r *reader) {
	for _, name := range []string{"crush.json", ".crush.json"} {
		if t, ok := r.readJSON(name, largestText); ok {
			r.readCrushSettings(t)
		}
	}
	r.takeCommands("commands")
	r.takeSkills("skills")
	r.takeInstructions("CRUSH.md")
}

func (r *reader) readCrushSettings(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case "mcp":
			r.takeServers(t, t.getTable(key), serverNames{off: "disabled", seconds: "timeout"})
		case "providers":
			for _, name := range t.getTable(key).listKeys() {
				r.takeCrushProvider(name, t.getTable(key).getTable(name))
			}
		case "models":
			if large := t.getTable(key).getTable("large"); large.getText("model") != "" {
				r.takeSetting(t.path, "models.large", "model", large.getText("provider")+":"+large.getText("model"), "the large model is the model")
			}
		case "permissions":
			for _, name := range t.getTable(key).getList("allowed_tools") {
				r.leaveThing(kindRule, "allow "+name, t.path, "raddle decides by what a call touches, not by the tool: raddle help permissions")
			}
		case "hooks":
			r.leaveThing(kindHook, key, t.path, "a hook runs a program: write it as one of raddle's; raddle help hooks")
		case "$schema", "lsp", "options":
			if key != "$schema" {
				r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
			}
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// takeCrushProvider takes a provider of models.
func (r *reader) takeCrushProvider(name string, t tree) {
	if t.getFlag("disable") {
		r.leaveThing(kindClient, name, t.path, "it is switched off")
		return
	}
	kinds := map[string]string{"openai": "openai", "openai-compat": "openai-compatible", "anthropic": "anthropic", "gemini": "gemini", "": "openai-compatible"}
	kind, known := kinds[t.getText("type")]
	if !known || kind == "openai-compatible" && t.getText("base_url") == "" {
		r.leaveThing(kindClient, name, t.path, "raddle has no type of clients "+t.getText("type")+", or it has no address")
		return
	}
	c := newClient(name, t.path)
	c.setText("type", kind)
	c.setText("api_base", t.getText("base_url"))
	r.setKey(c, t.getText("api_key"))
	if headers := t.getTexts("extra_headers"); len(headers) > 0 {
		r.setHeaders(c, headers)
	}
	addFields(c.fields, "extra_body", t.getTable("extra_body").values)
	var names []string
	for _, model := range t.getTables("models") {
		if id := model.getText("id"); id != "" {
			names = append(names, id)
		}
	}
	r.setModelNames(c, names)
	r.takeCompleted(c)
}

// readGoose reads goose.
func readGoose(r *reader) {
	if t, ok := r.readYAML("config.yaml"); ok {
		r.readGooseConfig(t)
	}
	if t, ok := r.readYAML("permission.yaml"); ok {
		for _, group := range t.listKeys() {
			for _, list := range t.getTable(group).listKeys() {
				for _, name := range t.getTable(group).getList(list) {
					r.leaveThing(kindRule, list+" "+name, t.path, "raddle decides by what a call touches, not by the tool: raddle help permissions")
				}
			}
		}
	}
	for _, path := range r.listFiles("recipes", ".yaml") {
		r.takeRecipe(path)
	}
	r.takeSkills("skills")
	r.takeInstructions(".goosehints")
}

func (r *reader) readGooseConfig(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case "extensions":
			for _, id := range t.getTable(key).listKeys() {
				r.takeExtension(t.path, id, t.getTable(key).getTable(id))
			}
		case "GOOSE_MODEL":
			if provider := t.getText("GOOSE_PROVIDER"); config.FindProvider(provider) != nil {
				r.takeSetting(t.path, key, "model", provider+":"+t.getText(key), "with the name of its client")
			} else {
				r.leaveThing(kindSetting, key, t.path, "raddle has no provider "+t.getText("GOOSE_PROVIDER"))
			}
		case "GOOSE_PROVIDER":
		case "GOOSE_MODE":
			modes := map[string]string{"approve": "ask", "smart_approve": "edits", "chat": "plan"}
			if mode := modes[t.getText(key)]; mode != "" {
				r.takeSetting(t.path, key, "permission_mode", mode, "it is called "+mode)
			} else {
				r.leaveThing(kindSetting, key+" "+t.getText(key), t.path, "raddle has no mode that allows everything; --mode box runs commands in a box without questions")
			}
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// takeExtension takes an extension, which is a server unless goose has it itself.
func (r *reader) takeExtension(from, id string, t tree) {
	switch t.getText("type") {
	case "builtin", "platform", "frontend", "inline_python":
		r.leaveThing(kindServer, id, from, "it is a part of goose; raddle has tools of its own: raddle help builtin-tools")
		return
	case "streamable_http":
		t.values["type"] = "http"
	}
	envs := t.getTexts("envs")
	for _, name := range t.getList("env_keys") {
		if envs[name] == "" {
			envs[name] = "${" + name + "}"
		}
	}
	values := map[string]any{}
	for name, value := range envs {
		values[name] = value
	}
	if len(values) > 0 {
		t.values["envs"] = values
	}
	delete(t.values, "env_keys")
	delete(t.values, "bundled")
	r.takeServer(from, id, t, serverNames{command: "cmd", env: "envs", url: "uri", on: "enabled", seconds: "timeout"})
}

// takeRecipe takes a recipe as an agent: its parameters are variables, and its prompt is one to begin with.
func (r *reader) takeRecipe(path string) {
	t, ok := r.readYAML(path)
	if !ok {
		return
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	instructions := t.getText("instructions")
	if instructions == "" {
		instructions = t.getText("prompt")
	}
	if !isName(name) || instructions == "" {
		r.leaveThing(kindAgent, name, path, "it has no instructions")
		return
	}
	fields := []agentfile.Field{{Key: "name", Value: name}, {Key: "description", Value: t.getText("description")}}
	var variables []any
	for _, p := range t.getTables("parameters") {
		variable := map[string]any{"name": p.getText("key"), "description": p.getText("description")}
		if p.hasKey("default") {
			variable["default"] = p.getText("default")
		}
		instructions = fillSpaces(instructions, p.getText("key"))
		variables = append(variables, variable)
	}
	if len(variables) > 0 {
		fields = append(fields, agentfile.Field{Key: "variables", Value: variables})
	}
	fields = append(fields, agentfile.Field{Key: "global_tools", Value: allTools}, agentfile.Field{Key: "instructions", Value: instructions})
	if prompt := t.getText("prompt"); prompt != "" && t.getText("instructions") != "" {
		fields = append(fields, agentfile.Field{Key: "conversation_starters", Value: []string{prompt}})
	}
	var notes []string
	for _, key := range []string{"extensions", "sub_recipes", "settings", "retry", "response"} {
		if t.hasKey(key) {
			notes = append(notes, key+" has no effect here")
		}
	}
	r.takeAgentFields(name, path, fields, notes)
}

// fillSpaces writes the placeholder of a variable as raddle does, without spaces.
func fillSpaces(text, name string) string {
	return strings.ReplaceAll(text, "{{ "+name+" }}", "{{"+name+"}}")
}
