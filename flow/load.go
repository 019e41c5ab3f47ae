package flow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/rag"
)

const (
	graphFile  = "graph.yaml"
	configFile = "config.yaml"
)

// LoadError says that an agent cannot be loaded. If its file was read, Findings
// contains everything that is wrong with it.
type LoadError struct {
	Agent    string
	Findings []strictyaml.Finding
	err      error
}

// Error returns the text of the cause.
func (e *LoadError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *LoadError) Unwrap() error { return e.err }

// Load reads an agent, checks it, and reads the graphs that its agent nodes
// run. path is an agent directory or a graph.yaml. It fails with a [*LoadError]
// if the file is not a graph or the environment does not allow the agent. The
// findings of the validator are in [Agent.Findings]; they only prevent the
// agent from running.
func Load(path string, h Host) (*Agent, error) {
	dir, err := agentDir(path)
	if err != nil {
		return nil, err
	}
	if h.Redactor == nil {
		h.Redactor = NewRedactor()
	}
	quiet := h
	quiet.Retrieval.Confirm = nil
	quiet.Retrieval.Ask = nil
	l := &loader{host: &h, nonInteractive: &quiet, agents: map[loadContext]*Agent{}, spawnSets: map[spawnSetKey]*spawnSet{}, spawnBases: &spawnBases{make(chan struct{}, 1), map[*Agent]bool{}}}
	h.log().Log(context.Background(), LevelTrace, "loading the agent", "dir", dir)
	l.root = loadContext{dir: dir, depth: h.Depth}
	return l.loadAgent(l.root)
}

// agentDir returns the absolute directory of an agent, given its directory or
// its file.
func agentDir(path string) (string, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if base := filepath.Base(dir); base == graphFile || base == configFile {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir)
		}
	}
	return dir, nil
}

func parentOf(dir string) string { return filepath.Dir(filepath.Clean(dir)) }

// loader reads agents, each once for every slot.
type loader struct {
	root           loadContext // of the agent that is loaded, and not of those below it
	host           *Host
	nonInteractive *Host // the same without questions before the run: for spawned agents, and those below them
	agents         map[loadContext]*Agent
	spawnSets      map[spawnSetKey]*spawnSet
	spawnBases     *spawnBases
}

// loadContext is the place in which an agent runs.
type loadContext struct {
	dir            string
	depth          int    // minimum depth
	parent         string // the model of the agent that spawns it, for an agent that names none
	member         bool   // a member of a team: spawned by a model
	nonInteractive bool   // below such an agent
	asks           bool   // in a team in which questions for the person go to the agent that spawned the one that asks
}

func (l *loader) loadAgent(s loadContext) (*Agent, error) {
	name := filepath.Base(s.dir)
	if a := l.agents[s]; a != nil {
		return a, nil
	}
	text, err := l.host.readDefinition(name, s.dir)
	if err != nil {
		return nil, &LoadError{Agent: name, err: err}
	}
	a := &Agent{Name: name, Dir: s.dir, host: l.host, loadContext: s, children: map[string]*Agent{}, childErrors: map[string]error{}, bases: map[string]Searcher{}, spawnBases: l.spawnBases}
	if s.member || s.nonInteractive {
		a.host = l.nonInteractive
	}
	if l.host.hasFile(filepath.Join(s.dir, configFile)) {
		if s == l.root && len(l.host.Templates) > 0 {
			return nil, &LoadError{Agent: name, err: spec.Errorf("agent '%s' has a config.yaml, and no nodes with prompts that could be replaced", name)}
		}
		return l.wrapLoadError(a, l.loadConfig(a, text))
	}
	return l.wrapLoadError(a, l.loadGraph(a, text))
}

// wrapLoadError returns the result of a load, with its error as a [*LoadError].
func (l *loader) wrapLoadError(a *Agent, err error) (*Agent, error) {
	var (
		parse *spec.ParseError
		list  strictyaml.Lister
	)
	switch {
	case err == nil:
		return a, nil
	case errors.As(err, &parse):
		return nil, &LoadError{Agent: a.Name, Findings: parse.Findings, err: err}
	case errors.As(err, &list):
		return nil, &LoadError{Agent: a.Name, Findings: list.ListFindings(), err: err}
	}
	return nil, &LoadError{Agent: a.Name, err: err}
}

// loadGraph reads a graph.yaml into the agent.
func (l *loader) loadGraph(a *Agent, text []byte) (err error) {
	path := filepath.Join(a.Dir, graphFile)
	if a.File, err = spec.Parse(path, text, a.host.nodeKinds()); err != nil {
		return spec.Errorf("Failed to load graph.yaml for agent '%s': Failed to parse graph file at '%s': %w", a.Name, path, err)
	}
	if err := applyGraphEnvironment(a, l.host.getenv); err != nil {
		return err
	}
	if a.loadContext == l.root {
		if err := replaceTemplates(a, l.host.Templates); err != nil {
			return err
		}
	}
	if err := checkFormat(a); err != nil {
		return err
	}
	if err := openTools(a, a.File.GlobalTools, a.File.MCPServers); err != nil {
		return err
	}
	l.agents[a.loadContext] = a
	a.Findings = collectFindings(a)
	adviseDocuments(a)
	l.loadChildren(a)
	l.resolveSpawnSet(a)
	return nil
}

// openTools opens the agent's tools. A missing tool causes a warning.
func openTools(a *Agent, global, servers []string) (err error) {
	learnSecrets(a)
	loadSkills(a)
	need := ToolNeed{Agent: a.Name, Dir: a.Dir, Global: global, Servers: servers, Variables: variableValues(a)}
	for _, s := range ListSkills(a) {
		need.SkillTools = appendNew(need.SkillTools, s.Tools...)
		need.SkillServers = appendNew(need.SkillServers, s.Servers...)
	}
	a.Tools, err = a.host.openToolset(need)
	if err != nil {
		return spec.Errorf("the tools of agent '%s': %w", a.Name, err)
	}
	return nil
}

// toolFindings returns the problems of the agent's tools: in the file that causes them, otherwise at the name in the
// agent's file. If the agent lists tools and none exists, the problems are certain.
func toolFindings(a *Agent) []strictyaml.Finding {
	listed, source := listedTools(a)
	var found []strictyaml.Finding
	for _, p := range a.Tools.Problems {
		f := strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "tool-missing", Message: p.Text, Hint: p.Hint, Pos: p.Pos}
		switch {
		case p.Pos.File != "":
		case p.Server != "":
			f.Pos = findItem(source, "mcp_servers", p.Server)
		default:
			f.Pos = findItem(source, "global_tools", p.Tool)
			f.Certain = p.Tool != "" && len(listed) > 0 && len(a.Tools.Tools) == 0
		}
		found = append(found, f)
	}
	return found
}

// listedTools returns the global tools that the agent's file lists, and the file's top level.
func listedTools(a *Agent) ([]string, strictyaml.Mapping) {
	if a.Config != nil {
		return a.Config.GlobalTools, a.Config.Source
	}
	return a.File.GlobalTools, a.File.Source
}

// findItem returns the position of the item of a list with a text, otherwise that of the list.
func findItem(m strictyaml.Mapping, field, text string) strictyaml.Pos {
	if n := m.FieldNode(field); n != nil && text != "" {
		for i, item := range strictyaml.ResolveAlias(n).Content {
			if s, ok := strictyaml.ScalarText(item, true); ok && s == text {
				return m.ItemPositions(field)(i)
			}
		}
	}
	return m.FieldPosition(field)
}

// readDefinition reads the only definition file of an agent directory.
func (h *Host) readDefinition(name, dir string) ([]byte, error) {
	path := filepath.Join(dir, graphFile)
	config := filepath.Join(dir, configFile)
	switch isGraph, isConfig := h.hasFile(path), h.hasFile(config); {
	case isGraph && isConfig:
		return nil, spec.Errorf("Agent '%s' has both config.yaml and graph.yaml. A graph agent is defined by graph.yaml alone; a normal agent by config.yaml alone. Remove one of the two files.", name)
	case isConfig:
		text, err := h.readFile(config)
		if err != nil {
			return nil, spec.Errorf("Failed to read agent config file at '%s': %w", config, err)
		}
		return text, nil
	case !isGraph && check.FileExists(filepath.Join(dir, "index.yaml")):
		return nil, spec.Errorf("Agent '%s' has neither a config.yaml nor a graph.yaml at '%s'. It has an index.yaml, as llm-functions and aichat write it: rename that to config.yaml", name, dir)
	case !isGraph:
		return nil, spec.Errorf("Agent '%s' has neither a config.yaml nor a graph.yaml at '%s'", name, dir)
	}
	text, err := h.readFile(path)
	if err != nil {
		return nil, spec.Errorf("Failed to load graph.yaml for agent '%s': Failed to read graph file at '%s': %w", name, path, err)
	}
	return text, nil
}

// readFile reads a file, but not one that is far too large. Parse checks the exact size.
func (h *Host) readFile(path string) ([]byte, error) {
	if text, ok := h.Unsaved[path]; ok {
		return text, nil
	}
	return plainfile.Read(path, 2*strictyaml.MaxFileSize)
}

// hasFile reports whether there is something at a path, or an unsaved text.
func (h *Host) hasFile(path string) bool {
	_, ok := h.Unsaved[path]
	return ok || check.FileExists(path)
}

// applyGraphEnvironment applies the environment's values for this agent. The error names every value that
// cannot be used.
func applyGraphEnvironment(a *Agent, getenv func(string) string) error {
	prefix := envPrefix(a.Name)
	if v := getenv(prefix + "MODEL"); v != "" {
		a.File.Model = v
	}
	return errors.Join(
		overrideField(getenv, prefix+"TEMPERATURE", &a.File.Temperature, parseNumber),
		overrideField(getenv, prefix+"TOP_P", &a.File.TopP, parseNumber),
		overrideField(getenv, prefix+"GLOBAL_TOOLS", &a.File.GlobalTools, parseNames),
		overrideField(getenv, prefix+"MCP_SERVERS", &a.File.MCPServers, parseNames),
	)
}

// overrideField sets a field to the value of an environment variable that is not empty.
func overrideField[T any](getenv func(string) string, name string, field *T, parse func(string) (T, error)) error {
	text := getenv(name)
	if text == "" {
		return nil
	}
	value, err := parse(text)
	if err != nil {
		return fmt.Errorf("the environment variable %s: %w", name, err)
	}
	*field = value
	return nil
}

func parseNumber(text string) (*float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	return &f, nil
}

// checkFormat makes the checks of the file format that come before its validator.
func checkFormat(a *Agent) error {
	h := a.host
	f := a.File
	if id := h.findUnknownModel(a.Dir, f.Model); h.Override == "" && id != "" {
		return &fieldError{[]strictyaml.Finding{unknownModel(h, a, id)}, spec.Errorf("%s", h.unknownModel(id))}
	}
	if h.Session != "" && a.depth == h.Depth {
		return spec.Errorf("Graph-based agent '%s' does not support sessions. The graph manages its own state; re-run without a session.", a.Name)
	}
	return admitEffort(a)
}

// A fieldError is an error about places in the agent's file.
type fieldError struct {
	findings []strictyaml.Finding
	err      error // about the first of them
}

func (e *fieldError) Error() string { return e.err.Error() }

// Unwrap returns the error in the words of the file format.
func (e *fieldError) Unwrap() error { return e.err }

// ListFindings returns the error as findings.
func (e *fieldError) ListFindings() []strictyaml.Finding { return e.findings }

// unknownModel returns the finding about the model of an agent that does not exist.
func unknownModel(h *Host, a *Agent, id string) strictyaml.Finding {
	return strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "unknown-model",
		Message: "Unknown chat model '" + id + "'", Hint: h.modelHint(id), Pos: a.At("model")}
}

// admitEffort compares the graph's reasoning_effort with the levels of its
// model.
func admitEffort(a *Agent) error {
	effort := a.File.ReasoningEffort
	facts := a.modelFacts(a.modelID(""))
	switch {
	case facts.TakesEffort(effort):
		return nil
	case len(facts.Efforts) == 0:
		return spec.Errorf("Agent has reasoning_effort '%s' configured but the model does not support reasoning effort", effort)
	}
	return spec.Errorf("Agent's reasoning_effort '%s' is not valid for the model. Supported levels: %s", effort, facts.nameEfforts())
}

// TakesEffort reports whether requests for the model may have a reasoning effort: a level, a number of tokens, or ""
// for none. It is also true if the levels of the model are unknown.
func (f ModelFacts) TakesEffort(effort string) bool {
	if effort == "" || f.Efforts == nil || slices.Contains(f.Efforts, effort) {
		return true
	}
	tokens, err := strconv.Atoi(effort)
	return err == nil && tokens >= 0 && f.EffortTokens
}

// nameEfforts returns what TakesEffort accepts, for messages.
func (f ModelFacts) nameEfforts() string {
	text := strings.Join(f.Efforts, ", ")
	if f.EffortTokens {
		text += ", or a number of tokens"
	}
	return text
}

// checkEffort returns a finding if the model of an agent or a node does not have its effort; at is where the effort
// stands.
func checkEffort(a *Agent, node, model, effort string, at strictyaml.Pos) (list []strictyaml.Finding) {
	id := a.modelID(model)
	facts := a.modelFacts(id)
	if facts.TakesEffort(effort) {
		return nil
	}
	found := strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "reasoning-effort", Node: node, Pos: at,
		Message: fmt.Sprintf("reasoning_effort: model '%s' does not have the effort '%s'", id, effort), Hint: "its efforts are " + facts.nameEfforts()}
	if len(facts.Efforts) == 0 {
		found.Hint = "the model does not reason: remove the line, or use another model"
	}
	return []strictyaml.Finding{found}
}

// checkProvided returns findings for tools that the provider of the model of an agent or a node does not have; at is
// where they stand.
func checkProvided(a *Agent, node, model string, tools []string, at strictyaml.Pos) (list []strictyaml.Finding) {
	id := a.modelID(model)
	has := a.modelFacts(id).Provided
	for _, name := range tools {
		if has == nil || slices.Contains(has, name) {
			continue
		}
		hint := "its provider has " + strings.Join(has, ", ")
		if len(has) == 0 {
			hint = "its provider has none that raddle knows: remove the line, or use another model"
		}
		list = append(list, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "provider-tools", Node: node, Pos: at,
			Message: fmt.Sprintf("provider_tools: the provider of model '%s' does not have the tool '%s'", id, name), Hint: hint})
	}
	return list
}

// checkCostLimit returns a finding if an agent limits costs and the price of its model is unknown.
func checkCostLimit(a *Agent) (list []strictyaml.Finding) {
	id := a.modelID("")
	limit := a.Config.Limits.Cost
	if limit == nil || *limit == 0 || id == "" || a.host.Models == nil || a.host.Offline || !a.host.Models.IsKnown(a.Dir, id) {
		return nil
	}
	if !a.modelFacts(id).IsUnpriced() {
		return nil
	}
	return []strictyaml.Finding{{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "unknown-price", Pos: a.At("max_cost_per_turn"),
		Message: fmt.Sprintf("max_cost_per_turn: the price of model '%s' is not known", id),
		Hint:    priceHint}}
}

// priceHint is what to do about an unknown price.
const priceHint = "set input_price and output_price of the model in raddle's config.yaml, or assume_price for all such models; raddle models update reads newer prices"

// collectFindings collects the findings of the file, the validator and the proof.
func collectFindings(a *Agent) []strictyaml.Finding {
	findings := append([]strictyaml.Finding(nil), a.File.Findings...)
	findings = append(findings, check.ValidateFile(a.File, a.host.checkContext(a.Dir, a.Tools))...)
	findings = slices.Concat(findings, toolFindings(a), skillFindings(a), hookFindings(a), checkBudgetPrices(a))
	findings = append(findings, check.ProvePlaceholders(a.File)...)
	findings = append(findings, check.AdviseFile(a.File, a.host.Unsaved)...)
	for _, n := range a.File.Nodes {
		if asks, is := n.Body.(*llmNode); is {
			findings = append(findings, checkEffort(a, n.ID, asks.model, asks.reasoningEffort, n.At("reasoning_effort"))...)
			tools := asks.providerTools
			at := n.At("provider_tools")
			if tools == nil {
				tools = a.File.ProviderTools
				at = a.At("provider_tools")
			}
			findings = append(findings, checkProvided(a, n.ID, asks.model, tools, at)...)
		}
	}
	if a.host.Strict {
		findings = strictyaml.PromoteUnknownKeys(findings)
	}
	return findings
}

// loadChildren loads the graphs that the agent nodes run, down to the maximum depth.
// A child that cannot be loaded fails the node that runs it.
func (l *loader) loadChildren(a *Agent) {
	if a.depth+1 > l.host.maxDepth() || l.host.Bounds.NoSpawn {
		return
	}
	for _, n := range a.File.Nodes {
		name := needsOf(n).agent
		if name == "" || a.children[name] != nil {
			continue
		}
		dir := l.findAgentDir(a, name)
		if dir == "" || l.host.Child != nil && !check.FileExists(filepath.Join(dir, graphFile)) {
			continue // the validator has reported it, or Host.Child runs it
		}
		child, err := l.loadAgent(loadContext{dir: dir, depth: a.depth + 1, parent: a.modelID(""), nonInteractive: a.member || a.nonInteractive, asks: a.asks})
		if err != nil {
			addLoadFailure(a, n, name, err)
			continue
		}
		a.children[name] = child
	}
}

// addLoadFailure records that a child cannot be loaded, with everything that is wrong
// with it.
func addLoadFailure(a *Agent, n *spec.Node, name string, err error) {
	a.childErrors[name] = err
	err = spec.Errorf("Agent '%s' failed: %w", name, err)
	a.Findings = append(a.Findings, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassParse, Code: "agent-broken", Node: n.ID, Message: err.Error(), Pos: n.At("agent")})
	var load *LoadError
	if errors.As(err, &load) {
		a.Findings = append(a.Findings, load.Findings...)
	}
}

// lookIn returns the directories in which an agent's own agents are searched.
func (l *loader) lookIn(a *Agent) []string {
	return l.host.searchFrom(a.Dir)
}

// findAgentDir finds an agent: next to its parent, then in the host's directories.
func (l *loader) findAgentDir(a *Agent, name string) string {
	for _, dir := range l.lookIn(a) {
		path := filepath.Join(dir, name)
		if l.host.AgentDirs.Outdated != nil && l.host.AgentDirs.Outdated(path) {
			continue
		}
		if check.FileExists(filepath.Join(path, graphFile)) || check.FileExists(filepath.Join(path, configFile)) {
			return path
		}
	}
	return ""
}

// loadConfig reads a config.yaml into the agent.
func (l *loader) loadConfig(a *Agent, text []byte) (err error) {
	path := filepath.Join(a.Dir, configFile)
	if a.Config, err = spec.ParseConfig(path, text); err != nil {
		return spec.Errorf("Failed to load agent config at '%s': %w", path, err)
	}
	applyEnvironment(a.Config, a.Name, l.host.getenv)
	h := a.host
	if id := h.findUnknownModel(a.Dir, a.Config.Sampling.Model); h.Override == "" && id != "" {
		return &fieldError{[]strictyaml.Finding{unknownModel(h, a, id)}, spec.Errorf("Failed to load agent config at '%s': %s", path, h.unknownModel(id))}
	}
	faults := slices.Concat(checkEffort(a, "", a.Config.Sampling.Model, a.Config.Sampling.ReasoningEffort, a.At("reasoning_effort")),
		checkProvided(a, "", a.Config.Sampling.Model, a.Config.Sampling.ProviderTools, a.At("provider_tools")), checkCostLimit(a))
	if len(faults) > 0 {
		return &fieldError{faults, spec.Errorf("Failed to load agent config at '%s': %s", path, faults[0].Message)}
	}
	if h.Bounds.NoSpawn {
		return spec.Errorf("Please enable function calling support before using the agent.")
	}
	if err := openTools(a, a.Config.GlobalTools, a.Config.MCPServers); err != nil {
		return err
	}
	l.agents[a.loadContext] = a
	a.Findings = slices.Concat(a.Config.Findings, toolFindings(a), skillFindings(a), projectFindings(a))
	if id := h.findUnknownModel(a.Dir, a.Config.Team.SummaryModel); h.Override == "" && id != "" {
		addWarning(a, strictyaml.Finding{Code: "summary-model", Message: fmt.Sprintf("summarization_model: unknown chat model '%s'; long outputs of agents will be cut", id), Pos: a.At("summarization_model")})
	}
	if id := a.Config.Documents.Model; id != rag.Keyword && h.findUnknownModel(a.Dir, id) != "" {
		addWarning(a, strictyaml.Finding{Code: "embedding-model", Message: fmt.Sprintf("embedding_model: unknown model '%s'; the documents cannot be searched", id), Hint: "name CLIENT:MODEL, or `keyword` to search by words alone", Pos: a.At("embedding_model")})
	}
	adviseDocuments(a)
	if a.Config.Team.Spawnable != nil && !a.Config.Team.CanSpawn {
		addWarning(a, strictyaml.Finding{Code: "spawnable-unused", Message: "spawnable_agents has no effect", Hint: "add `can_spawn_agents: true`", Pos: a.At("spawnable_agents")})
	}
	l.resolveSpawnSet(a)
	if h.Strict {
		a.Findings = strictyaml.PromoteUnknownKeys(a.Findings)
	}
	return nil
}

// learnSecrets adds the secrets among the agent's variables to the redactor. A
// value that names a variable of the environment is not a secret itself.
func learnSecrets(a *Agent) {
	for name, value := range variableValues(a) {
		if !strings.Contains(value, "{{") {
			a.host.Redactor.AddNamed(name, value)
		}
	}
	for _, k := range a.knowledgeBases() {
		for _, document := range k.documents {
			a.host.Redactor.AddNamed("", document) // its address may contain a password
		}
	}
}
