package flow

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"raddle.dev/flow/internal/upgrade"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// CompileGraph compiles the agent and the graphs that its agent nodes run. It fails
// with a [*spec.ValidationError] if the validator rejects the file, and with a
// [*MissingModelError] or [*VariablesError] if the agent cannot run.
func (a *Agent) CompileGraph() (*graph.Graph, error) {
	if err := a.ValidationFailure(); err != nil {
		return nil, newChainError(fmt.Sprintf("Graph execution failed for agent '%s'", a.Name), err)
	}
	b := &builder{graphs: map[*Agent]*graph.Graph{}, teams: map[*spawnSet]*team.Config{}}
	if a.host.Bounds.Branch != nil {
		return b.compileBranch(a, *a.host.Bounds.Branch)
	}
	return b.compileAgent(a)
}

// builder compiles agents, each once.
type builder struct {
	graphs map[*Agent]*graph.Graph
	teams  map[*spawnSet]*team.Config // without a lead
}

func (b *builder) compileAgent(a *Agent) (*graph.Graph, error) {
	if g := b.graphs[a]; g != nil {
		return g, nil
	}
	if a.Config != nil {
		return b.compileConfig(a)
	}
	if err := a.checkReady(); err != nil {
		return nil, err
	}
	r := b.newRuntime(a)
	f := a.File
	def := graph.Def{
		Name: f.Name, Version: versionOf(f), Keys: []graph.AnyKey{mediaKey}, Open: r.keySet.openKey, Start: []string{f.Start},
		Migrations: upgrade.BuildMigrations(f, upgrade.Keys{Open: r.keySet.openKey, Replace: r.keySet.replaceValue, Join: StoredValue}),
		Finally:    f.Finally, MaxVisits: f.Settings.MaxLoopIterations, Concurrency: max(1, f.Settings.MaxConcurrency), MustHalt: true,
	}
	if t := f.Settings.Timeout; t != nil {
		def.Timeout = max(1, t.Duration())
	}
	for _, n := range a.reachableNodes() {
		node, err := b.buildNode(r, n)
		if err != nil {
			return nil, err
		}
		node.Run = r.nodeFunc(n)
		if n.Type.Routing == spec.RouteAny && n.ID != f.Finally {
			node.AnyRoute = true
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

// newRuntime returns the data that the nodes of a graph share.
func (b *builder) newRuntime(a *Agent) *runtime {
	return &runtime{agent: a, keySet: &keySet{file: a.File}, models: &modelCache{host: a.host, dir: a.Dir}, unbuilt: map[string]error{}}
}

// versionOf returns what changes with the text of a file.
func versionOf(f *spec.File) string { return fmt.Sprintf("%x", sha256.Sum256(f.Text)) }

// buildNode returns a node without its function: its name and the graph that it
// calls.
func (b *builder) buildNode(r *runtime, n *spec.Node) (graph.Node, error) {
	node := graph.Node{Name: n.ID, Kind: n.Kind(), Doc: r.agent.host.redact(n.Description)}
	err := n.Body.(nodeBody).compile(&nodeCompiler{b, r, n}, &node)
	return node, err
}

// nodeCompiler compiles one node of an agent.
type nodeCompiler struct {
	*builder
	*runtime
	node *spec.Node
}

// compileChild compiles the agent of an agent node. It returns nil if there is none,
// or if it cannot run: then the visit of the node fails with the reason.
func (c *nodeCompiler) compileChild(name string) *graph.Graph {
	child := c.agent.children[name]
	if child == nil || c.agent.childFault(name) != nil {
		return nil
	}
	g, err := c.compileAgent(child)
	if err != nil {
		c.unbuilt[name] = err
		return nil
	}
	return g
}

// routesOf returns the nodes that the declared edges of a node lead to, each
// once.
func (r *runtime) routesOf(n *spec.Node) []string {
	var names []string
	seen := map[string]bool{}
	for _, e := range n.DeclaredEdges() {
		if !seen[e.To] && r.agent.File.Node(e.To) != nil {
			seen[e.To] = true
			names = append(names, e.To)
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
	keySet *keySet
	models *modelCache
	// unbuilt contains the children that cannot be compiled, by the name that
	// agent nodes use.
	unbuilt map[string]error
}

// nodeFunc returns the function of a node.
func (r *runtime) nodeFunc(n *spec.Node) graph.Func {
	return r.agent.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		if r.agent.File.Settings.MaxLoopIterations == 0 {
			return graph.Update{}, &graph.LimitError{Status: graph.VisitLimit, Graph: r.agent.File.Name, Node: n.ID, Count: 1}
		}
		if n.ID == r.agent.File.Finally {
			var err error
			if s, err = graph.Overlay(s, r.keySet.replaceValue(spec.ReasonKey, PlainReason(graph.Cause(ctx)))); err != nil {
				return graph.Update{}, err
			}
		}
		nr := &nodeRun{Context: ctx, runtime: r, node: n, before: s, queue: n.QueueName()}
		nr.logEntry()
		budgets, err := nr.shareBudgets(ctx)
		if err != nil {
			return graph.Update{}, err
		}
		if err := nr.readScopes(); err != nil {
			return graph.Update{}, err
		}
		if err := n.Body.(nodeBody).run(nr); err != nil {
			if err = nr.followExceeded(budgets, err); err != nil {
				return graph.Update{}, err
			}
		}
		nr.logMove()
		return nr.buildUpdate()
	})
}

// unknownNodeError returns the error for a route to a node that does not exist.
func (r *runtime) unknownNodeError(id string) error {
	return &plainError{fmt.Sprintf("Node '%s' not found in graph '%s'", id, r.agent.File.Name)}
}

// modelCache opens each model of an agent once.
type modelCache struct {
	host   *Host
	dir    string
	mu     sync.Mutex
	models map[string]llm.Model
}
