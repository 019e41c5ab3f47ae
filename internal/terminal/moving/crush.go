package moving

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
