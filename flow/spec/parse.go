package spec

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// Parse reads the text of a graph.yaml. path is only used to name the file in
// messages. All errors are reported at once, in a [*ParseError]. Unknown keys
// are not errors; they are among the findings of the [File].
//
// Parse checks only the file itself: types, required fields, the version, ids
// and the start node. ValidateFile of package check is the validator of the graph.
// Nodes are of the given types; ParseGraph of package flow knows those that
// raddle can run.
func Parse(path string, text []byte, kinds Kinds) (*File, error) {
	d := strictyaml.Read(path, text)
	f := &File{Path: path, Kinds: kinds, FileText: FileText{Text: text}, InitialState: &jsonvalue.Object{}, ByID: map[string]*Node{}, ReducersByKey: map[string]string{}}
	if d.Fatal {
		return nil, kinds.newParseError(d, nil, nil)
	}
	f.Source = d.ReadMapping()
	p := &FileParser{File: f, Problems: &d.Problems}
	if !d.HoldsMapping() {
		return nil, kinds.newParseError(d, nil, nil)
	}
	p.ParseFile(strictyaml.NewFields(p.Problems, p.File.Source, ""))
	p.checkStructure()
	if len(d.List) > 0 || len(p.broken) > 0 {
		return nil, kinds.newParseError(d, p.broken, f.Findings)
	}
	strictyaml.SortFindings(f.Findings)
	return f, nil
}

// newParseError returns the error of a file. Problems with the reading come
// before those of the structure, and the first one in the file is the text of
// the error. Missing top-level fields come last, because they are only noticed
// at the end of the file.
func (kinds Kinds) newParseError(d *strictyaml.Document, structure, warnings []strictyaml.Finding) *ParseError {
	e := &ParseError{Path: d.Path}
	strictyaml.SortFindings(d.List)
	if len(d.List) > 0 {
		first := slices.IndexFunc(d.List, func(f strictyaml.Finding) bool {
			return f.Code != "missing-field" || f.Pos.Line > 1 || f.Pos.Col > 1
		})
		e.text = kinds.yamlError(d.List[max(first, 0)])
	} else {
		e.text = structure[0].Message
	}
	e.Findings = slices.Concat(d.List, structure, warnings)
	strictyaml.SortFindings(e.Findings)
	return e
}

// yamlError returns the text of a problem with the reading of a file, with
// advice for its kind.
func (kinds Kinds) yamlError(f strictyaml.Finding) string {
	text := fmt.Sprintf("YAML parsing error: %s at line %d column %d", f.Message, f.Pos.Line, f.Pos.Col)
	if f.Hint != "" {
		text += " (" + f.Hint + ")"
	}
	return text + kinds.typeHint(f.Message)
}

// FileParser fills a File.
type FileParser struct {
	*strictyaml.Problems
	File   *File
	broken []strictyaml.Finding // structure, in the order of the checks

	defaults []*yaml.Node // keys and values of the defaults of nodes; nil: there are none
}

// ParseFile reads the top level; m are its fields.
func (p *FileParser) ParseFile(m *strictyaml.Fields) {
	f := p.File
	m.Plain = true
	f.Name = m.ReadText("name", strictyaml.Required)
	f.Description = m.ReadText("description", strictyaml.Optional)
	f.Version = "1.0"
	if m.HasValue("version") {
		f.Version = m.ReadText("version", strictyaml.Optional)
	}
	f.Model = m.ReadAlternatives("model")
	f.Temperature = m.ReadFloat("temperature")
	f.TopP = m.ReadFloat("top_p")
	f.ReasoningEffort = m.ReadText("reasoning_effort", strictyaml.Optional)
	f.ParallelCalls = m.ReadSwitch("parallel_calls")
	f.ProviderTools = m.ReadTexts("provider_tools", strictyaml.Optional)
	f.Patience = m.ReadOptionalSeconds("retry_patience")
	f.WorkingDir = ReadWorkingDir(m)
	f.GlobalTools = m.ReadTexts("global_tools", strictyaml.Optional)
	f.MCPServers = m.ReadTexts("mcp_servers", strictyaml.Optional)
	f.ConversationStarters = m.ReadTexts("conversation_starters", strictyaml.Optional)
	f.Skills = readSkills(m)
	f.Hooks = readHooks(m)
	m.FindField("enabled_macros") // known, but without effect
	var found []strictyaml.Finding
	f.Variables, found = readVariables(m)
	f.Findings = append(f.Findings, found...)
	f.Triggers, found = readTriggers(m, true)
	f.Findings = append(f.Findings, found...)
	p.parseSettings(m)
	p.initialState(m)
	p.parseReducers(m)
	f.Start = m.ReadText("start", strictyaml.Required)
	f.Finally = m.ReadText("finally", strictyaml.Optional)
	if f.Budget = readBudget(m, ""); f.Budget != nil {
		f.Findings = append(f.Findings, f.Budget.unknown...)
	}
	p.readDefaults(m)
	p.parseNodes(m)
	p.addBudgetEdges()
	p.readMigrations(m)
	f.Findings = append(f.Findings, m.UnknownKeys("", nil)...)
}

func (p *FileParser) parseSettings(m *strictyaml.Fields) {
	s := strictyaml.NewFields(p.Problems, strictyaml.Mapping{Pos: m.Source.Pos, Node: m.ReadMapping("settings")}, "settings")
	s.Plain = true
	if s.Source.Node != nil {
		s.Source.Pos = m.Source.PositionOf(s.Source.Node)
	}
	p.File.Settings = Settings{
		MaxLoopIterations: s.ReadCount("max_loop_iterations", 100),
		Timeout:           s.ReadOptionalSeconds("timeout"),
		MaxConcurrency:    s.ReadCount("max_concurrency", 8),
		LogStateSnapshots: s.ReadFlag("log_state_snapshots", true),
		ValidateBeforeRun: s.ReadFlag("validate_before_run", true),
	}
	p.File.SettingsSource = s.Source
	p.File.Findings = append(p.File.Findings, s.UnknownKeys("", nil)...)
}

// initialState reads the initial state, which must be a map; another type is
// reported.
func (p *FileParser) initialState(m *strictyaml.Fields) {
	if n := m.ReadMapping("initial_state"); n != nil {
		p.File.InitialState = strictyaml.DecodeValue(n).(*jsonvalue.Object)
	}
}

// readVariables returns the agent variables, and findings about their unknown
// keys.
func readVariables(m *strictyaml.Fields) (variables []Variable, found []strictyaml.Finding) {
	n := m.GetField("variables", strictyaml.Optional)
	if n == nil {
		return nil, nil
	}
	list := strictyaml.ResolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		m.WrongType(n, "variables", strictyaml.WantList)
		return nil, nil
	}
	for i, item := range list.Content {
		name := fmt.Sprintf("variables[%d]", i)
		if strictyaml.ResolveAlias(item).Kind != yaml.MappingNode {
			if !strictyaml.IsBroken(strictyaml.ResolveAlias(item)) {
				m.WrongType(item, name, strictyaml.WantMapping)
			}
			continue
		}
		v := strictyaml.NewFields(m.Problems, strictyaml.Mapping{Pos: m.Source.PositionOf(item), Node: item}, name)
		v.Plain = true
		variable := Variable{Name: v.ReadText("name", strictyaml.Required), Description: v.ReadText("description", strictyaml.Required)}
		if v.HasValue("default") {
			variable.Default = new(v.ReadText("default", strictyaml.Optional))
		}
		variables = append(variables, variable)
		found = append(found, v.UnknownKeys("", nil)...)
	}
	return variables, found
}

func (p *FileParser) parseReducers(m *strictyaml.Fields) {
	n := m.ReadMapping("reducers")
	if n == nil {
		return
	}
	content := strictyaml.ResolveAlias(n).Content
	for _, pair := range m.ReadPairs("reducers", strictyaml.Optional) {
		for strictyaml.IsBroken(content[0]) { // the pairs leave it out
			content = content[2:]
		}
		value := content[1]
		content = content[2:]
		if _, ok := ReducersByKey[pair.Value]; ok {
			p.File.Reducers = append(p.File.Reducers, KeyReducer{pair.Key, pair.Value})
			p.File.ReducersByKey[pair.Key] = pair.Value
		} else if _, isText := strictyaml.ScalarText(value, true); isText && !strictyaml.IsBroken(strictyaml.ResolveAlias(value)) {
			p.Add(strictyaml.Finding{
				Code: "unknown-variant", Message: strictyaml.PrefixPath("reducers."+pair.Key, unknownVariant(pair.Value, ReducerNames)),
				Fix: wording.SuggestNearest(pair.Value, ReducerNames, "`"), Pos: m.Source.PositionOf(value),
			})
		}
	}
}

func unknownVariant(got string, allowed []string) string {
	return fmt.Sprintf("unknown variant `%s`, expected one of `%s`", got, strings.Join(allowed, "`, `"))
}

func (p *FileParser) parseNodes(m *strictyaml.Fields) {
	m.Known = append(m.Known, "nodes")
	if m.Source.FieldNode("nodes") == nil {
		m.ReportMissing("nodes")
		return
	}
	n := m.ReadMapping("nodes")
	if n == nil {
		return
	}
	content := strictyaml.ResolveAlias(n).Content
	for i := 0; i+1 < len(content); i += 2 {
		key := content[i]
		value := content[i+1]
		if strictyaml.IsBroken(key) {
			continue
		}
		node := &Node{ID: key.Value, Source: strictyaml.Mapping{Pos: m.Source.PositionOf(key), Node: value}}
		p.File.Nodes = append(p.File.Nodes, node)
		p.File.ByID[node.ID] = node
		switch body := strictyaml.ResolveAlias(value); {
		case body.Kind == yaml.MappingNode:
			p.parseNode(node)
		case !strictyaml.IsBroken(body):
			m.WrongType(value, "nodes."+key.Value, strictyaml.WantMapping)
		}
	}
}

func (p *FileParser) parseNode(n *Node) {
	m := strictyaml.NewFields(p.Problems, n.Source, "nodes."+n.ID)
	id := m.ReadPlainText("id")
	if id != "" && id != n.ID {
		p.broken = append(p.broken, strictyaml.Finding{
			Severity: strictyaml.SeverityError, Class: strictyaml.ClassParse, Code: "node-id", Node: n.ID, Pos: n.At("id"),
			Message: fmt.Sprintf("Node ID mismatch: key '%s' does not match node.id '%s'", n.ID, id),
			Hint:    "remove id: it is filled in from the key",
		})
	}
	n.Description = m.ReadPlainText("description")
	n.Next = m.ReadNext()
	typeNode := m.GetField("type", strictyaml.Required)
	if typeNode == nil {
		return
	}
	name := m.ReadText("type", strictyaml.Required)
	n.Type = p.File.Kinds.Find(name)
	if n.Type == nil {
		if _, isText := strictyaml.ScalarText(typeNode, false); isText {
			names := p.File.Kinds.Names()
			p.Add(strictyaml.Finding{
				Code: "unknown-variant", Message: strictyaml.PrefixPath(m.Path+".type", unknownVariant(name, names)),
				Hint: wording.SuggestNearest(name, names, "`"), Pos: n.At("type"),
			})
		}
		return
	}
	if p.defaults != nil {
		n.Source = p.withDefaults(n)
		m.Source = n.Source
	}
	n.Type.DecodeNode(m, n)
	if n.Budget != nil {
		p.File.Findings = append(p.File.Findings, n.Budget.unknown...)
	}
	p.File.Findings = append(p.File.Findings, m.UnknownKeys(n.ID, p.File.Kinds.hintForKey(n.Type))...)
}

// checkStructure makes the checks that need more than one field.
func (p *FileParser) checkStructure() {
	f := p.File
	ids := p.broken // found while reading
	p.broken = nil
	add := func(code string, at strictyaml.Pos, message, hint string) {
		p.broken = append(p.broken, strictyaml.Finding{
			Severity: strictyaml.SeverityError, Class: strictyaml.ClassParse, Code: code, Message: message, Hint: hint, Pos: at,
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
	switch nodes := f.Source.FieldNode("nodes"); {
	case nodes == nil || strictyaml.ResolveAlias(nodes).Kind != yaml.MappingNode && !strictyaml.IsEmpty(strictyaml.ResolveAlias(nodes)):
	case len(f.Nodes) == 0:
		add("no-nodes", f.At("nodes"), fmt.Sprintf("Graph '%s' has no nodes defined", f.Name), "")
	default:
		names := make([]string, len(f.Nodes))
		for i, n := range f.Nodes {
			names[i] = n.ID
		}
		available := fmt.Sprintf("not found in graph '%s'. Available nodes: %s", f.Name, strings.Join(names, ", "))
		if f.ByID[f.Start] == nil && p.hasText("start") {
			add("start", f.At("start"), fmt.Sprintf("Start node '%s' %s", f.Start, available), wording.SuggestNearest(f.Start, names, "`"))
		}
		if f.Finally != "" && f.ByID[f.Finally] == nil {
			add("finally", f.At("finally"), fmt.Sprintf("Node '%s' of 'finally' %s", f.Finally, available), wording.SuggestNearest(f.Finally, names, "`"))
		}
	}
}

// hasText reports whether a top-level text is set and was read.
func (p *FileParser) hasText(field string) bool {
	n := p.File.Source.FieldNode(field)
	if n == nil {
		return false
	}
	_, ok := strictyaml.ScalarText(n, true)
	return ok && !strictyaml.IsBroken(strictyaml.ResolveAlias(n))
}
