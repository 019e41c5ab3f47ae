package moving

import (
	"path/filepath"
	"strings"

	"raddle.dev/tool/permission"
)

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
	r.readDotenv()
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
