package flow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// Graph compiles the agent and the graphs that its agent nodes run. It fails
// with a [*ValidationError] if the validator rejects the file, and with a
// [*NotYetError], [*MissingModelError] or [*VariablesError] if the agent cannot
// run.
func (a *Agent) Graph() (*graph.Graph, error) {
	if err := a.Rejected(); err != nil {
		return nil, because(fmt.Sprintf("Graph execution failed for agent '%s'", a.Name), err)
	}
	b := &builder{graphs: map[*Agent]*graph.Graph{}, teams: map[*crew]*team.Config{}}
	return b.agent(a)
}

// builder compiles agents, each once.
type builder struct {
	graphs map[*Agent]*graph.Graph
	teams  map[*crew]*team.Config // without a lead
}

func (b *builder) agent(a *Agent) (*graph.Graph, error) {
	if g := b.graphs[a]; g != nil {
		return g, nil
	}
	if a.Config != nil {
		return b.config(a)
	}
	if err := a.ready(); err != nil {
		return nil, err
	}
	r := &runtime{agent: a, ring: &keyring{file: a.File}, models: &modelCache{host: a.host, dir: a.Dir}, unbuilt: map[string]error{}}
	f := a.File
	def := graph.Def{
		Name: f.Name, Version: fmt.Sprintf("%x", sha256.Sum256(f.text)), Open: r.ring.open, Start: []string{f.Start},
		MaxVisits: f.Settings.MaxLoopIterations, Concurrency: max(1, f.Settings.MaxConcurrency), MustHalt: true,
	}
	if t := f.Settings.Timeout; t != nil {
		def.Timeout = max(1, t.Duration())
	}
	for _, n := range a.reachable() {
		node, err := b.node(r, n)
		if err != nil {
			return nil, err
		}
		node.Run = r.body(n)
		if _, script := n.Body.(*ScriptNode); script {
			node.AnyRoute = true // its _next may name any node
		} else {
			node.Routes = r.routesOf(n)
		}
		def.Nodes = append(def.Nodes, node)
	}
	g, err := graph.Compile(def)
	if err != nil {
		return nil, fmt.Errorf("agent '%s': %w", a.Name, err)
	}
	b.graphs[a] = g
	return g, nil
}

// node returns a node without its function: its name and the graph that it
// calls.
func (b *builder) node(r *runtime, n *Node) (graph.Node, error) {
	node := graph.Node{Name: n.ID, Kind: n.Kind(), Doc: n.Description}
	switch body := n.Body.(type) {
	case *InputNode:
		node.CheckAnswer, node.Quiet = body.checkAnswer, true
	case *ApprovalNode, *EndNode:
		node.Quiet = true
	case *ScriptNode:
		node.CheckAnswer = checkConsent
	case *AgentNode:
		g, err := b.child(r, body.Agent)
		if err != nil {
			return node, err
		}
		node.Graph = g
	case *LLMNode:
		if len(body.Tools) > 0 {
			g, err := b.loop(r, n, body)
			if err != nil {
				return node, err
			}
			node.Graph = g
		}
	case *MapNode:
		g, err := b.branches(r, n, body)
		if err != nil {
			return node, err
		}
		node.Graph, node.Inherit = g, true
	}
	return node, nil
}

// child compiles the agent of an agent node. It returns nil if there is none,
// or if it cannot run: then the visit of the node fails. If a model or a value
// is missing that the caller must give before the run, child returns an error.
func (b *builder) child(r *runtime, name string) (*graph.Graph, error) {
	child := r.agent.children[name]
	if child == nil || r.agent.childFault(name) != nil {
		return nil, nil
	}
	g, err := b.agent(child)
	var model *MissingModelError
	var values *VariablesError
	switch {
	case err == nil || errors.As(err, &model) || errors.As(err, &values):
		return g, err
	}
	r.unbuilt[name] = err
	return nil, nil
}

// routesOf returns the nodes that the declared edges of a node lead to, each
// once.
func (r *runtime) routesOf(n *Node) []string {
	var names []string
	seen := map[string]bool{}
	for _, e := range n.edges() {
		if !seen[e.to] && r.agent.File.Node(e.to) != nil {
			seen[e.to] = true
			names = append(names, e.to)
		}
	}
	if names == nil {
		names = []string{graph.End} // it ends the run, or fails because it has no next
	}
	return names
}

// runtime is the data that the nodes of one agent share.
type runtime struct {
	agent  *Agent
	ring   *keyring
	models *modelCache
	// unbuilt contains the children that cannot be compiled, by the name that
	// agent nodes use.
	unbuilt map[string]error
}

// run executes the node according to its type.
func (v *visit) run() error {
	switch b := v.node.Body.(type) {
	case *AgentNode:
		return v.runAgent(b)
	case *ApprovalNode:
		return v.runApproval(b)
	case *EndNode:
		return v.runEnd(b)
	case *InputNode:
		return v.runInput(b)
	case *LLMNode:
		return v.runLLM(b)
	case *MapNode:
		return v.runMap(b)
	case *RAGNode:
		return v.runRAG(b)
	case *ScriptNode:
		return v.runScript(b)
	}
	return fmt.Errorf("a node of type %s cannot run", v.node.Kind())
}

// body returns the function of a node.
func (r *runtime) body(n *Node) graph.Func {
	return r.agent.host.cleaned(func(ctx context.Context, s graph.State) (graph.Update, error) {
		if r.agent.File.Settings.MaxLoopIterations == 0 {
			return graph.Update{}, &graph.LimitError{Status: graph.VisitLimit, Graph: r.agent.File.Name, Node: n.ID, Count: 1}
		}
		v := &visit{Context: r.spending(ctx), runtime: r, node: n, before: s}
		v.logEntry()
		if err := v.run(); err != nil {
			return graph.Update{}, err
		}
		v.logMove()
		return v.update()
	})
}

// spending returns the context of a node: all nodes of a run, and the agents
// below them, share one budget.
func (r *runtime) spending(ctx context.Context) context.Context {
	b := r.agent.host.Tooling.Budget
	b.Of = cmp.Or(b.Of, r.agent.Name)
	return b.Share(ctx, "", agent.Spend{})
}

// unrouted returns the error for a route to a node that does not exist.
func (r *runtime) unrouted(id string) error {
	return &plainError{fmt.Sprintf("Node '%s' not found in graph '%s'", id, r.agent.File.Name)}
}

// isWaiting reports whether an error only means that the run stops here for
// now.
func isWaiting(err error) bool {
	return errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused)
}
