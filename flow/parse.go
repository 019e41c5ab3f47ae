package flow

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/wording"
)

// Parse reads the text of a graph.yaml. path is only used to name the file in
// messages. All errors are reported at once, in a [*ParseError]. Unknown keys
// are not errors; they are among the findings of the [File].
//
// Parse checks only the file itself: types, required fields, the version, ids
// and the start node. [File.Check] is the validator of the graph.
func Parse(path string, text []byte) (*File, error) {
	d := readYAML(path, text)
	f := &File{Path: path, fileText: fileText{text: text}, InitialState: &jsonvalue.Object{}, byID: map[string]*Node{}, reducers: map[string]string{}}
	if d.fatal {
		return nil, newParseError(d, nil, nil)
	}
	f.src = d.mapping()
	p := &parser{f: f, problems: &d.problems}
	if !d.holdsMapping() {
		return nil, newParseError(d, nil, nil)
	}
	p.parseFile(newFields(p.problems, p.f.src, ""))
	p.checkStructure()
	if len(d.list) > 0 || len(p.broken) > 0 {
		return nil, newParseError(d, p.broken, f.Findings)
	}
	sortFindings(f.Findings)
	return f, nil
}

// newParseError returns the error of a file. Problems with the reading come
// before those of the structure, and the first one in the file is the text of
// the error. Missing top-level fields come last, because they are only noticed
// at the end of the file.
func newParseError(d *document, structure, warnings []Finding) *ParseError {
	e := &ParseError{Path: d.path}
	sortFindings(d.list)
	if len(d.list) > 0 {
		first := slices.IndexFunc(d.list, func(f Finding) bool {
			return f.Code != "missing-field" || f.Pos.Line > 1 || f.Pos.Col > 1
		})
		e.text = yamlError(d.list[max(first, 0)])
	} else {
		e.text = structure[0].Message
	}
	e.Findings = slices.Concat(d.list, structure, warnings)
	sortFindings(e.Findings)
	return e
}

// yamlError returns the text of a problem with the reading of a file, with
// advice for its kind.
func yamlError(f Finding) string {
	text := fmt.Sprintf("YAML parsing error: %s at line %d column %d", f.Message, f.Pos.Line, f.Pos.Col)
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text + typeHint(f.Message)
}

// parser fills a File.
type parser struct {
	*problems
	f      *File
	broken []Finding // structure, in the order of the checks
}

// parseFile reads the top level; m are its fields.
func (p *parser) parseFile(m *fields) {
	f := p.f
	m.plain = true
	f.Name = m.readText("name", required)
	f.Description = m.readText("description", optional)
	f.Version = "1.0"
	if m.hasValue("version") {
		f.Version = m.readText("version", optional)
	}
	f.Model = m.readText("model", optional)
	f.Temperature = m.readFloat("temperature")
	f.TopP = m.readFloat("top_p")
	f.ReasoningEffort = m.readText("reasoning_effort", optional)
	f.Patience = m.maybeSeconds("retry_patience")
	f.WorkingDir = readWorkingDir(m)
	f.GlobalTools = m.readTexts("global_tools", optional)
	f.MCPServers = m.readTexts("mcp_servers", optional)
	f.ConversationStarters = m.readTexts("conversation_starters", optional)
	f.Skills = Skills{
		Enabled:      m.maybeFlag("skills_enabled"),
		Names:        m.readTexts("enabled_skills", optional),
		Inject:       m.maybeFlag("inject_skill_instructions"),
		Instructions: m.readText("skill_instructions", optional),
	}
	m.findField("enabled_macros") // known, but without effect
	var found []Finding
	f.Variables, found = readVariables(m)
	f.Findings = append(f.Findings, found...)
	p.parseSettings(m)
	p.initialState(m)
	p.parseReducers(m)
	f.Start = m.readText("start", required)
	p.parseNodes(m)
	f.Findings = append(f.Findings, m.unknownKeys("", nil)...)
}

func (p *parser) parseSettings(m *fields) {
	s := newFields(p.problems, source{pos: m.src.pos, node: m.mapping("settings")}, "settings")
	s.plain = true
	if s.src.node != nil {
		s.src.pos = m.src.positionOf(s.src.node)
	}
	p.f.Settings = Settings{
		MaxLoopIterations: s.readCount("max_loop_iterations", 100),
		Timeout:           s.maybeSeconds("timeout"),
		MaxConcurrency:    s.readCount("max_concurrency", 8),
		LogStateSnapshots: s.readFlag("log_state_snapshots", true),
		ValidateBeforeRun: s.readFlag("validate_before_run", true),
	}
	p.f.settings = s.src
	p.f.Findings = append(p.f.Findings, s.unknownKeys("", nil)...)
}

// initialState reads the initial state, which must be a map; another type is
// reported.
func (p *parser) initialState(m *fields) {
	if n := m.mapping("initial_state"); n != nil {
		p.f.InitialState = yamlValue(n).(*jsonvalue.Object)
	}
}

// readVariables returns the agent variables, and findings about their unknown
// keys.
func readVariables(m *fields) (variables []Variable, found []Finding) {
	n := m.getField("variables", optional)
	if n == nil {
		return nil, nil
	}
	list := resolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		m.wrongType(n, "variables", aList)
		return nil, nil
	}
	for i, item := range list.Content {
		name := fmt.Sprintf("variables[%d]", i)
		if resolveAlias(item).Kind != yaml.MappingNode {
			if !isBroken(resolveAlias(item)) {
				m.wrongType(item, name, aMapping)
			}
			continue
		}
		v := newFields(m.p, source{m.src.positionOf(item), item}, name)
		v.plain = true
		variable := Variable{Name: v.readText("name", required), Description: v.readText("description", required)}
		if v.hasValue("default") {
			def := v.readText("default", optional)
			variable.Default = &def
		}
		variables = append(variables, variable)
		found = append(found, v.unknownKeys("", nil)...)
	}
	return variables, found
}

func (p *parser) parseReducers(m *fields) {
	n := m.mapping("reducers")
	if n == nil {
		return
	}
	content := resolveAlias(n).Content
	for i, pair := range m.readPairs("reducers", optional) {
		if _, ok := reducers[pair.value]; !ok {
			m.addFault(content[2*i+1], "reducers."+pair.key, "unknown-variant", unknownVariant(pair.value, reducerNames))
			continue
		}
		p.f.Reducers = append(p.f.Reducers, KeyReducer{pair.key, pair.value})
		p.f.reducers[pair.key] = pair.value
	}
}

func unknownVariant(got string, allowed []string) string {
	return fmt.Sprintf("unknown variant `%s`, expected one of `%s`", got, strings.Join(allowed, "`, `"))
}

func (p *parser) parseNodes(m *fields) {
	m.known = append(m.known, "nodes")
	if m.src.fieldNode("nodes") == nil {
		m.reportMissing("nodes")
		return
	}
	n := m.mapping("nodes")
	if n == nil {
		return
	}
	content := resolveAlias(n).Content
	for i := 0; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		if isBroken(key) {
			continue
		}
		node := &Node{ID: key.Value, src: source{m.src.positionOf(key), value}}
		p.f.Nodes = append(p.f.Nodes, node)
		p.f.byID[node.ID] = node
		switch body := resolveAlias(value); {
		case body.Kind == yaml.MappingNode:
			p.parseNode(node)
		case !isBroken(body):
			m.wrongType(value, "nodes."+key.Value, aMapping)
		}
	}
}

func (p *parser) parseNode(n *Node) {
	m := newFields(p.problems, n.src, "nodes."+n.ID)
	id := m.plainStr("id")
	if id != "" && id != n.ID {
		p.broken = append(p.broken, Finding{
			Severity: SeverityError, Class: ClassParse, Code: "node-id", Node: n.ID, Pos: n.At("id"),
			Message: fmt.Sprintf("Node ID mismatch: key '%s' does not match node.id '%s'", n.ID, id),
			Hint:    "remove id: it is filled in from the key",
		})
	}
	n.Description = m.plainStr("description")
	n.Next = m.readNext()
	typeNode := m.getField("type", required)
	if typeNode == nil {
		return
	}
	name := m.readText("type", required)
	k, ok := kindOf(name)
	if !ok {
		if _, isText := scalarText(typeNode, false); isText {
			p.add(Finding{
				Code: "unknown-variant", Message: prefixPath(m.path+".type", unknownVariant(name, kindOrder)),
				Hint: wording.SuggestNearest(name, kindOrder, "`"), Pos: n.At("type"),
			})
		}
		return
	}
	n.Body = k.decode(m)
	if k.name != "map" {
		for _, pair := range m.readPairs("state_updates", optional) {
			n.Updates = append(n.Updates, Update{pair.key, ParseTemplate(pair.value)})
		}
		if n.Updates == nil && m.hasValue("state_updates") {
			n.Updates = []Update{}
		}
	}
	p.f.Findings = append(p.f.Findings, m.unknownKeys(n.ID, k.hintForKey)...)
}

// checkStructure makes the checks that need more than one field.
func (p *parser) checkStructure() {
	f := p.f
	ids := p.broken // found while reading
	p.broken = nil
	add := func(code string, at Pos, message, hint string) {
		p.broken = append(p.broken, Finding{
			Severity: SeverityError, Class: ClassParse, Code: code, Message: message, Hint: hint, Pos: at,
		})
	}
	if f.Version != "1.0" {
		add("version", f.At("version"), fmt.Sprintf("Unsupported graph schema version '%s'. Supported versions: 1.0", f.Version),
			"this is the version of the file format, not of the agent")
	}
	p.broken = append(p.broken, ids...)
	if f.Name == "" && p.hasText("name") {
		add("empty-name", f.At("name"), "Graph must have a non-empty 'name' field", "")
	}
	switch nodes := f.src.fieldNode("nodes"); {
	case nodes == nil || resolveAlias(nodes).Kind != yaml.MappingNode && !emptyScalar(resolveAlias(nodes)):
	case len(f.Nodes) == 0:
		add("no-nodes", f.At("nodes"), fmt.Sprintf("Graph '%s' has no nodes defined", f.Name), "")
	case f.byID[f.Start] == nil && p.hasText("start"):
		names := make([]string, len(f.Nodes))
		for i, n := range f.Nodes {
			names[i] = n.ID
		}
		add("start", f.At("start"), fmt.Sprintf("Start node '%s' not found in graph '%s'. Available nodes: %s",
			f.Start, f.Name, strings.Join(names, ", ")), wording.SuggestNearest(f.Start, names, "`"))
	}
}

// hasText reports whether a top-level text is set and was read.
func (p *parser) hasText(field string) bool {
	n := p.f.src.fieldNode(field)
	if n == nil {
		return false
	}
	_, ok := scalarText(n, true)
	return ok && !isBroken(resolveAlias(n))
}
