package moving

import (
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// readClaude reads Claude Code.
func readClaude(r *reader) {
	for _, name := range []string{"settings.json", "settings.local.json"} {
		if t, ok := r.readJSON(name, largestText); ok {
			r.readClaudeSettings(t)
		}
	}
	for _, path := range r.listFiles("agents", ".md") {
		r.takeMarkdownAgent(path, claudeTools)
	}
	r.takeCommands("commands")
	r.takeSkills("skills")
	r.takeInstructions("CLAUDE.md")
	for _, name := range r.listNames("projects") {
		dir := filepath.Join("projects", name)
		sessions := len(slices.DeleteFunc(r.listNames(dir), func(n string) bool { return !strings.HasSuffix(n, ".jsonl") }))
		if sessions > 0 {
			r.leaveThing(kindSession, name, dir, "raddle cannot continue conversations of another program")
		}
	}
	for _, name := range []string{"plugins", "output-styles", "statusline.sh", "keybindings.json"} {
		if r.hasFile(name) {
			r.leaveThing(kindOther, name, name, "raddle has no such thing")
		}
	}
}

// readBeside reads the servers of a file with data of Claude Code. Nothing else of it is looked at.
func (r *reader) readBeside(path string) {
	s := &source{program: r.program, root: filepath.Dir(path)}
	beside := &reader{source: s, dirs: r.dirs}
	if t, ok := beside.readJSON(filepath.Base(path), largestState); ok {
		servers := tree{source: s, path: t.path, values: map[string]any{"mcpServers": t.values["mcpServers"]}}
		beside.takeServers(servers, servers.getTable("mcpServers"), serverNames{})
		projects := tree{source: s, path: t.path, values: map[string]any{"projects": t.values["projects"]}}.getTable("projects")
		for _, dir := range projects.listKeys() {
			for _, id := range projects.getTable(dir).getTable("mcpServers").listKeys() {
				beside.leaveThing(kindServer, id, t.path, "it is a server of the project "+dir+": raddle mcp add --project")
			}
		}
	}
	for _, t := range s.things {
		t.From = filepath.Join("..", t.From)
		r.things = append(r.things, t)
	}
}

// claudeModes are the permission modes of Claude Code that raddle has.
var claudeModes = map[string]string{"default": "ask", "acceptEdits": "edits", "plan": "plan"}

// readClaudeSettings reads a file of settings.
func (r *reader) readClaudeSettings(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case "permissions":
			r.readClaudePermissions(t.getTable(key))
		case "hooks":
			for _, event := range t.getTable(key).listKeys() {
				r.leaveThing(kindHook, event, t.path, "a hook runs a program: write it as one of raddle's; raddle help hooks")
			}
		case "env":
			names := t.getTable(key).listKeys()
			r.leaveThing(kindKey, "env", t.path, "values are not copied; set "+strings.Join(names, ", ")+" in your environment, or in .env in raddle's directory")
		case "apiKeyHelper":
			c := newClient("anthropic", t.path)
			c.setText("type", "anthropic")
			c.fields["api_key_command"] = []string{"sh", "-c", t.getText(key)}
			c.addNote("its key comes from the same command")
			r.takeCompleted(c)
		case "model":
			r.leaveThing(kindSetting, key, t.path, "names of models are different: raddle config set model anthropic:MODEL; raddle models ls anthropic")
		case "enableAllProjectMcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers":
			r.leaveThing(kindSetting, key, t.path, "raddle asks once for the servers of each project")
		case "$schema":
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// readClaudePermissions reads the rules about calls.
func (r *reader) readClaudePermissions(t tree) {
	for _, key := range t.listKeys() {
		switch key {
		case permission.ListAllow, permission.ListAsk, permission.ListDeny:
			for _, rule := range t.getList(key) {
				r.takeRule(t.path, key, rule)
			}
		case "defaultMode":
			mode := t.getText(key)
			if claudeModes[mode] == "" {
				r.leaveThing(kindSetting, key+" "+mode, t.path, "raddle has no mode that allows everything; --mode box runs commands in a box without questions")
				continue
			}
			r.takeSetting(t.path, key, "permission_mode", claudeModes[mode], "it is called "+claudeModes[mode])
		case "additionalDirectories":
			r.leaveThing(kindSetting, key, t.path, "start raddle in the directory above, or write rules: any write(/DIR/**)")
		default:
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		}
	}
}

// claudeTools are the tools of Claude Code, with those of raddle; "": raddle does the same without a tool.
var claudeTools = map[string]string{
	"Read": "fs_read", "Write": "fs_write", "Edit": "fs_edit", "MultiEdit": "fs_edit", "Glob": "fs_glob", "Grep": "fs_grep", "LS": "fs_ls",
	"Bash": "execute_command", "BashOutput": "command_output", "KillShell": "command_stop",
	"WebFetch": "fetch_url_via_curl", "WebSearch": "web_search", "TodoWrite": "", "TodoRead": "", "AskUserQuestion": "", "ExitPlanMode": "", "Skill": "", "SlashCommand": "",
}

// allTools are the tools of an agent whose file names none: it has all of them there.
var allTools = []string{"fs_read", "fs_ls", "fs_glob", "fs_grep", "fs_write", "fs_edit", "execute_command", "fetch_url_via_curl"}

// takeMarkdownAgent takes an agent of one Markdown file.
func (r *reader) takeMarkdownAgent(path string, known map[string]string) {
	text, ok := r.readText(path, largestText)
	if !ok {
		return
	}
	m := agentfile.ReadMarkdown(text)
	name := m.FindText("name")
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if !isName(name) || m.Body == "" {
		r.leaveThing(kindAgent, name, path, "it has no instructions, or a name that a directory cannot have")
		return
	}
	var notes []string
	tools := slices.Clone(allTools)
	var servers []string
	spawns := false
	if names, listed := m.ListNames("tools"); listed {
		tools, servers, spawns, notes = translateTools(names, known)
	}
	tools = slices.DeleteFunc(tools, func(tool string) bool { return slices.Contains(listDenied(m, known), tool) })
	if model := m.FindText("model"); model != "" && model != "inherit" {
		notes = append(notes, "the model "+model+" is left out: it uses your default model, or the one that you write into it")
	}
	var ignored []string
	for key := range m.Head {
		if !slices.Contains([]string{"name", "description", "tools", "disallowedTools", "permission", "model", "color", "mode", "temperature"}, key) {
			ignored = append(ignored, key)
		}
	}
	if slices.Sort(ignored); len(ignored) > 0 {
		notes = append(notes, strings.Join(ignored, ", ")+" has no effect here")
	}
	fields := []agentfile.Field{{Key: "name", Value: name}, {Key: "description", Value: m.FindText("description")}, {Key: "temperature", Value: m.Head["temperature"]}}
	fields = append(fields, agentfile.Field{Key: "global_tools", Value: tools}, agentfile.Field{Key: "mcp_servers", Value: servers})
	if spawns {
		fields = append(fields, agentfile.Field{Key: "can_spawn_agents", Value: true})
	}
	fields = append(fields, agentfile.Field{Key: "inject_project_instructions", Value: true}, agentfile.Field{Key: "instructions", Value: m.Body})
	r.takeAgentFields(name, path, fields, notes)
}

// listDenied returns the tools of raddle that an agent's head takes away from it.
func listDenied(m agentfile.Markdown, known map[string]string) (tools []string) {
	names, _ := m.ListNames("disallowedTools")
	for _, table := range []string{"tools", "permission"} {
		values, _ := m.Head[table].(map[string]any)
		for name, value := range values {
			if on, isFlag := value.(bool); isFlag && !on || value == "deny" {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		name, _, _ = strings.Cut(name, "(")
		tools = append(tools, known[name])
		if name == "edit" || name == "Edit" || name == "write" || name == "Write" {
			tools = append(tools, "fs_write", "fs_edit", "fs_patch")
		}
	}
	return tools
}

// takeAgentFields takes an agent whose config.yaml has some fields.
func (r *reader) takeAgentFields(name, from string, fields []agentfile.Field, notes []string) {
	text, err := agentfile.WriteConfig(fields...)
	if err != nil {
		r.leaveThing(kindAgent, name, from, err.Error())
		return
	}
	if note := noteBundled(name); note != "" {
		notes = append(notes, note)
	}
	to := r.makePath("agents", name)
	why := strings.Join(append([]string{"it becomes a directory with a " + config.FileName}, notes...), "; ")
	r.takeThing(kindAgent, name, from, to, filesPart{dir: to, files: []copied{{path: config.FileName, text: text, mode: 0o600}}}, why)
}

// translateTools returns the tools of raddle for those of another program, and the servers whose tools are among them.
func translateTools(names []string, known map[string]string) (tools, servers []string, spawns bool, notes []string) {
	var unknown []string
	for _, name := range names {
		name, _, _ = strings.Cut(name, "(")
		own, isKnown := known[name]
		server, isServer := strings.CutPrefix(name, "mcp__")
		server, _, _ = strings.Cut(server, "__")
		switch {
		case name == "Task" || name == "Agent":
			spawns = true
		case isServer:
			if !slices.Contains(servers, server) {
				servers = append(servers, server)
			}
		case !isKnown:
			unknown = append(unknown, name)
		case own != "" && !slices.Contains(tools, own):
			tools = append(tools, own)
		}
	}
	if len(unknown) > 0 {
		notes = append(notes, "without the tools "+strings.Join(unknown, ", ")+", which raddle has not")
	}
	return tools, servers, spawns, notes
}

// takeInstructions takes a file of instructions for all projects as a skill; those of a project are read where they
// are.
func (r *reader) takeInstructions(name string) {
	if text, ok := r.readText(name, largestText); ok && strings.TrimSpace(string(text)) != "" {
		r.takeNotes(kindInstructions, r.program+"-instructions", name, "Instructions of the user for all work, from "+r.program+". Load it before you begin.", text)
	}
}

// takeCommands takes the commands of a directory, which are Markdown files. A file below another directory gets that
// name as well.
func (r *reader) takeCommands(dir string) {
	for _, path := range r.listFiles(dir, ".md") {
		text, ok := r.readText(path, largestText)
		if !ok {
			continue
		}
		rel, _ := filepath.Rel(dir, path)
		r.takeCommand(strings.TrimSuffix(filepath.ToSlash(rel), ".md"), path, text)
	}
}

// takeCommand takes a command. name may have slashes, which become dashes.
func (r *reader) takeCommand(name, from string, text []byte) {
	name = strings.ReplaceAll(name, "/", "-")
	if !isName(name) || strings.ContainsAny(name, " .") {
		r.leaveThing(kindCommand, name, from, "the name cannot be that of a command: rename the file")
		return
	}
	m := agentfile.ReadMarkdown(text)
	var notes []string
	if strings.Contains(m.Body, "!`") || strings.Contains(m.Body, "!{") {
		notes = append(notes, "programs in it are not run before: the model reads them as text, and may run them, with your permission")
	}
	if m.Head["allowed-tools"] != nil {
		notes = append(notes, "allowed-tools allows nothing here")
	}
	if strings.Contains(name, "-") && strings.Contains(from, string(filepath.Separator)) && !strings.Contains(filepath.Base(from), name) {
		notes = append(notes, "it is called "+name)
	}
	r.takeFile(kindCommand, name, from, r.makePath("commands", name+".md"), text, strings.Join(notes, "; "))
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

// readDotenv names the variables of the file .env, whose values may be secrets.
func (r *reader) readDotenv() {
	text, ok := r.readText(".env", largestText)
	if !ok {
		return
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		name, _, assigned := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if assigned && !strings.HasPrefix(name, "#") && isName(name) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	r.leaveThing(kindKey, ".env", ".env", "values are not copied; set "+strings.Join(names, ", ")+", or write a .env in raddle's directory")
}
