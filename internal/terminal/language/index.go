package language

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/strictyaml"
)

// thing says what a name means.
type thing int

const (
	aNode   thing = iota // a node of the graph
	aKey                 // a key of the state
	aScript              // a file of the agent
	anAgent              // another agent
)

// A mention is a place in a file where a name is written.
type mention struct {
	thing   thing
	name    string
	path    string
	from    int // index of the name in the text
	to      int
	defines bool   // a node: its entry; a key: a write
	node    string // the id of the node around it; "": none
	reads   bool   // a placeholder
}

// An index has the mentions of one file, in no order.
type index struct {
	path     string
	text     *Text
	mentions []mention
	nodes    map[string]*yaml.Node // of graph.yaml: the entries by their ids
	order    []string              // ids in file order
	root     *yaml.Node
}

// addScalar records a scalar as a mention, if the text has it as it is.
func (x *index) addScalar(t thing, n *yaml.Node, node string, defines bool) {
	if n == nil || n.Kind != yaml.ScalarNode || n.Value == "" || strictyaml.IsBroken(n) {
		return
	}
	x.addPart(t, n, n.Value, node, defines)
}

// addPart records the beginning of a scalar as a mention.
func (x *index) addPart(t thing, n *yaml.Node, name, node string, defines bool) {
	from := x.text.findPlace(strictyaml.Pos{Line: n.Line, Col: n.Column})
	if from < len(x.text.s) && (x.text.s[from] == '"' || x.text.s[from] == '\'') {
		from++
	}
	if strings.HasPrefix(x.text.s[from:], name) {
		x.mentions = append(x.mentions, mention{thing: t, name: name, path: x.path, from: from, to: from + len(name), defines: defines, node: node})
	}
}

// eachMember calls f for the members of a mapping.
func eachMember(n *yaml.Node, f func(key, value *yaml.Node)) {
	if n == nil {
		return
	}
	if n = strictyaml.ResolveAlias(n); n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !strictyaml.IsBroken(n.Content[i]) {
			f(n.Content[i], n.Content[i+1])
		}
	}
}

// listItems returns the scalars of a list, or the only one.
func listItems(n *yaml.Node) []*yaml.Node {
	if n = strictyaml.ResolveAlias(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// findField returns a member of a mapping, or nil.
func findField(n *yaml.Node, name string) (found *yaml.Node) {
	eachMember(n, func(key, value *yaml.Node) {
		if key.Value == name {
			found = value
		}
	})
	return found
}

// readIndex reads the mentions of a file that defines an agent or tests it. others are the nodes of the graph that a
// test file is about.
func readIndex(path string, text *Text, graph *index) *index {
	x := &index{path: path, text: text, nodes: map[string]*yaml.Node{}}
	x.root = strictyaml.Read(path, []byte(text.s)).Root
	if x.root == nil {
		return x
	}
	switch {
	case strings.HasSuffix(path, testSuffix):
		x.readTests(graph)
	case filepath.Base(path) == graphFile:
		x.readGraph()
	}
	return x
}

func (x *index) readGraph() {
	eachMember(x.root, func(key, value *yaml.Node) {
		switch key.Value {
		case "start", "finally":
			x.addScalar(aNode, value, "", false)
		case "initial_state":
			eachMember(value, func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", true) })
		case "reducers":
			eachMember(value, func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", false) })
		case "triggers":
			for _, entry := range listItems(value) {
				eachMember(findField(entry, "state"), func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", true) })
				eachMember(findField(findField(entry, "map"), "state"), func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", true) })
			}
		case "nodes":
			eachMember(value, func(key, value *yaml.Node) {
				x.nodes[key.Value] = value
				x.order = append(x.order, key.Value)
			})
			eachMember(value, x.readNode)
		}
	})
	eachMember(x.root, func(key, value *yaml.Node) { // when all nodes are known
		switch key.Value {
		case "budget":
			x.addChoice(findField(value, "on_exceeded"), "")
		case "defaults":
			for _, field := range []string{"fallback", "on_failure"} {
				x.addChoice(findField(value, field), "")
			}
			x.addChoice(findField(findField(value, "budget"), "on_exceeded"), "")
		}
	})
}

// addChoice records a value that is the id of a node, or a word that is none.
func (x *index) addChoice(value *yaml.Node, at string) {
	if value != nil && x.nodes[value.Value] != nil {
		x.addScalar(aNode, value, at, false)
	}
}

func (x *index) readNode(id, entry *yaml.Node) {
	x.addScalar(aNode, id, id.Value, true)
	eachMember(entry, func(key, value *yaml.Node) {
		switch key.Value {
		case "id":
			x.addScalar(aNode, value, id.Value, false)
		case "next", "fallback", "on_other", "branch", "targets":
			for _, item := range listItems(value) {
				x.addScalar(aNode, item, id.Value, false)
			}
		case "on_failure", "on_deadline":
			x.addChoice(value, id.Value)
		case "budget":
			x.addChoice(findField(value, "on_exceeded"), id.Value)
		case "routes":
			eachMember(value, func(_, to *yaml.Node) { x.addScalar(aNode, to, id.Value, false) })
		case "as", "output_key", "collect_into":
			x.addScalar(aKey, value, id.Value, true)
		case "script":
			x.addScalar(aScript, value, id.Value, false)
		case "agent":
			x.addScalar(anAgent, value, id.Value, false)
		case "output_schema":
			eachMember(findField(value, "properties"), func(key, _ *yaml.Node) { x.addScalar(aKey, key, id.Value, true) })
		case "description":
		case "state_updates":
			eachMember(value, func(key, value *yaml.Node) {
				x.addScalar(aKey, key, id.Value, true)
				x.addPlaceholders(value, id.Value)
			})
		default:
			x.addPlaceholders(value, id.Value)
		}
	})
}

// addPlaceholders records the keys in the placeholders of the scalars below a node.
func (x *index) addPlaceholders(n *yaml.Node, node string) {
	if n.Kind != yaml.ScalarNode {
		for _, inner := range n.Content {
			x.addPlaceholders(inner, node)
		}
		return
	}
	if !strings.Contains(n.Value, "{{") {
		return
	}
	from, to := x.scalarRange(n)
	raw := x.text.s[from:to]
	at := 0
	for _, part := range spec.ParseTemplate(raw).Parts {
		if part.Path == nil {
			continue
		}
		at += strings.Index(raw[at:], "{{"+part.Path.Text+"}}") + len("{{")
		if root := part.Path.Root; root != "" && !part.Path.Never {
			x.mentions = append(x.mentions, mention{thing: aKey, name: root, path: x.path, from: from + at, to: from + at + len(root), node: node, reads: true})
		}
		at += len(part.Path.Text)
	}
}

// scalarRange returns where a scalar is in the text, with its quotes. A plain scalar of several lines may be longer.
func (x *index) scalarRange(n *yaml.Node) (from, to int) {
	s := x.text.s
	from = x.text.findPlace(strictyaml.Pos{Line: n.Line, Col: n.Column})
	if from >= len(s) {
		return len(s), len(s)
	}
	switch s[from] {
	case '"', '\'':
		end, _ := strictyaml.FindEndOfQuotes(s, from)
		return from, end
	case '|', '>':
		return from, x.endOfBlock(n.Line - 1)
	}
	to = from
	for words := n.Value; to < len(s) && words != ""; { // the value has the same characters, but for white space
		r := words[0]
		switch {
		case s[to] == r:
			words = words[1:]
		case isSpace(r) || isSpace(s[to]):
			if isSpace(r) {
				words = words[1:]
			}
		default:
			return from, to
		}
		if s[to] == r || isSpace(s[to]) {
			to++
		}
	}
	return from, to
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// endOfBlock returns the index of the end of a block scalar whose indicator is in a line of the text.
func (x *index) endOfBlock(line int) int {
	head, _ := x.text.lineAt(line)
	least := indentOf(head)
	for n := line + 1; n < len(x.text.lines); n++ {
		text, start := x.text.lineAt(n)
		if strings.TrimSpace(text) != "" && indentOf(text) <= least {
			return start
		}
	}
	return len(x.text.s)
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// readTests reads the mentions of a file of test cases.
func (x *index) readTests(graph *index) {
	x.readSetup(x.root, graph)
	tests := findField(x.root, "tests")
	if tests == nil {
		return
	}
	for _, test := range listItems(tests) {
		x.readSetup(test, graph)
		expect := findField(test, "expect")
		eachMember(expect, func(key, value *yaml.Node) {
			switch key.Value {
			case "path":
				x.addSteps(value, graph)
			case "questions":
				x.addSteps(value, graph)
			case "prompts", "instructions":
				eachMember(value, func(key, _ *yaml.Node) { x.addNodePath(key, graph) })
			case "state":
				eachMember(value, func(key, _ *yaml.Node) {
					x.addPart(aKey, key, key.Value[:len(key.Value)-len(strings.TrimLeft(key.Value, nameCharacters))], "", false)
				})
			}
		})
	}
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// addSteps records the nodes of a list of steps, or of the lists of a mapping.
func (x *index) addSteps(n *yaml.Node, graph *index) {
	if n = strictyaml.ResolveAlias(n); n.Kind == yaml.MappingNode {
		for _, name := range []string{"equal", "contains", "never"} {
			if list := findField(n, name); list != nil {
				x.addSteps(list, graph)
			}
		}
		return
	}
	for _, item := range listItems(n) {
		if item.Kind == yaml.ScalarNode {
			x.addNodePath(item, graph)
		}
		eachMember(item, func(key, _ *yaml.Node) { x.addNodePath(key, graph) })
	}
}

// addNodePath records the node with which a path such as draft or review/draft begins, if the graph has it.
func (x *index) addNodePath(n *yaml.Node, graph *index) {
	name, _, _ := strings.Cut(n.Value, "/")
	if graph != nil && graph.nodes[name] != nil {
		x.addPart(aNode, n, name, "", false)
	}
}

// readSetup reads what a file of test cases and each case may set.
func (x *index) readSetup(n *yaml.Node, graph *index) {
	eachMember(n, func(key, value *yaml.Node) {
		switch key.Value {
		case "initial_state":
			eachMember(value, func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", true) })
		case "nodes":
			eachMember(value, func(key, value *yaml.Node) {
				x.addNodePath(key, graph)
				if graph != nil && graph.writesState(key.Value) {
					for _, output := range listItems(value) {
						eachMember(output, func(key, _ *yaml.Node) { x.addScalar(aKey, key, "", true) })
						x.addQuoted(output)
					}
				}
			})
		case "faults", "searches", "answers":
			eachMember(value, func(key, _ *yaml.Node) { x.addNodePath(key, graph) })
		case "replies":
			for _, reply := range listItems(value) {
				if node := findField(reply, "node"); node != nil {
					x.addNodePath(node, graph)
				}
				x.addQuoted(findField(reply, "text"))
			}
		}
	})
}

// writesState reports whether the members of what a node returns become keys of the state.
func (x *index) writesState(id string) bool {
	n := x.nodes[id]
	kind := findField(n, "type")
	return kind != nil && (kind.Value == "script" || findField(n, "output_schema") != nil)
}

// quotedMember matches the name of a member in JSON, whose quotes may be escaped.
var quotedMember = pattern.CompileLater(`\\?"([A-Za-z_][A-Za-z0-9_]*)\\?"\s*:`)

// addQuoted records the members of JSON that a text has.
func (x *index) addQuoted(n *yaml.Node) {
	if n == nil || n.Kind != yaml.ScalarNode || !strings.Contains(n.Value, "{") {
		return
	}
	from, to := x.scalarRange(n)
	for _, m := range quotedMember().FindAllStringSubmatchIndex(x.text.s[from:to], -1) {
		x.mentions = append(x.mentions, mention{thing: aKey, name: x.text.s[from+m[2] : from+m[3]], path: x.path, from: from + m[2], to: from + m[3], defines: true})
	}
}

// readTranscript reads the mentions of a file with replies of a model.
func readTranscript(path string, text *Text) *index {
	x := &index{path: path, text: text}
	x.root = strictyaml.Read(path, []byte(text.s)).Root
	if x.root == nil {
		return x
	}
	for _, reply := range listItems(x.root) {
		x.addQuoted(findField(reply, "text"))
	}
	return x
}

// findInScript returns where a script has a key of the state as a literal: in quotes, as a member of state, or in a
// path of jq.
func findInScript(path string, text *Text, key string) (found []mention) {
	word := regexp.QuoteMeta(key)
	literal := regexp.MustCompile(`(?:["']|\bstate\.|\bstate\?\.|(?:^|[\s'"|(\[])\.)(` + word + `)(?:$|\\?["']|[^A-Za-z0-9_"'\\])`)
	for _, m := range literal.FindAllStringSubmatchIndex(text.s, -1) {
		before := text.s[m[0]:m[2]]
		after := text.s[m[3]:min(len(text.s), m[3]+2)]
		if opens := strings.ContainsAny(before, `"'`) && !strings.HasSuffix(before, "."); opens && !strings.HasPrefix(strings.TrimPrefix(after, `\`), before[len(before)-1:]) {
			continue // the quotes hold more than the key
		}
		found = append(found, mention{thing: aKey, name: key, path: path, from: m[2], to: m[3]})
	}
	return found
}

// mentionAt returns the mention at an index of the text.
func (x *index) mentionAt(offset int) *mention {
	i := slices.IndexFunc(x.mentions, func(m mention) bool { return m.from <= offset && offset <= m.to })
	if i < 0 {
		return nil
	}
	return &x.mentions[i]
}

// startOf returns the index at which a node begins.
func (x *index) startOf(n *yaml.Node) int {
	return x.text.findPlace(strictyaml.Pos{Line: n.Line, Col: n.Column})
}

// yamlNode is a node of the tree of a file.
type yamlNode = yaml.Node

const yamlScalar = yaml.ScalarNode
