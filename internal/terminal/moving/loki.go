package moving

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/process/bundle"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/builtin"
)

// readLoki reads Loki, its successor Coyote, and aichat, from which both come.
func readLoki(r *reader) {
	groups := map[string]string{}
	if t, ok := r.readYAML("config.yaml"); ok {
		groups = t.getTexts("mapping_tools")
		r.readLokiConfig(t)
	}
	r.readDotenv()
	r.readLokiAgents(groups)
	for _, path := range r.listFiles("roles", ".md") {
		r.takeRole(path, groups)
	}
	for _, path := range r.listFiles("macros", ".yaml") {
		if text, ok := r.readText(path, largestText); ok {
			name := strings.TrimSuffix(filepath.Base(path), ".yaml")
			r.takeFile(kindMacro, name, path, r.makePath("macros", name+".yaml"), text, "")
		}
	}
	r.takeSkills("skills")
	r.readLokiFunctions()
	for _, path := range []string{"mcp.json", "functions/mcp.json"} {
		if t, ok := r.readJSON(path, largestText); ok {
			r.takeServers(t, t.getTable("mcpServers"), serverNames{})
			break
		}
	}
	r.readLokiRest()
}

// readLokiConfig reads config.yaml.
func (r *reader) readLokiConfig(t tree) {
	renamed := map[string]string{"function_calling": "function_calling_support", "agent_prelude": "agent_session"}
	for _, key := range t.listKeys() {
		to := cmp.Or(renamed[key], key)
		switch {
		case key == "clients":
			for _, client := range t.getTables(key) {
				r.takeClient(client)
			}
		case key == "document_loaders":
			r.takeEntry(t.path, key, t.getTexts(key))
		case key == "visible_skills":
			r.takeEntry(t.path, key, t.getList(key))
		case key == "light_theme":
			if t.getFlag(key) {
				r.takeSetting(t.path, key, "theme", "light", "theme: light")
			}
		case key == "repl_prelude" || key == "cmd_prelude":
			r.takePrelude(t, key)
		case config.ExplainForeign(to) != "":
			r.leaveThing(kindSetting, key, t.path, config.ExplainForeign(to))
		case strings.HasPrefix(key, "rag_graph"), slices.Contains(lokiOnly, key):
			r.leaveThing(kindSetting, key, t.path, "raddle has no such setting")
		case slices.Contains(agentSettings, key):
			r.leaveThing(kindSetting, key, t.path, "write it in the config.yaml of an agent")
		default:
			why := ""
			if to != key {
				why = "it is called " + to
			}
			r.takeSetting(t.path, key, to, t.getText(key), why)
		}
	}
}

// agentSettings are settings that an agent has in raddle, and lokiOnly are those that it has not.
var (
	agentSettings = []string{
		"auto_continue", "max_auto_continues", "continuation_prompt", "compression_keep_last", "max_tool_result_chars",
		"inject_skill_instructions", "skill_instructions", "reasoning_effort",
	}
	lokiOnly = []string{"raw_markdown", "no_workspace_mcp", "memory", "memory_cap_with_tools", "memory_cap_without_tools", "workspace_instructions", "workspace_instructions_files"}
)

// takePrelude takes what conversations begin with: raddle has a setting for a role, which is an agent.
func (r *reader) takePrelude(t tree, key string) {
	value := t.getText(key)
	if role, ok := strings.CutPrefix(value, "role:"); ok {
		r.leaveThing(kindSetting, key, t.path, "write: raddle chat role:"+role+"; an alias of your shell makes it short")
		return
	}
	r.leaveThing(kindSetting, key, t.path, "raddle -c continues the last conversation; sessions are /sessions in it")
}

// takeSetting takes a key of config.yaml.
func (r *reader) takeSetting(from, name, key, value, why string) {
	if value == "" {
		return
	}
	if err := config.TakesSetting(key, value); err != nil {
		r.leaveThing(kindSetting, name, from, cmp.Or(config.ExplainForeign(key), err.Error()))
		return
	}
	r.takeThing(kindSetting, name, from, config.FileName+": "+key, settingPart{key: key, value: value}, why)
}

// takeEntry takes a key of config.yaml that has more than one value.
func (r *reader) takeEntry(from, key string, value any) {
	r.takeThing(kindSetting, key, from, config.FileName+": "+key, entryPart{name: key, fields: value}, "")
}

// readLokiAgents reads the agents: directories with a config.yaml or a graph.yaml. Those of aichat have an index.yaml
// among the functions, and their settings in another directory.
func (r *reader) readLokiAgents(groups map[string]string) {
	for _, name := range r.listNames("agents") {
		dir := filepath.Join("agents", name)
		switch {
		case name == ".shared":
			r.takeDir(kindAgent, name, dir, r.makePath("agents", name))
		case strings.HasPrefix(name, ".") || !isName(name) || !r.isDir(dir):
		case r.hasFile(filepath.Join("functions", "agents", name, "index.yaml")):
		case r.hasFile(filepath.Join(dir, "config.yaml")), r.hasFile(filepath.Join(dir, "graph.yaml")):
			r.takeDir(kindAgent, name, dir, r.makePath("agents", name), noteBundled(name))
		}
	}
	for _, name := range r.listNames(filepath.Join("functions", "agents")) {
		if dir := filepath.Join("functions", "agents", name); isName(name) && r.hasFile(filepath.Join(dir, "index.yaml")) {
			r.takeIndexed(name, dir, groups)
		}
	}
}

// noteBundled says that an agent is used in place of one that comes with raddle, "" if there is none of its name.
func noteBundled(name string) string {
	if slices.Contains(bundle.Names(), name) {
		return "raddle uses it in place of its own agent of this name"
	}
	return ""
}

// takeIndexed takes an agent of aichat.
func (r *reader) takeIndexed(name, dir string, groups map[string]string) {
	index, ok := r.readYAML(filepath.Join(dir, "index.yaml"))
	if !ok {
		return
	}
	own, _ := r.readYAML(filepath.Join("agents", name, "config.yaml"))
	values := maps.Clone(index.values)
	for key, value := range own.values {
		if value != nil && key != "variables" {
			values[key] = value
		}
	}
	fields := []agentfile.Field{{Key: "name", Value: cmp.Or(index.getText("name"), name)}}
	for _, key := range []string{"description", "version", "model", "temperature", "top_p"} {
		fields = append(fields, agentfile.Field{Key: key, Value: values[key]})
	}
	if used, isText := values["use_tools"].(string); isText {
		tools, _ := expandTools(strings.Split(used, ","), groups)
		fields = append(fields, agentfile.Field{Key: "global_tools", Value: tools})
	}
	if session, isText := values["agent_prelude"].(string); isText {
		fields = append(fields, agentfile.Field{Key: "agent_session", Value: session})
	}
	for _, key := range []string{"dynamic_instructions", "variables", "conversation_starters", "documents", "instructions"} {
		fields = append(fields, agentfile.Field{Key: key, Value: values[key]})
	}
	text, err := agentfile.WriteConfig(fields...)
	if err != nil {
		r.leaveThing(kindAgent, name, dir, err.Error())
		return
	}
	files, left := r.copyDir(dir)
	files = slices.DeleteFunc(files, func(f copied) bool {
		return f.path == "index.yaml" || f.path == "functions.json" || f.path == "config.yaml"
	})
	files = append(files, copied{path: "config.yaml", text: text, mode: 0o600})
	why := []string{"index.yaml and the settings of the agent are its config.yaml", describeLeft(left), noteBundled(name)}
	why = slices.DeleteFunc(why, func(w string) bool { return w == "" })
	r.takeThing(kindAgent, name, dir, r.makePath("agents", name), filesPart{dir: r.makePath("agents", name), files: files}, strings.Join(why, "; "))
}

// expandTools returns tools with the groups of a configuration replaced by what is in them. Groups that raddle has itself
// stay. changed is true if a group was replaced.
func expandTools(names []string, groups map[string]string) (tools []string, changed bool) {
	for _, name := range names {
		name = strings.TrimSpace(name)
		members := groups[name]
		switch {
		case name == "":
		case members == "" || name == "fs":
			tools = append(tools, name)
		default:
			changed = true
			for member := range strings.SplitSeq(members, ",") {
				tools = append(tools, strings.TrimSpace(member))
			}
		}
	}
	return tools, changed
}

// takeRole takes a role. Groups of tools that only the configuration of the other program knows are written out.
func (r *reader) takeRole(path string, groups map[string]string) {
	text, ok := r.readText(path, largestText)
	name := strings.TrimSuffix(filepath.Base(path), ".md")
	if !ok {
		return
	}
	if !isName(name) {
		r.leaveThing(kindRole, name, path, "the name cannot be that of a role: rename the file")
		return
	}
	role := agentfile.ReadRole(name, text)
	why := ""
	if len(role.Ignored) > 0 {
		why = strings.Join(role.Ignored, ", ") + " has no effect here"
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		names, _ := agentfile.ReadMarkdown(text).ListNames("use_tools")
		more, _ := agentfile.ReadMarkdown(text).ListNames("enabled_tools")
		if group != "fs" && slices.Contains(append(names, more...), group) {
			why = strings.TrimPrefix(why+"; write the tools of the group "+group+" into it: "+groups[group], "; ")
		}
	}
	r.takeFile(kindRole, name, path, r.makePath("roles", name+".md"), text, why)
}

// readLokiFunctions reads tools: files of bash, Python and TypeScript.
func (r *reader) readLokiFunctions() {
	for _, name := range r.listNames(filepath.Join("functions", "tools")) {
		path := filepath.Join("functions", "tools", name)
		ending := filepath.Ext(name)
		if !slices.Contains([]string{".sh", ".py", ".ts", ".js"}, ending) {
			continue
		}
		text, ok := r.readText(path, largestText)
		switch {
		case !ok:
		case slices.Contains(builtin.ToolNames(), strings.TrimSuffix(name, ending)):
			r.leaveThing(kindTool, name, path, "raddle has this tool itself; copy the file to functions/tools to use it in its place")
		case ending == ".js":
			r.leaveThing(kindTool, name, path, "raddle runs tools of bash, Python and TypeScript")
		default:
			to := filepath.Join(r.dirs.Functions, "tools", name)
			p := filesPart{dir: filepath.Dir(to), files: []copied{{path: name, text: text, mode: 0o700}}}
			r.takeThing(kindTool, name, path, to, p, "")
		}
	}
	for _, name := range r.listNames(filepath.Join("functions", "utils")) {
		path := filepath.Join("functions", "utils", name)
		if text, ok := r.readText(path, largestText); ok {
			r.takeFile(kindTool, "utils/"+name, path, filepath.Join(r.dirs.Functions, "utils", name), text, "")
		}
	}
}

// readLokiRest names what raddle leaves.
func (r *reader) readLokiRest() {
	for _, path := range r.listFiles("sessions", ".yaml") {
		r.leaveThing(kindSession, strings.TrimSuffix(filepath.Base(path), ".yaml"), path, "raddle cannot continue conversations of another program; attach the file: raddle -f "+filepath.Base(path))
	}
	for _, path := range r.listFiles("memory", ".md") {
		r.takeMemory(path)
	}
	for _, name := range []string{"messages.md", "rags"} {
		if r.hasFile(name) {
			why := "the history stays where it is"
			if name == "rags" {
				why = "documents are read again: raddle rag build AGENT"
			}
			r.leaveThing(kindOther, name, name, why)
		}
	}
}

// takeMemory takes a file of notes for all agents as a skill, which a model reads when it needs it.
func (r *reader) takeMemory(path string) {
	text, ok := r.readText(path, largestText)
	if !ok {
		return
	}
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(path), ".md"))
	if !isName(name) {
		return
	}
	r.takeNotes(kindMemory, r.program+"-memory-"+name, path, "What was remembered in "+r.program+" under "+name+". Use it when earlier work or preferences of the user matter.", text)
}

// takeNotes takes a text as a skill.
func (r *reader) takeNotes(kind, name, path, description string, text []byte) {
	head := "---\nname: " + name + "\ndescription: " + description + "\n---\n\n"
	to := r.makePath("skills", name)
	p := filesPart{dir: to, files: []copied{{path: "SKILL.md", text: append([]byte(head), text...), mode: 0o600}}}
	r.takeThing(kind, filepath.Base(path), path, to, p, "it becomes a skill, which agents read when they need it")
}

// findReference returns the variable that a value names, in the notations of these programs.
func findReference(value string) (name string, ok bool) {
	if ref, isReference := environ.ParseReference(value); isReference {
		return ref.Name, true
	}
	if name, isReference := strings.CutPrefix(value, "$"); isReference && isVariable(name) {
		return name, true
	}
	if inner, isReference := strings.CutPrefix(value, "{env:"); isReference && isVariable(strings.TrimSuffix(inner, "}")) {
		return strings.TrimSuffix(inner, "}"), true
	}
	return "", false
}

// isVariable reports whether a text is the name of a variable.
func isVariable(name string) bool {
	return name != "" && strings.Trim(strings.ToUpper(name), "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (name[0] < '0' || name[0] > '9')
}
