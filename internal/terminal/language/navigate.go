package language

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/wording"
)

// indexOf returns the index of a file that an agent consists of.
func (w *Workspace) indexOf(path string) *index {
	var graph *index
	if strings.HasSuffix(path, testSuffix) {
		if definition := filepath.Join(filepath.Dir(path), graphFile); w.hasFile(definition) {
			graph = w.indexOf(definition)
		}
	}
	return readIndex(path, w.readText(path), graph)
}

// findTarget returns what is at a position of a document, with the index of its file; nil: nothing that has a name.
func (w *Workspace) findTarget(d *Document, p Position) (*index, *mention) {
	dir := w.agentDir(d.Path)
	if dir == "" {
		return nil, nil
	}
	x := w.indexOf(d.Path)
	offset := d.Text.Offset(p)
	if m := x.mentionAt(offset); m != nil {
		return x, m
	}
	for _, m := range w.mentionsOfTargets(dir) {
		if m.path == d.Path && m.from <= offset && offset <= m.to {
			return x, &m
		}
	}
	return x, nil
}

// mentionsOfTargets returns where the scripts of an agent name nodes in _next.
func (w *Workspace) mentionsOfTargets(dir string) (list []mention) {
	a := w.agents[dir]
	if a == nil || a.loaded == nil {
		return nil
	}
	for _, t := range a.loaded.ScriptTargets() {
		if path, text, ok := w.readInside(dir, t.Pos.File); ok {
			from := text.findPlace(t.Pos)
			list = append(list, mention{thing: aNode, name: t.Node, path: path, from: from, to: from + len(t.Node)})
		}
	}
	return list
}

// texts are the files of an agent that can mention a name: its definition, its test files, its scripts, and transcripts.
func (w *Workspace) findMentions(dir string, of *mention) (list []mention, texts map[string]*Text) {
	texts = map[string]*Text{}
	graph := w.indexOf(filepath.Join(dir, graphFile))
	indexes := []*index{graph}
	for _, path := range w.testFiles(dir) {
		if _, text, ok := w.readInside(dir, path); ok {
			indexes = append(indexes, readIndex(path, text, graph))
		}
	}
	for _, name := range transcriptsOf(graph) {
		if path, text, ok := w.readInside(dir, name); ok {
			indexes = append(indexes, readTranscript(path, text))
		}
	}
	for _, x := range indexes {
		texts[x.path] = x.text
		list = append(list, x.mentions...)
	}
	var scripts []mention
	if of.thing == aNode {
		scripts = w.mentionsOfTargets(dir)
	}
	for _, m := range graph.mentions {
		if m.thing != aScript {
			continue
		}
		path, text, ok := w.readInside(dir, m.name)
		if !ok || texts[path] != nil {
			continue
		}
		texts[path] = text
		if of.thing == aKey {
			scripts = append(scripts, findInScript(path, text, of.name)...)
		}
	}
	list = slices.DeleteFunc(append(list, scripts...), func(m mention) bool { return m.thing != of.thing || m.name != of.name })
	slices.SortFunc(list, func(a, b mention) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.from, b.from)) })
	return slices.CompactFunc(list, func(a, b mention) bool { return a.path == b.path && a.from == b.from }), texts
}

// testFiles returns the paths of the test files next to an agent's definition, stored ones and open ones, sorted.
func (w *Workspace) testFiles(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir) // a directory that cannot be read has none
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), testSuffix) && e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for path := range w.docs {
		if filepath.Dir(path) == dir && strings.HasSuffix(path, testSuffix) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// transcriptsOf returns the files of recorded replies that a graph names as models.
func transcriptsOf(graph *index) (names []string) {
	add := func(entry string, value string) {
		if name, ok := strings.CutPrefix(value, "script:"); ok && entry == "model" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if model := findField(graph.root, "model"); model != nil {
		add("model", model.Value)
	}
	for _, id := range graph.order {
		if model := findField(graph.nodes[id], "model"); model != nil {
			add("model", model.Value)
		}
	}
	return names
}

// FindDefinitions returns where the name at a position is defined: a node, the writes of a key, a file, another agent.
func (w *Workspace) FindDefinitions(d *Document, p Position) []Location {
	dir := w.agentDir(d.Path)
	_, m := w.findTarget(d, p)
	if m == nil {
		return []Location{}
	}
	switch m.thing {
	case aScript:
		if path, _, ok := w.readInside(dir, m.name); ok {
			return []Location{{URI: w.address(path)}}
		}
		return []Location{}
	case anAgent:
		if place, ok := w.findAgent(dir, m.name); ok {
			return []Location{{URI: w.address(w.definition(place))}}
		}
		return []Location{}
	}
	list, texts := w.findMentions(dir, m)
	list = slices.DeleteFunc(list, func(o mention) bool { return !o.defines || o.path != filepath.Join(dir, graphFile) })
	return w.locateMentions(list, texts)
}

// findAgent returns the directory of an agent by its name: next to another one, or in the agents directory.
func (w *Workspace) findAgent(dir, name string) (string, bool) {
	if a := w.agents[dir]; a != nil && a.loaded != nil {
		for _, used := range a.uses[1:] {
			if filepath.Base(used) == name {
				return used, true
			}
		}
	}
	if slices.Contains(listSiblings(dir), name) {
		return filepath.Join(filepath.Dir(dir), name), true
	}
	place, err := w.p.FindAgent(name)
	return place.Dir, err == nil
}

// listSiblings returns the names of the agents next to one.
func listSiblings(dir string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(dir)) // a directory that cannot be read has none
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(dir), e.Name())
		if e.IsDir() && path != dir && (check.FileExists(filepath.Join(path, graphFile)) || check.FileExists(filepath.Join(path, configFile))) {
			names = append(names, e.Name())
		}
	}
	return names
}

// address returns the address of a file, as the editor that has it open writes it.
func (w *Workspace) address(path string) string {
	if d := w.docs[path]; d != nil {
		return d.URI
	}
	return AddressOf(path)
}

func (w *Workspace) locateMentions(list []mention, texts map[string]*Text) []Location {
	found := make([]Location, 0, len(list))
	for _, m := range list {
		found = append(found, Location{w.address(m.path), texts[m.path].rangeOf(m.from, m.to)})
	}
	return found
}

// FindReferences returns where the name at a position is written, in all files of its agent.
func (w *Workspace) FindReferences(d *Document, p Position, declaration bool) []Location {
	_, m := w.findTarget(d, p)
	if m == nil {
		return []Location{}
	}
	list, texts := w.findMentions(w.agentDir(d.Path), m)
	if !declaration && m.thing == aNode {
		list = slices.DeleteFunc(list, func(o mention) bool { return o.defines })
	}
	return w.locateMentions(list, texts)
}

// Kinds of symbols, as the protocol numbers them.
const (
	symbolModule   = 2
	symbolFunction = 12
	symbolKey      = 20
)

// ListSymbols returns the outline of a document: its keys, and below nodes and tests their entries.
func (w *Workspace) ListSymbols(d *Document) []Symbol {
	x := w.indexOf(d.Path)
	symbols := []Symbol{}
	eachMember(x.root, func(key, value *yamlNode) {
		s := x.newSymbol(key, value, symbolModule)
		switch key.Value {
		case "nodes":
			eachMember(value, func(key, value *yamlNode) {
				entry := x.newSymbol(key, value, symbolFunction)
				if kind := findField(value, "type"); kind != nil {
					entry.Detail = kind.Value
				}
				s.Children = append(s.Children, entry)
			})
		case "tests":
			for _, test := range listItems(value) {
				if name := findField(test, "name"); name != nil && name.Value != "" {
					s.Children = append(s.Children, x.symbolOf(name.Value, name, test, symbolFunction))
				}
			}
		case "initial_state":
			eachMember(value, func(key, value *yamlNode) { s.Children = append(s.Children, x.newSymbol(key, value, symbolKey)) })
		}
		symbols = append(symbols, s)
	})
	return symbols
}

func (x *index) newSymbol(key, value *yamlNode, kind int) Symbol {
	return x.symbolOf(key.Value, key, value, kind)
}

// symbolOf returns a symbol whose name is at a node, and which contains others.
func (x *index) symbolOf(name string, at, value *yamlNode, kind int) Symbol {
	if name == "" {
		name = "-"
	}
	from := x.startOf(at)
	to := max(x.startOf(at)+len(at.Value), x.endOf(value))
	return Symbol{Name: wording.CutText(name, 100, "…"), Kind: kind, Range: x.text.rangeOf(min(from, x.startOf(value)), to), SelectionRange: x.text.rangeOf(from, min(from+len(at.Value), to))}
}

// endOf returns the index of the end of a node.
func (x *index) endOf(n *yamlNode) int {
	if n.Kind == yamlScalar {
		_, to := x.scalarRange(n)
		return to
	}
	to := x.startOf(n)
	for _, inner := range n.Content {
		to = max(to, x.endOf(inner))
	}
	return to
}

// DescribePlace returns what is known about the place in a document: a key of the state, a node, or a field of the format.
func (w *Workspace) DescribePlace(d *Document, p Position) *Hover {
	dir := w.agentDir(d.Path)
	x, m := w.findTarget(d, p)
	text := ""
	switch {
	case m == nil:
	case m.thing == aKey:
		text = w.describeKey(dir, m)
	case m.thing == aNode:
		text = describeNode(w.indexOf(filepath.Join(dir, graphFile)), m.name)
	case m.thing == aScript:
		text = "`" + m.name + "`"
	}
	if text != "" {
		r := x.text.rangeOf(m.from, m.to)
		return &Hover{Markup{"markdown", w.redactText(text)}, &r}
	}
	root := w.formOf(d.Path)
	line, start := d.Text.lineAt(p.Line)
	offset := d.Text.Offset(p) - start
	from := strings.LastIndexAny(line[:offset], " {,\"'-[") + 1
	end := strings.IndexAny(line[offset:], ":, }\"']")
	if root == nil || end < 0 || from > offset+end || !strings.HasPrefix(strings.TrimLeft(line[offset+end:], `"'`), ":") {
		return nil
	}
	key := line[from : offset+end]
	s := spotAt(d.Text, start+from)
	text = describeField(key, descendKeys(root, append(s.keys, key), func(id string) string { return kindOf(d.Text, id) }))
	if text == "" || key == "" {
		return nil
	}
	r := d.Text.rangeOf(start+from, start+offset+end)
	return &Hover{Markup{"markdown", text}, &r}
}

// redactText removes secrets from a text that is shown.
func (w *Workspace) redactText(text string) string {
	return string(w.p.Tools.SecretSet().Bytes([]byte(text)))
}

// describeNode returns what a graph.yaml says about a node.
func describeNode(x *index, id string) string {
	entry := x.nodes[id]
	if entry == nil {
		return ""
	}
	lines := []string{"**" + id + "**"}
	if kind := findField(entry, "type"); kind != nil {
		lines[0] += ", a node of type `" + kind.Value + "`"
		if f := forms()["graph"].Definitions[kind.Value]; f != nil {
			lines = append(lines, f.Description)
		}
	}
	if text := findField(entry, "description"); text != nil {
		lines = append(lines, text.Value)
	}
	return strings.Join(lines, "\n\n")
}

// describeKey returns where a key of the state has its value from.
func (w *Workspace) describeKey(dir string, m *mention) string {
	a := w.agents[dir]
	if a == nil || a.lastFile == nil {
		return ""
	}
	if m.name == spec.PromptKey {
		return "**" + m.name + "**: the caller's text"
	}
	node := m.node
	if a.lastFile.Node(node) == nil {
		node = ""
	}
	facts := check.ExplainKey(a.lastFile, node, m.name)
	text := "**" + m.name + "**"
	if n := a.lastFile.Node(node); n != nil && m.reads && n.Type.Scoped == m.name && !facts.Initial && facts.Setters == nil {
		return text + ": the result of `" + node + "`, inside its state_updates"
	}
	var from []string
	if facts.Initial {
		from = append(from, "initial_state")
	}
	for _, id := range facts.Setters {
		from = append(from, "`"+id+"`")
	}
	switch {
	case from == nil && facts.AnyKey == nil:
		return text + ": no node sets it"
	case from == nil:
		text += ": no node is known to set it; scripts may: `" + strings.Join(facts.AnyKey, "`, `") + "`"
	default:
		text += ": set by " + strings.Join(from, ", ")
	}
	if m.reads && facts.Ways > 0 && node != "" {
		text += fmt.Sprintf(" on %d of %s to `%s`", facts.Set, wording.FormatCount(facts.Ways, "path"), node)
		if facts.Unset != nil {
			text += "\n\nNothing sets it on " + strings.Join(facts.Unset, " → ")
		}
	}
	return text
}

// suggestion matches what a hint proposes to write instead.
var suggestion = pattern.CompileLater("^did you mean `?([A-Za-z0-9_][A-Za-z0-9_./:-]*?)`?\\?$")
