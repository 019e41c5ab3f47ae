package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Config is an agent: a model, its tools and its limits. Only Model is
// required.
type Config struct {
	Name       string // of the graph; empty: "agent"
	Model      llm.Model
	Request    llm.Request                         // see Think.Request
	System     func(s graph.State) (string, error) // see Think.System
	Models     map[string]llm.Model                // further models: see Override.Model
	Visibility Visibility                          // see Think.Visibility
	Tools      []tool.Tool
	Agents     []AgentTool                                    // further tools
	ListTools  func(ctx context.Context) ([]tool.Tool, error) // further tools, requested in every step; nil: none
	Sources    Sources                                        // of further tools, which need time to start
	Kits       Kits                                           // of further tools, which calls take up and put away

	MaxIterations int // replies in a turn; 0: 50. See Think.MaxIterations
	Window        Window
	Budget        Budget
	Continue      Continue

	Gate     Gate      // nil: every call may be made
	Hooks    FindHooks // around calls; nil: none
	Headless bool      // there is no person to ask: a call that needs consent is refused
	Calls    Calls

	AroundModel []ModelMiddleware
	AroundTools []ToolMiddleware
	// Redact removes secrets from results and replies before they are recorded,
	// and from requests. The user's messages are recorded as the caller gives
	// them.
	Redact func(string) string
	// Hold returns how many bytes at the end of a piece of text may belong to
	// an incomplete secret: these bytes wait for the next piece. If Hold is nil
	// and Redact is not, TextDelta and ReasoningDelta contain complete texts.
	Hold  func(text string) int
	Retry Retry // of requests to models: see Think.Retry
}

// These are the nodes of an agent's graph.
const (
	NodeThink    = "think"
	NodeAct      = "act"
	NodeContinue = "continue"
)

const defaultIterations = 50

// Compile returns the agent's graph. It fails if the configuration is invalid.
func (c Config) Compile() (*graph.Graph, error) {
	d, err := c.Def()
	if err != nil {
		return nil, err
	}
	return graph.Compile(d)
}

// Def returns the agent as plain data, which can be changed before it is
// compiled.
func (c Config) Def() (graph.Def, error) {
	tools := c.Tools
	if c.Continue.Max > 0 {
		tools = slices.Concat(TodoTools(), tools)
	}
	if err := c.checkTools(withAgents(tools, c.Agents)); err != nil {
		return graph.Def{}, err
	}
	c.Budget.Of = cmp.Or(c.Budget.Of, c.Name)
	think := Think{Model: c.Model, Request: c.Request, System: c.systemFunc(), Models: c.Models, Visibility: c.Visibility, MaxIterations: cmp.Or(c.MaxIterations, defaultIterations),
		Tools: withAgents(tools, c.Agents), ListTools: c.ListTools, Sources: c.Sources, Kits: c.Kits, Window: c.Window, Budget: c.Budget, Around: c.AroundModel, Redact: c.Redact, Hold: c.Hold, Retry: c.Retry, continues: c.Continue.Max}.Node(NodeThink)
	act := Act{Of: NodeThink, Tools: tools, Agents: c.Agents, ListTools: c.ListTools, Sources: c.Sources, Kits: c.Kits, Gate: c.Gate, Hooks: c.Hooks, Headless: c.Headless, Calls: c.Calls, Serial: c.Request.Serial, Budget: c.Budget,
		Around: c.AroundTools, Redact: c.Redact}.Node(NodeAct)
	d := graph.Def{Name: cmp.Or(c.Name, "agent"), Keys: Keys(), Nodes: []graph.Node{think, act}, Start: []string{NodeThink}, Timeout: c.Budget.Time}
	after := graph.End
	if c.Continue.Max > 0 {
		d.Nodes = append(d.Nodes, c.Continue.continueNode(NodeContinue))
		d.Edges = append(d.Edges, graph.Edge{From: []string{NodeContinue}, To: []string{NodeThink}})
		after = NodeContinue
	}
	if err := ToolsEdge(&d, NodeThink, NodeAct, graph.End); err != nil {
		return d, err
	}
	if after == NodeContinue {
		c.Continue.redirectStops(&d.Edges[len(d.Edges)-2])
	}
	return d, nil
}

// redirectStops changes an edge so that a model that stops early gets a reminder
// first.
func (c Continue) redirectStops(e *graph.Edge) {
	pick := e.Pick
	e.Cases["continue"] = NodeContinue
	e.Pick = func(s graph.State) ([]string, error) {
		labels, err := pick(s)
		if err == nil && labels[0] == caseDone && c.shouldContinue(s) {
			labels = []string{"continue"}
		}
		return labels, err
	}
}

// systemFunc returns a function that adds what the todo tools need to the system
// prompt.
func (c Config) systemFunc() func(graph.State) (string, error) {
	if c.Continue.Max == 0 || c.Continue.Plain {
		return c.System
	}
	return func(s graph.State) (string, error) {
		text := c.Request.System
		if c.System != nil {
			var err error
			if text, err = c.System(s); err != nil {
				return "", err
			}
		}
		if text != "" {
			text += "\n\n"
		}
		return text + TodoInstructions, nil
	}
}

func (c Config) checkTools(tools []tool.Tool) error {
	if c.Model == nil {
		return fmt.Errorf("agent %s: no model; set Config.Model", c.Name)
	}
	seen := map[string]bool{}
	for _, t := range tools {
		switch {
		case t.Name == "" || t.Run == nil:
			return fmt.Errorf("agent %s: tool %q lacks a name or a function", c.Name, t.Name)
		case seen[t.Name]:
			return fmt.Errorf("agent %s: two tools are named %q; rename one or leave it out", c.Name, t.Name)
		}
		seen[t.Name] = true
	}
	for _, a := range c.Agents {
		if a.Graph == nil {
			return fmt.Errorf("agent %s: the agent %q, which is a tool, has no graph", c.Name, a.Spec.Name)
		}
	}
	return nil
}

// These are the labels of a tools edge.
const (
	caseTools = "tools"
	caseDone  = "done"
)

// ToolsEdge adds the loop of a model and its tools to a graph. The edges lead
// from think to act while the newest reply of think has calls, and otherwise to
// done; and from act back to think. From then on act makes the calls of think.
// ToolsEdge fails if the graph does not have the keys that the nodes need, so
// add Keys first, and if act already belongs to another model node.
func ToolsEdge(d *graph.Def, think, act, done string) error {
	for _, k := range Keys() {
		if !slices.ContainsFunc(d.Keys, func(o graph.AnyKey) bool { return o.Name() == k.Name() }) {
			return fmt.Errorf("graph %s: the tools edge from %s needs the key %q: put agent.Keys() into Def.Keys", d.Name, think, k.Name())
		}
	}
	for _, e := range d.Edges {
		if e.Cases[caseTools] == act && !slices.Equal(e.From, []string{think}) {
			return fmt.Errorf("graph %s: %s makes the calls of %s already; give %s a tools node of its own", d.Name, act, e.From, think)
		}
	}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Name == act && n.Run != nil {
			n.Run = withServedNode(think, n.Run)
		}
	}
	d.Edges = append(d.Edges,
		graph.Edge{From: []string{think}, Cases: map[string]string{caseTools: act, caseDone: done}, Pick: func(s graph.State) ([]string, error) {
			entries := Messages.Get(s)
			if len(newestRound(entries, think).pending) > 0 || endsWithSent(entries) {
				return []string{caseTools}, nil
			}
			return []string{caseDone}, nil
		}},
		graph.Edge{From: []string{act}, To: []string{think}})
	return nil
}

// HasCalls reports whether the newest reply has calls without an outcome.
func HasCalls(s graph.State) bool { return len(newestRound(Messages.Get(s), "").pending) > 0 }

type servedKey struct{}

// servedNode is the model node that a tools node belongs to.
type servedNode struct{ node, path string }

// withServedNode wraps a tools node so that it knows which model node it belongs to.
func withServedNode(think string, run graph.Func) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		return run(context.WithValue(ctx, servedKey{}, servedNode{think, graph.TaskInfo(ctx).Path}), s)
	}
}

// servedBy returns the model node that the tools node of ctx belongs to, or ""
// if it is not set. A node of a parent graph does not count.
func servedBy(ctx context.Context) string {
	if of, ok := ctx.Value(servedKey{}).(servedNode); ok && of.path == graph.TaskInfo(ctx).Path {
		return of.node
	}
	return ""
}
