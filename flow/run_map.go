package flow

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/jsonvalue"
)

// A map is one node of one step: it calls a graph of two nodes, one that sends
// a task for every item, and the branch itself.

// fanNode is the node that sends the items. Its name cannot be a node id in a
// file.
const fanNode = "(items)"

// branchResults collects the results of the branches, in the order of the
// items.
var branchResults = graph.Append[any]("(results)").WithCodec(listCodec)

// compileBranches compiles the graph of a map node.
func (b *builder) compileBranches(r *runtime, n *spec.Node, body *spec.MapNode) (*graph.Graph, error) {
	def := graph.Def{Name: n.ID, Keys: []graph.AnyKey{branchResults}, Open: r.keySet.openKey, Start: []string{fanNode}}
	def.Concurrency = max(1, r.agent.File.Settings.MaxConcurrency)
	if c := body.MaxConcurrency; c != nil {
		def.Concurrency = max(1, *c)
	}
	fan := graph.Node{Name: fanNode, Kind: "map", Run: r.fanOutFunc(body), Routes: []string{graph.End}}
	branch := r.agent.File.Node(body.Branch)
	if canBeBranch(branch) {
		node, err := b.buildNode(r, branch)
		if err != nil {
			return nil, err
		}
		node.Run = r.branchBody(branch, body)
		fan.Routes = []string{branch.ID}
		def.Nodes = append(def.Nodes, node)
		def.Edges = []graph.Edge{{From: []string{branch.ID}, To: []string{graph.End}}}
	}
	def.Nodes = append(def.Nodes, fan)
	return graph.Compile(def)
}

// canBeBranch reports whether a node can be a branch; the validator reports more.
func canBeBranch(n *spec.Node) bool {
	if n == nil {
		return false
	}
	switch n.Body.(type) {
	case *spec.MapNode, *spec.EndNode, *spec.RAGNode:
		return false
	}
	return true
}

// fanOutFunc returns a function that sends every item to a branch task, which is the
// only task that sees the item.
func (r *runtime) fanOutFunc(b *spec.MapNode) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		items, err := evalItems(b, s)
		if err != nil {
			return graph.Update{}, err
		}
		u := graph.Update{Goto: []string{}, Send: make([]graph.Send, len(items))}
		for i, item := range items {
			u.Send[i] = graph.Send{To: b.Branch, Overlay: []graph.Write{r.keySet.replaceValue(b.As, item)}}
		}
		return u, nil
	}
}

// evalItems returns the list over which a map runs.
func evalItems(b *spec.MapNode, s graph.State) ([]any, error) {
	over, err := b.Over.Eval(s.Value)
	if err != nil {
		return nil, newChainError("evaluating `over` template", err)
	}
	items, ok := over.([]any)
	if !ok {
		return nil, spec.Failf("`over` template '%s' must resolve to an array, got %s", b.Over, jsonvalue.TypeName(over))
	}
	return items, nil
}

// errNoOutput says that a branch ended without a result.
var errNoOutput = errors.New("the branch has no result")

// branchBody returns a function that runs the branch for one item and returns
// only its result.
func (r *runtime) branchBody(n *spec.Node, b *spec.MapNode) graph.Func {
	return r.agent.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		v := &nodeRun{Context: r.withSharedBudget(ctx), runtime: r, node: n, before: s, branch: true, outputKey: b.OutputKey}
		if err := v.runBody(); err != nil {
			return graph.Update{}, err
		}
		result, ok := v.writes.Get(b.OutputKey)
		switch {
		case ok:
		case v.output != nil:
			result = *v.output
		default:
			if result, ok = v.lookupKey(b.OutputKey); !ok {
				return graph.Update{}, errNoOutput
			}
		}
		return graph.Put(branchResults.Set([]any{result})), nil
	})
}

// runMap runs the branch for every item and collects the results.
func (v *nodeRun) runMap(b *spec.MapNode) error {
	if v.node.Next == nil {
		return v.noNext()
	}
	name := fmt.Sprintf("map node '%s'", v.node.ID)
	items, err := evalItems(b, v.before)
	if err != nil {
		return spec.Failf("%s: %w", name, err)
	}
	if branch := v.agent.File.Node(b.Branch); len(items) > 0 && !canBeBranch(branch) {
		if branch == nil {
			return v.unknownNodeError(b.Branch)
		}
		return spec.Failf("%s points to branch '%s' which is of type %s: such a node cannot run for every item", name, b.Branch, branch.Kind())
	}
	child, err := graph.Call(v)
	if err != nil {
		return v.branchError(b, name, err)
	}
	results := branchResults.Get(child.State)
	if results == nil {
		results = []any{}
	}
	v.writes.Set(b.CollectInto, results)
	return v.goNext()
}

// branchError returns an error that names the first item that failed.
func (v *nodeRun) branchError(b *spec.MapNode, name string, err error) error {
	var step *graph.StepError
	if isWaiting(err) || v.Err() != nil || !errors.As(err, &step) || len(step.Tasks) == 0 {
		return err
	}
	first := step.Tasks[0]
	at := fmt.Sprintf("%s: sub-branch [%d]", name, first.Index-1)
	if errors.Is(first.Err, errNoOutput) {
		return spec.Failf("%s did not write `output_key` '%s'", at, b.OutputKey)
	}
	return newChainError(at+" failed", first.Err)
}
