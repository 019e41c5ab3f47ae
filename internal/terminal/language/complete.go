package language

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/process/toolbox"
)

// ListCompletions returns what can be written at a position of a document.
func (w *Workspace) ListCompletions(d *Document, p Position) []Completion {
	offset := d.Text.Offset(p)
	s := spotAt(d.Text, offset)
	c := completer{w: w, d: d, s: s, dir: w.agentDir(d.Path), edit: d.Text.rangeOf(s.from, offset)}
	graph := c.dir != "" && filepath.Base(d.Path) == graphFile
	switch root := w.formOf(d.Path); {
	case s.placeholder && graph:
		c.addKeys()
	case s.placeholder || root == nil:
	default:
		forms := descendKeys(root, s.keys, func(id string) string { return kindOf(d.Text, id) })
		switch {
		case s.key != "":
			c.addValues(s.key, itemsOf(root, descendKeys(root, append(slices.Clone(s.keys), s.key), func(id string) string { return kindOf(d.Text, id) })))
		case s.item && len(s.keys) > 0:
			c.addValues(s.keys[len(s.keys)-1], itemsOf(root, forms))
			c.addFields(itemsOf(root, forms))
		default:
			c.addFields(itemsOf(root, forms))
			c.addNames()
		}
	}
	return c.list
}

// completer collects proposals.
type completer struct {
	w    *Workspace
	d    *Document
	s    spot
	dir  string
	edit Range
	list []Completion
}

// addProposal adds a proposal unless it is there.
func (c *completer) addProposal(kind int, label, detail, doc, insert string) {
	if len(c.list) >= maxProposals || slices.ContainsFunc(c.list, func(o Completion) bool { return o.Label == label }) {
		return
	}
	item := Completion{Label: label, Kind: kind, Detail: detail, TextEdit: &TextEdit{c.edit, insert}}
	if doc != "" {
		item.Documentation = &Markup{"markdown", doc}
	}
	c.list = append(c.list, item)
}

// addFields proposes the keys of the mapping; those that it needs come first.
func (c *completer) addFields(list []*form) {
	names, members, required := fieldsOf(list)
	for _, name := range names {
		insert := name + ": "
		detail := ""
		if required[name] {
			detail = "required"
		}
		c.addProposal(kindField, name, detail, members[name].Description, insert)
		if n := len(c.list) - 1; n >= 0 && required[name] && c.list[n].Label == name {
			c.list[n].SortText = "0" + name
		}
	}
}

// addNames proposes what the keys of a mapping name: nodes and keys of the state in test files, and keys in graphs.
func (c *completer) addNames() {
	last := ""
	if len(c.s.keys) > 0 {
		last = c.s.keys[len(c.s.keys)-1]
	}
	switch last {
	case "nodes", "faults", "searches", "answers", "prompts", "instructions":
		if strings.HasSuffix(c.d.Path, testSuffix) {
			c.addNodes(": ")
		}
	case "state_updates", "reducers", "initial_state", "state":
		c.addStateKeys(": ")
	}
}

// addKeys proposes the keys of the state in a placeholder.
func (c *completer) addKeys() { c.addStateKeys("") }

func (c *completer) addStateKeys(after string) {
	where := map[string][]string{}
	var keys []string
	for _, m := range c.graphIndex().mentions {
		if m.thing != aKey || m.reads {
			continue
		}
		if where[m.name] == nil {
			keys = append(keys, m.name)
		}
		if m.node != "" && !slices.Contains(where[m.name], m.node) {
			where[m.name] = append(where[m.name], m.node)
		} else if m.node == "" {
			where[m.name] = append(where[m.name], "initial_state")
		}
	}
	keys = append(keys, spec.PromptKey)
	if after == "" {
		if f := c.lastFile(); f != nil && len(c.s.keys) > 1 {
			if n := f.Node(c.s.keys[1]); n != nil && n.Type.Scoped != "" && slices.Contains(c.s.keys, "state_updates") {
				keys = append(keys, n.Type.Scoped)
			}
		}
	}
	for _, key := range keys {
		detail := "the caller's text"
		if names := slices.Compact(where[key]); len(names) > 0 {
			detail = "set by " + strings.Join(names, ", ")
		}
		c.addProposal(kindVariable, key, detail, "", key+after)
	}
}

// lastFile returns the graph of the document's agent as it was last valid, or nil.
func (c *completer) lastFile() *spec.File {
	if a := c.w.agents[c.dir]; a != nil {
		return a.lastFile
	}
	return nil
}

// graphIndex returns the names of the agent's graph: those of the text as it is, and while that is no YAML, of the last one
// without errors.
func (c *completer) graphIndex() *index {
	path := filepath.Join(c.dir, graphFile)
	x := c.w.indexOf(path)
	if a := c.w.agents[c.dir]; x.root == nil && a != nil && a.lastText != nil {
		return readIndex(path, a.lastText, nil)
	}
	return x
}

// addNodes proposes the nodes of the agent.
func (c *completer) addNodes(after string) {
	x := c.graphIndex()
	for _, id := range x.order {
		kind, doc := "", ""
		if k := findField(x.nodes[id], "type"); k != nil {
			kind = k.Value
		}
		if text := findField(x.nodes[id], "description"); text != nil {
			doc = text.Value
		}
		c.addProposal(kindNode, id, kind, doc, id+after)
	}
}

// addValues proposes values of a field.
func (c *completer) addValues(key string, list []*form) {
	for _, f := range list {
		for _, v := range append(slices.Clone(f.Enum), f.Const) {
			if text, is := v.(string); is {
				c.addProposal(kindValue, text, "", "", text)
			}
		}
		if f.Type == "boolean" {
			c.addProposal(kindValue, "true", "", "", "true")
			c.addProposal(kindValue, "false", "", "", "false")
		}
	}
	if c.dir == "" {
		return
	}
	test := strings.HasSuffix(c.d.Path, testSuffix)
	switch key {
	case "next", "fallback", "on_other", "branch", "targets", "start", "finally", "on_failure", "on_deadline", "on_exceeded":
		c.addNodes("")
	case "path", "node", "equal", "contains", "never":
		if test {
			c.addNodes("")
		}
	case "over":
		c.addStateKeys("")
	case "script":
		c.addFiles(".sh", ".py", ".ts")
	case "agent":
		for _, place := range c.w.p.ListAgents() {
			c.addProposal(kindModule, place.Name, "agent", "", place.Name)
		}
		for _, name := range listSiblings(c.dir) {
			c.addProposal(kindModule, name, "agent", "", name)
		}
	case "model", "extractor_model", "embedding_model", "reranker_model", "compression_model":
		for _, m := range c.w.p.Models.ListClients() {
			for _, name := range m.Models {
				c.addProposal(kindValue, m.Client+":"+name, "", "", m.Client+":"+name)
			}
		}
	case "tools", "global_tools", "real":
		c.addTools(key)
	case "mcp_servers":
		c.addServers("")
	}
	if len(c.s.keys) > 0 && c.s.keys[len(c.s.keys)-1] == "routes" {
		c.addNodes("")
	}
}

// addFiles proposes files of the agent by their extensions.
func (c *completer) addFiles(extensions ...string) {
	for _, name := range listFiles(c.dir) {
		if slices.Contains(extensions, filepath.Ext(name)) {
			c.addProposal(kindFile, name, "", "", name)
		}
	}
}

// addTools proposes tools.
func (c *completer) addTools(key string) {
	var lists []*toolbox.ToolList
	if a := c.w.agents[c.dir]; a != nil && a.lastTool != nil && key != "global_tools" {
		for _, t := range a.lastTool.AvailableTools() {
			c.addProposal(kindFunction, t.Name, "", t.Description, t.Name)
		}
	}
	if global, err := c.w.p.Tools.ListGlobalTools(""); err == nil {
		lists = append(lists, global)
	}
	for _, l := range lists {
		for _, t := range l.Tools {
			c.addProposal(kindFunction, t.Name, "", t.Description, t.Name)
		}
	}
	if key == "tools" {
		c.addServers("mcp:")
	}
}

// addServers proposes the servers of mcp.json, none of which is started.
func (c *completer) addServers(before string) {
	servers, err := c.w.p.Tools.ListServers()
	if err != nil {
		return
	}
	for _, s := range servers {
		c.addProposal(kindModule, before+s.ID, fmt.Sprintf("server, %s", s.Transport), "", before+s.ID)
	}
}
