package moving

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/storage/config"
)

// A client is a provider of models, in the words of raddle's config.yaml.
type client struct {
	name   string
	from   string
	fields map[string]any
	notes  []string // what is different from the other program
}

func newClient(name, from string) *client {
	return &client{name: name, from: from, fields: map[string]any{"name": name}}
}

// setText sets a field, unless its value is empty.
func (c *client) setText(key, value string) {
	if value != "" {
		c.fields[key] = value
	}
}

func (c *client) addNote(text string) { c.notes = append(c.notes, text) }

// setKey sets the key of a client by a value of a file: a variable stays one, and a key itself is not copied.
func (r *reader) setKey(c *client, value string) {
	name, isReference := findReference(value)
	switch {
	case value == "":
	case isReference:
		c.setText("api_key", "${"+name+"}")
		r.leaveThing(kindKey, name, c.from, "set the variable "+name+", or store the key: raddle login "+c.name)
	case isKeyText(value):
		c.addNote("without its key")
		r.keys = append(r.keys, Key{Program: r.program, Client: c.name, From: c.from, value: value})
		r.leaveThing(kindKey, c.name, c.from, "the file has the key itself; raddle import asks whether to store it, or: raddle login "+c.name)
	}
}

// isKeyText reports whether a value may be a key, and not a placeholder such as xxx.
func isKeyText(value string) bool {
	return redact.IsSecretValue(value) && strings.Trim(strings.ToLower(value), "x*.- ") != "" && !strings.ContainsAny(value, " \t\n")
}

// takeCompleted takes a client.
func (r *reader) takeCompleted(c *client) {
	if !isName(c.name) {
		r.leaveThing(kindClient, c.name, c.from, "the name cannot be that of a client")
		return
	}
	r.takeThing(kindClient, c.name, c.from, config.FileName+": clients."+c.name, entryPart{client: true, name: c.name, fields: c.fields}, strings.Join(c.notes, "; "))
}

// takeClient takes a client of Loki, Coyote or aichat.
func (r *reader) takeClient(t tree) {
	kind := t.getText("type")
	c := newClient(cmp.Or(t.getText("name"), kind), t.path)
	c.setText("api_base", t.getText("api_base"))
	handled := []string{"type", "name", "api_base", "api_key", "models", "patch", "extra"}
	switch kind {
	case "openai", "openai-compatible", "gemini", "ollama":
		c.setText("type", kind)
	case "claude":
		c.setText("type", "anthropic")
	case "azure-openai":
		c.setText("type", "openai")
		c.setText("api_base", strings.TrimRight(t.getText("api_base"), "/")+"/openai/v1")
		c.addNote("Azure is reached as an address of OpenAI")
	case "cohere":
		c.setText("type", "openai-compatible")
		c.setText("api_base", "https://api.cohere.ai/compatibility/v1")
		c.addNote("it is reached at its interface that is compatible with OpenAI's")
	case "vertexai":
		c.setText("type", "vertex")
		c.setText("project", t.getText("project_id"))
		c.setText("location", t.getText("location"))
		handled = append(handled, "project_id", "location")
	case "bedrock":
		c.setText("type", "bedrock")
		c.setText("region", t.getText("region"))
		c.addNote("its credentials are those of your environment and of AWS's files")
		handled = append(handled, "region", "access_key_id", "secret_access_key", "session_token")
	default:
		r.leaveThing(kindClient, c.name, t.path, cmp.Or(config.ClientHint(kind), "raddle has no type of clients "+kind))
		return
	}
	if isPlaceholder(c.fields) {
		r.leaveThing(kindClient, c.name, t.path, "it is an example: its values were never filled in")
		return
	}
	r.setKey(c, t.getText("api_key"))
	r.takeModels(t, c)
	r.takePatches(t.getTable("patch"), c)
	if proxy := t.getTable("extra").getText("proxy"); proxy != "" {
		c.setText("proxy", proxy)
	}
	if id := t.getText("organization_id"); id != "" {
		c.fields["extra_headers"] = map[string]any{"OpenAI-Organization": id}
		handled = append(handled, "organization_id")
	}
	for _, key := range t.listKeys() {
		if !slices.Contains(handled, key) {
			r.leaveThing(kindSetting, "clients."+c.name+"."+key, t.path, cmp.Or(config.ExplainForeign(key), "raddle has no such key of a client"))
		}
	}
	r.takeCompleted(c)
}

// isPlaceholder reports whether a client is one of an example.
func isPlaceholder(fields map[string]any) bool {
	for _, key := range []string{"api_base", "project", "region"} {
		if value, _ := fields[key].(string); strings.Contains(value, "{RESOURCE}") || strings.Contains(value, "{ACCOUNT_ID}") || strings.HasPrefix(value, "xxx") {
			return true
		}
	}
	return false
}

// keptFacts are the facts about a model that raddle reads under the same names.
var keptFacts = []string{
	"name", "type", "max_input_tokens", "max_output_tokens", "input_price", "output_price", "require_max_tokens",
	"supports_vision", "supports_function_calling", "supports_reasoning", "reasoning_levels",
}

// takeModels takes the models of a client.
func (r *reader) takeModels(t tree, c *client) {
	var models []any
	left := map[string]bool{}
	for _, model := range t.getTables("models") {
		facts := map[string]any{}
		for _, key := range model.listKeys() {
			if slices.Contains(keptFacts, key) {
				facts[key] = model.values[key]
			} else {
				left[key] = true
			}
		}
		if model.getText("name") != "" {
			models = append(models, facts)
		}
	}
	if len(models) > 0 {
		c.fields["models"] = models
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		r.leaveThing(kindSetting, "clients."+c.name+".models."+key, t.path, cmp.Or(config.ExplainForeign(key), "raddle has no such key of a model"))
	}
}

// takePatches takes what a client adds to its requests: for all models, or for one that the client lists.
func (r *reader) takePatches(patch tree, c *client) {
	for _, kind := range patch.listKeys() {
		requests := patch.getTable(kind)
		for _, models := range requests.listKeys() {
			name := "clients." + c.name + ".patch." + kind + "." + models
			change := requests.getTable(models)
			switch {
			case kind != "chat_completions":
				r.leaveThing(kindSetting, name, patch.path, "raddle changes only requests for replies")
			case change.hasKey("url"):
				r.leaveThing(kindSetting, name, patch.path, "write the address as api_base")
			case models == ".*" || models == "":
				addFields(c.fields, "extra_body", change.getTable("body").values)
				addFields(c.fields, "extra_headers", change.getTable("headers").values)
				c.addNote("its patch is extra_body and extra_headers")
			default:
				r.takeModelPatch(name, models, change, c)
			}
		}
	}
}

// takeModelPatch takes a patch for models that a regular expression selects, if it is the name of one.
func (r *reader) takeModelPatch(name, pattern string, change tree, c *client) {
	models, _ := c.fields["models"].([]any)
	for _, each := range models {
		facts, _ := each.(map[string]any)
		if facts["name"] == pattern && !change.hasKey("headers") {
			addFields(facts, "extra_body", change.getTable("body").values)
			c.addNote("the patch of " + pattern + " is its extra_body")
			return
		}
	}
	r.leaveThing(kindSetting, name, change.path, "write extra_body for each model that it means")
}

// addFields adds the members of a table to one of a client.
func addFields(fields map[string]any, key string, more map[string]any) {
	if len(more) == 0 {
		return
	}
	table, _ := fields[key].(map[string]any)
	if table == nil {
		table = map[string]any{}
	}
	maps.Copy(table, more)
	fields[key] = table
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
