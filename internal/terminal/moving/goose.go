package moving

import (
	"path/filepath"
	"strings"

	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/storage/config"
)

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
