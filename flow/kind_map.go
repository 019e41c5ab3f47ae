package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// mapNode runs one node for every item of a list.
type mapNode struct {
	over spec.Template // strict and typed: an array
	*spec.Branch
}

var mapKind = &kind{
	Kind: spec.Kind{
		Name:        "map",
		Doc:         "Runs one node for every item of a list and collects the results.",
		Required:    []string{"over", "as", "branch", "collect_into"},
		Optional:    []string{"output_key", "max_concurrency", "queue"},
		Late:        true,
		NotInBranch: true,
		BranchFault: "which is itself a map node; nested map fan-outs are not supported in v1",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &spec.Branch{OutputKey: "output"}
		n := &mapNode{over: m.AddStrict("over", m.ReadText("over", strictyaml.Required)), Branch: b}
		b.As = m.ReadText("as", strictyaml.Required)
		b.To = m.ReadText("branch", strictyaml.Required)
		b.CollectInto = m.ReadText("collect_into", strictyaml.Required)
		b.MaxConcurrency = m.ReadOptionalCount("max_concurrency")
		m.ReadQueue()
		if m.HasValue("output_key") {
			b.OutputKey = m.ReadText("output_key", strictyaml.Defaulted)
		}
		m.Node.Branch = b
		m.AddEdge(spec.Edge{To: b.To, Field: "branch", Role: spec.EdgeBranch, Picture: "for each " + b.As})
		return n
	},
}

// Checks returns none: the validator checks the branches of all types.
func (b *mapNode) Checks() check.Checks { return nil }

// Advise reports a list that is a text.
func (b *mapNode) Advise(a *check.Adviser, n *spec.Node) {
	if b.over.SinglePath() == nil {
		a.WarnAt(n, n.At("over"), "map-over", "`over` is not one placeholder, so it is a text and not a list: the node fails", "write it as \"{{key}}\" alone")
	}
}

func (b *mapNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

// A map is one node of one step: it calls a graph of two nodes, one that sends
// a task for every item, and the branch itself.

// MapStart is the node that sends the items, in the graph of a map node. Its name cannot be a node id in a file.
const MapStart = "(items)"

// branchResults collects the results of the branches, in the order of the
// items.
var branchResults = graph.Append[any]("(results)").WithCodec(listCodec)

// compile compiles the graph of a map node.
func (b *mapNode) compile(c *nodeCompiler, node *graph.Node) (err error) {
	r := c.runtime
	f := c.agent.File
	def := graph.Def{Name: c.node.ID, Keys: []graph.AnyKey{branchResults, mediaKey}, Open: r.keySet.openKey, Start: []string{MapStart}}
	def.Concurrency = max(1, f.Settings.MaxConcurrency)
	if limit := b.MaxConcurrency; limit != nil {
		def.Concurrency = max(1, *limit)
	}
	fan := graph.Node{Name: MapStart, Kind: c.node.Kind(), Run: b.fanOutFunc(r), Routes: []string{graph.End}}
	if n := f.Node(b.To); canBeBranch(n) {
		branch, err := c.buildNode(r, n)
		if err != nil {
			return err
		}
		branch.Run = b.branchFunc(r, n, c.node.QueueName())
		fan.Routes = []string{n.ID}
		def.Nodes = append(def.Nodes, branch)
		def.Edges = []graph.Edge{{From: []string{n.ID}, To: []string{graph.End}}}
	}
	def.Nodes = append(def.Nodes, fan)
	node.Inherit = true
	node.Graph, err = graph.Compile(def)
	return err
}

// canBeBranch reports whether a node can be a branch; the validator reports more.
func canBeBranch(n *spec.Node) bool { return n != nil && !n.Type.NotInBranch }

// fanOutFunc returns a function that sends every item to a branch task, which is the
// only task that sees the item.
func (b *mapNode) fanOutFunc(r *runtime) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		items, err := b.evalItems(s)
		if err != nil {
			return graph.Update{}, err
		}
		u := graph.Update{Goto: []string{}, Send: make([]graph.Send, len(items))}
		for i, item := range items {
			u.Send[i] = graph.Send{To: b.To, Overlay: []graph.Write{r.keySet.replaceValue(b.As, item)}}
		}
		return u, nil
	}
}

// evalItems returns the list over which a map runs.
func (b *mapNode) evalItems(s graph.State) ([]any, error) {
	over, err := b.over.Eval(s.Value)
	if err != nil {
		return nil, newChainError("evaluating `over` template", err)
	}
	items, ok := over.([]any)
	if !ok {
		return nil, spec.Errorf("`over` template '%s' must resolve to an array, got %s", b.over, jsonvalue.TypeName(over))
	}
	return items, nil
}

// errNoOutput says that a branch ended without a result.
var errNoOutput = errors.New("the branch has no result")

// branchFunc returns a function that runs the branch for one item and returns
// only its result.
func (b *mapNode) branchFunc(r *runtime, n *spec.Node, queue string) graph.Func {
	return r.agent.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		result, err := r.runBranch(ctx, s, n, b.OutputKey, cmp.Or(queue, n.QueueName()))
		if err != nil {
			return graph.Update{}, err
		}
		return graph.Put(branchResults.Set([]any{result})), nil
	})
}

// run runs the branch for every item and collects the results.
func (b *mapNode) run(nr *nodeRun) error {
	if nr.node.Next == nil {
		return nr.noNext()
	}
	name := fmt.Sprintf("map node '%s'", nr.node.ID)
	items, err := b.evalItems(nr.before)
	if err != nil {
		return spec.Errorf("%s: %w", name, err)
	}
	if branch := nr.agent.File.Node(b.To); len(items) > 0 && !canBeBranch(branch) {
		if branch == nil {
			return nr.unknownNodeError(b.To)
		}
		return spec.Errorf("%s points to branch '%s' which is of type %s: such a node cannot run for every item", name, b.To, branch.Kind())
	}
	child, err := graph.Call(nr)
	if err != nil {
		return b.branchError(nr, name, err)
	}
	results := branchResults.Get(child.State)
	if results == nil {
		results = []any{}
	}
	nr.writes.Set(b.CollectInto, results)
	return nr.goNext()
}

// branchError returns an error that names the first item that failed.
func (b *mapNode) branchError(nr *nodeRun, name string, err error) error {
	var step *graph.StepError
	if isWaiting(err) || nr.Err() != nil || !errors.As(err, &step) || len(step.Tasks) == 0 {
		return err
	}
	first := step.Tasks[0]
	at := fmt.Sprintf("%s: sub-branch [%d]", name, first.Index-1)
	if errors.Is(first.Err, errNoOutput) {
		return spec.Errorf("%s did not write `output_key` '%s'", at, b.OutputKey)
	}
	return newChainError(at+" failed", first.Err)
}
