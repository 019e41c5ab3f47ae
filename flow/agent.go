package flow

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/skill"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Agent is an agent directory that has been read, with the agents that it runs.
// It is either a graph or a model with tools. It does not change after Load.
type Agent struct {
	Name     string               // of the directory
	Dir      string               // absolute
	File     *spec.File           // of a graph; else nil
	Config   *spec.Config         // of a model with tools; else nil
	Tools    *Toolset             // what it may call; an llm node may call what it lists
	Findings []strictyaml.Finding // of the file, the validator and the proof, in the order in which they run

	host          *Host
	skillProblems []string // skills that cannot be read
	loadContext
	children    map[string]*Agent   // by the name that agent nodes use
	spawnSet    *spawnSet           // the agents that can be spawned under this one; nil: none
	bases       map[string]Searcher // by the id of their rag node; filled by Prepare
	spawnBases  *spawnBases
	skills      []skill.Skill    // visible ones, sorted by name
	childErrors map[string]error // children that cannot be loaded, by the name that agent nodes use
}

// childFault returns why the child of an agent node cannot run: it cannot be
// loaded, or its file is rejected. The node fails with this error when it is
// reached.
func (a *Agent) childFault(name string) error {
	if err := a.childErrors[name]; err != nil {
		return err
	}
	if child := a.children[name]; child != nil {
		return child.ValidationFailure()
	}
	return nil
}

// ValidationFailure returns the [*spec.ValidationError] that prevents the agent from running,
// or nil if there is none or the file disables the validator.
func (a *Agent) ValidationFailure() error {
	if a.Config != nil || !a.File.Settings.ValidateBeforeRun {
		return nil
	}
	return spec.ValidationFailure(a.Findings)
}

// FindingsForRun returns the findings that are shown when the agent runs: those of ListFindings, and of the validator only
// if the file does not disable it.
func (a *Agent) FindingsForRun() []strictyaml.Finding {
	if a.Config != nil {
		return a.Findings
	}
	list := a.ListFindings()
	if a.File.Settings.ValidateBeforeRun {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(f strictyaml.Finding) bool { return f.Class == strictyaml.ClassValidate })
}

// ScriptFiles returns the files that may run as scripts: those of its tools and
// of its script nodes. The paths of script nodes are as in the file.
func (a *Agent) ScriptFiles() []string {
	var files []string
	if a.Tools != nil {
		files = slices.Clone(a.Tools.Scripts)
	}
	if a.File == nil {
		return files
	}
	for _, n := range a.File.Nodes {
		if script := needsOf(n).script; script != "" {
			files = append(files, script)
		}
	}
	return files
}

// Agents returns the agent and all agents below it that its files name: those
// that agent nodes run, and those that may be spawned. Each directory is listed
// once, the agent first, then in the order of the files.
func (a *Agent) Agents() []*Agent {
	seen := map[string]bool{}
	var all []*Agent
	add := func(child *Agent) {
		if child != nil && !seen[child.Dir] {
			seen[child.Dir] = true
			all = append(all, child)
		}
	}
	add(a)
	for i := 0; i < len(all); i++ {
		if all[i].spawnSet != nil {
			for _, name := range all[i].spawnSet.named {
				add(all[i].spawnSet.agents[name])
			}
		}
		if all[i].File == nil {
			continue
		}
		for _, n := range all[i].File.Nodes {
			add(all[i].children[needsOf(n).agent])
		}
	}
	return all
}

// Input returns the input that starts a run: the initial state with the prompt, and with the pictures and documents
// that are attached to it. An agent must take those: see [TakesMedia].
func (a *Agent) Input(prompt string, media ...llm.Part) graph.Input {
	media = llm.RedactMessage(llm.Message{Parts: media}, a.host.redact).Parts
	return graph.Input{Label: a.Name, Set: a.initialWrites(a.Redact(prompt), media)}
}

// TakesMedia reports whether pictures and documents that are attached to the prompt of an agent reach a model. In a
// graph they go to the nodes whose own prompt has the prompt of the run, {{initial_prompt}}.
func TakesMedia(a *Agent) bool {
	if a.Config != nil {
		return true
	}
	return slices.ContainsFunc(a.File.Nodes, func(n *spec.Node) bool {
		switch b := n.Body.(type) {
		case *llmNode:
			return hasRunPrompt(b.prompt)
		case *agentNode:
			child := a.children[b.agent]
			return hasRunPrompt(b.prompt) && child != nil && child != a && TakesMedia(child)
		}
		return false
	})
}

// hasRunPrompt reports whether a template has the prompt of the run.
func hasRunPrompt(t spec.Template) bool { return slices.Contains(t.Keys(), spec.PromptKey) }

// InterruptAnswers returns the answers that end an interrupted turn of the agent which waits: see
// agent.InterruptAnswers.
func (a *Agent) InterruptAnswers(open []graph.Question) []graph.Answer {
	tools := agent.NodeAct
	if a.spawnSet != nil {
		tools = team.LeadNode(tools)
	}
	return agent.InterruptAnswers(open, tools)
}

// CompactInput returns the input of a run that summarizes the conversation of a session.
func (a *Agent) CompactInput() graph.Input {
	return graph.Input{Label: a.Name, Set: append(turnWrites("", nil), agent.CompactTurn()...)}
}

// Redact removes the known secrets from a text.
func (a *Agent) Redact(text string) string { return a.host.redact(text) }

// initialWrites returns the first writes of a run. They replace values: reducers
// combine only what nodes write.
func (a *Agent) initialWrites(prompt string, media []llm.Part) []graph.Write {
	if a.Config != nil {
		return turnWrites(prompt, media)
	}
	keys := &keySet{file: a.File}
	var set []graph.Write
	for name, v := range a.File.InitialState.All() {
		if name != spec.PromptKey {
			set = append(set, keys.replaceValue(name, a.host.redactValue(v)))
		}
	}
	if len(media) > 0 {
		set = append(set, mediaKey.Set(llm.Message{Role: llm.RoleUser, Parts: media}))
	}
	return append(set, keys.replaceValue(spec.PromptKey, prompt))
}

// StateWrites returns writes that give keys of a graph's state other initial values than its file does. Append them to
// the Set of its Input. It returns none if values is nil, and for an agent of a config.yaml, which has no such values.
func StateWrites(a *Agent, values *jsonvalue.Object) (set []graph.Write) {
	if a.Config != nil || values == nil {
		return nil
	}
	keys := &keySet{file: a.File}
	for name, v := range values.All() {
		set = append(set, keys.replaceValue(name, a.host.redactValue(v)))
	}
	return set
}

// Outcome is the result of an agent's run for its caller.
type Outcome struct {
	Output   string
	ExitCode int // the exit code for the process, from the end node; 0: the default
}

// OutcomeOf returns the outcome of a run that is [graph.Done].
func OutcomeOf(r graph.Result) Outcome { return newOutcome(r.Value) }

func newOutcome(value any) Outcome {
	switch v := value.(type) {
	case string:
		return Outcome{Output: v}
	case map[string]any:
		output, _ := v["output"].(string)
		code, _ := v["exit_code"].(int)
		return Outcome{Output: output, ExitCode: code}
	}
	return Outcome{}
}

func (o Outcome) toHalt() *graph.Halt {
	if o.ExitCode == 0 {
		return &graph.Halt{Value: o.Output}
	}
	return &graph.Halt{Value: map[string]any{"output": o.Output, "exit_code": o.ExitCode}}
}

// modelID returns the id of the model that a node of the agent calls, or "" if no
// model is set.
func (a *Agent) modelID(own string) string {
	return cmp.Or(a.host.Override, own, ownModel(a), a.parent, a.host.Model)
}

// DefaultModel returns the id of the model that the agent's nodes call if they name none; "" if no model is set.
func (a *Agent) DefaultModel() string { return a.modelID("") }

// ChildAt returns what runs below a node of a graph: an agent, or a conversation with a model if talks is true. It is
// nil and false for every other node, and for an agent that is not a graph.
func (a *Agent) ChildAt(node string) (child *Agent, talks bool) {
	if a.File == nil || a.File.Node(node) == nil {
		return nil, false
	}
	needs := needsOf(a.File.Node(node))
	return a.children[needs.agent], needs.request != nil
}

// Spawnable returns the agent of a name that the agent may start, or nil.
func (a *Agent) Spawnable(name string) *Agent {
	if a.spawnSet == nil {
		return nil
	}
	return a.spawnSet.agents[name]
}

func ownModel(a *Agent) string {
	if a.Config != nil {
		return a.Config.Sampling.Model
	}
	return a.File.Model
}

// Variables returns the variables that the agent's file declares.
func (a *Agent) Variables() []spec.Variable {
	if a.Config != nil {
		return a.Config.Variables
	}
	return a.File.Variables
}

// Models returns the ids of the models that the agent itself may call, each
// once.
func (a *Agent) Models() []string {
	var ids []string
	add := func(own string) {
		for _, id := range SplitModels(a.modelID(own)) {
			if id != "" && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if a.Config != nil {
		add("")
		return ids
	}
	for _, n := range a.File.Nodes {
		if r := needsOf(n).request; r != nil {
			add(r.Model)
		}
	}
	return ids
}

// Path returns the path of the file that defines the agent.
func (a *Agent) Path() string {
	if a.Config != nil {
		return a.Config.Path
	}
	return a.File.Path
}

// At returns the position of a top-level field in the agent's file, or the top
// of the file if the field is missing.
func (a *Agent) At(field string) strictyaml.Pos {
	if a.Config != nil {
		return a.Config.At(field)
	}
	return a.File.At(field)
}

// MissingModelError says that nodes call a model and none is set.
type MissingModelError struct {
	Agent string
	Node  string // the first of these nodes; empty: the agent itself
	Pos   strictyaml.Pos
}

// Error names the agent or the node, and its position.
func (e *MissingModelError) Error() string { return e.Pos.String() + ": " + e.describe() }

// describe returns the error without the position.
func (e *MissingModelError) describe() string {
	if e.Node == "" {
		return fmt.Sprintf("agent '%s' needs a model, and none is set", e.Agent)
	}
	return fmt.Sprintf("node '%s' of agent '%s' needs a model, and none is set", e.Node, e.Agent)
}

// VariablesError says that the caller must set agent variables.
type VariablesError struct {
	Missing []spec.Variable
}

// Error lists the variables, one per line.
func (e *VariablesError) Error() string {
	var b strings.Builder
	b.WriteString("The following agent variables are required:")
	for _, v := range e.Missing {
		b.WriteString("\n  - " + v.Name + ": " + v.Description)
	}
	return b.String()
}

// checkReady returns why the agent cannot run although its file is valid. Errors of
// children are reported by the nodes that run them.
func (a *Agent) checkReady() error {
	if a.host.Tooling.Hooks == nil && len(ListHooks(a)) > 0 {
		return fmt.Errorf("agent '%s' has hooks, and this program runs none: set Host.Tooling.Hooks", a.Name)
	}
	if a.Config != nil {
		if a.modelID("") == "" {
			return &MissingModelError{Agent: a.Name, Pos: a.At("model")}
		}
		return checkVariables(a)
	}
	for _, n := range a.reachableNodes() {
		if r := needsOf(n).request; r != nil && a.modelID(r.Model) == "" {
			return &MissingModelError{a.Name, n.ID, n.Pos()}
		}
	}
	return checkVariables(a)
}

// checkVariables returns an error that names the variables that still need a value, or
// nil.
func checkVariables(a *Agent) error {
	if missing := a.missingVariables(); missing != nil {
		return &VariablesError{missing}
	}
	return nil
}

func (a *Agent) missingVariables() (missing []spec.Variable) {
	for _, v := range a.Variables() {
		if _, ok := variableValue(a, v); !ok {
			missing = append(missing, v)
		}
	}
	return missing
}

// MissingVariables returns the variables without a value, each name once: those of
// the agent, without which it cannot run, and those of the graphs below it, whose nodes
// fail without them.
func (a *Agent) MissingVariables() []spec.Variable {
	missing := a.missingVariables()
	for _, child := range a.graphsBelow() {
		for _, v := range child.missingVariables() {
			if !slices.ContainsFunc(missing, func(m spec.Variable) bool { return m.Name == v.Name }) {
				missing = append(missing, v)
			}
		}
	}
	return missing
}

// UnreadyChildren returns a warning for each agent node, here and in the graphs below, that will
// fail because its agent has no model or no value for a variable.
func (a *Agent) UnreadyChildren() []strictyaml.Finding {
	var findings []strictyaml.Finding
	for _, parent := range append([]*Agent{a}, a.graphsBelow()...) {
		if parent.File == nil {
			continue
		}
		for _, n := range parent.reachableNodes() {
			name := needsOf(n).agent
			child := parent.children[name]
			if child == nil || parent.childFault(name) != nil {
				continue
			}
			if err := child.checkReady(); err != nil {
				findings = append(findings, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassValidate, Code: "agent-unready", Node: n.ID,
					Message: "This node will fail: " + describeUnready(err), Pos: n.At("agent")})
			}
		}
	}
	return findings
}

// describeUnready returns an error of checkReady in one line.
func describeUnready(err error) string {
	if model, ok := errors.AsType[*MissingModelError](err); ok {
		return model.describe()
	}
	values, ok := errors.AsType[*VariablesError](err)
	if !ok {
		return err.Error()
	}
	names := make([]string, len(values.Missing))
	for i, v := range values.Missing {
		names[i] = "'" + v.Name + "'"
	}
	return "a value is missing for " + strings.Join(names, ", ") + " (--agent-variable NAME VALUE)"
}

// graphsBelow returns the graphs that agent nodes run, here and below, each once.
func (a *Agent) graphsBelow() []*Agent {
	var all []*Agent
	seen := map[*Agent]bool{a: true}
	var visit func(*Agent)
	visit = func(parent *Agent) {
		if parent.File == nil {
			return
		}
		for _, n := range parent.File.Nodes {
			if child := parent.children[needsOf(n).agent]; child != nil && !seen[child] {
				seen[child] = true
				all = append(all, child)
				visit(child)
			}
		}
	}
	visit(a)
	return all
}

// variableValue returns the value of an agent variable; ok is false if it has none.
func variableValue(a *Agent, v spec.Variable) (value string, ok bool) {
	if value, ok = a.host.Variables[v.Name]; !ok && v.Default != nil {
		return *v.Default, true
	}
	return value, ok
}

// reachableNodes returns the nodes that a run can reach, sorted by id. A script may
// route to any node, so a graph with a reachable script reaches all of them.
func (a *Agent) reachableNodes() []*spec.Node {
	seen := map[string]bool{}
	todo := a.File.Entries()
	scripted := false
	for len(todo) > 0 {
		n := a.File.Node(todo[0])
		todo = todo[1:]
		if n == nil || seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		scripted = scripted || n.Type.Routing == spec.RouteAny
		for _, e := range n.DeclaredEdges() {
			todo = append(todo, e.To)
		}
	}
	var nodes []*spec.Node
	for _, n := range a.File.Nodes {
		if seen[n.ID] || scripted {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *spec.Node) int { return strings.Compare(a.ID, b.ID) })
	return nodes
}

// variableValues returns the agent's variables that have a value.
func variableValues(a *Agent) map[string]string {
	values := map[string]string{}
	for _, v := range a.Variables() {
		if value, ok := variableValue(a, v); ok {
			values[v.Name] = value
		}
	}
	return values
}
