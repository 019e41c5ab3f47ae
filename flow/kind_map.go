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
		Optional:    []string{"output_key", "max_concurrency", "queue", "on_failure", "budget"},
		Late:        true,
		NotInBranch: true,
		BranchFault: "which is itself a map node; nested map fan-outs are not supported in v1",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		b := &spec.Branch{OutputKey: "output", OnFailure: spec.OnFailureStop}
		n := &mapNode{over: m.AddStrict("over", m.ReadText("over", strictyaml.Required)), Branch: b}
		b.As = m.ReadText("as", strictyaml.Required)
		b.To = m.ReadText("branch", strictyaml.Required)
		b.CollectInto = m.ReadText("collect_into", strictyaml.Required)
		b.MaxConcurrency = m.ReadOptionalCount("max_concurrency")
		m.ReadQueue()
		if m.HasValue("output_key") {
			b.OutputKey = m.ReadText("output_key", strictyaml.Defaulted)
		}
		b.OnFailure = cmp.Or(m.ReadText("on_failure", strictyaml.Optional), spec.OnFailureStop)
		m.Node.Branch = b
		m.AddEdge(spec.Edge{To: b.To, Field: "branch", Role: spec.EdgeBranch, Picture: "for each " + b.As})
		if h := b.Handler(); h != "" {
			m.AddEdge(spec.Edge{To: h, Field: "on_failure", Role: spec.EdgeBranch, Picture: "on failure"})
		}
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

// A map is one node of one step: it calls a graph of a node that sends a task for every item, and the branch itself. If
// failed items have a handler, a third node sends each of them to it with the reason.

// These are the nodes in the graph of a map that are no nodes of the file: their names cannot be node ids.
const (
	MapStart   = "(items)"  // sends the items
	mapFailure = "(failed)" // sends one failed item to its handler
)

// IsMapStep reports whether a node in the graph of a map is a part of the map itself, and not a node of the file.
func IsMapStep(node string) bool { return node == MapStart || node == mapFailure }

// branchResults collects the results of the branches, in the order of the
// items.
var branchResults = graph.Append[any]("(results)").WithCodec(listCodec)

// handledItems collects what handlers have made of failed items: lists of the place of an item among those that were
// sent, the result of the handler and the reason of the failure. placeKey is that place, while the handler runs.
var (
	handledItems = graph.Append[any]("(handled)").WithCodec(listCodec)
	placeKey     = graph.Dyn("(place)").WithCodec(valueCodec)
)

// compile compiles the graph of a map node.
func (b *mapNode) compile(c *nodeCompiler, node *graph.Node) (err error) {
	r := c.runtime
	f := c.agent.File
	def := graph.Def{Name: c.node.ID, Keys: []graph.AnyKey{branchResults, mediaKey}, Open: r.keySet.openKey, Start: []string{MapStart}}
	def.Concurrency = max(1, f.Settings.MaxConcurrency)
	if limit := b.MaxConcurrency; limit != nil {
		def.Concurrency = max(1, *limit)
	}
	fan := graph.Node{Name: MapStart, Kind: c.node.Kind(), Run: b.fanOutFunc(r, c.node), Routes: []string{graph.End}}
	if n := f.Node(b.To); canBeBranch(n) {
		branch, err := c.buildNode(r, n)
		if err != nil {
			return err
		}
		branch.Run = b.branchFunc(r, n, c.node.QueueName())
		fan.Routes = []string{n.ID}
		def.Edges = []graph.Edge{{From: []string{n.ID}, To: []string{graph.End}}}
		if b.OnFailure != spec.OnFailureStop {
			branch.OnError = graph.End
			branch.OnErrorIf = func(err error) bool { return errors.As(err, new(*itemError)) }
		}
		def.Nodes = append(def.Nodes, branch)
		if h := f.Node(b.Handler()); canBeBranch(h) {
			if err := b.addHandler(c, &def, h); err != nil {
				return err
			}
		}
	}
	def.Nodes = append(def.Nodes, fan)
	node.Inherit = true
	node.Graph, err = graph.Compile(def)
	return err
}

// addHandler adds the nodes that handle failed items to the graph of a map, whose first node is the branch.
func (b *mapNode) addHandler(c *nodeCompiler, def *graph.Def, h *spec.Node) error {
	handler, err := c.buildNode(c.runtime, h)
	if err != nil {
		return err
	}
	handler.Run = b.handlerFunc(c.runtime, h, c.node.QueueName())
	failure := graph.Node{Name: mapFailure, Kind: c.node.Kind(), Run: b.failureFunc(c.runtime), Routes: []string{h.ID}}
	def.Nodes[0].OnError = mapFailure
	def.Nodes = append(def.Nodes, failure, handler)
	def.Edges = append(def.Edges, graph.NewEdge(h.ID, graph.End))
	def.Keys = append(def.Keys, handledItems)
	return nil
}

// canBeBranch reports whether a node can be a branch; the validator reports more.
func canBeBranch(n *spec.Node) bool { return n != nil && !n.Type.NotInBranch }

// fanOutFunc returns a function that sends every item to a branch task, which is the
// only task that sees the item.
func (b *mapNode) fanOutFunc(r *runtime, n *spec.Node) graph.Func {
	return func(_ context.Context, s graph.State) (graph.Update, error) {
		w, err := b.planWork(n, s)
		if err != nil {
			return graph.Update{}, err
		}
		u := graph.Update{Goto: []string{}, Send: make([]graph.Send, len(w.items))}
		for i, item := range w.items {
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

// itemError is the failure of one item that need not end the map: the script or the model has failed, and not what all
// items need, such as the credentials of a provider.
type itemError struct{ error }

// Unwrap returns the failure itself.
func (e *itemError) Unwrap() error { return e.error }

// newItemError returns the failure of an item as an [*itemError] if the map may continue without the item.
func (b *mapNode) newItemError(ctx context.Context, err error) error {
	if isWaiting(err) || isFatal(ctx, err) || errors.As(err, new(*notStartedError)) {
		return err
	}
	if errors.Is(err, errNoOutput) {
		err = b.noOutputError("the branch")
	}
	return &itemError{err}
}

// noOutputError returns the failure of an item without a result, for people.
func (b *mapNode) noOutputError(at string) error {
	return spec.Errorf("%s did not write `output_key` '%s'", at, b.OutputKey)
}

// branchFunc returns a function that runs the branch for one item and returns
// only its result.
func (b *mapNode) branchFunc(r *runtime, n *spec.Node, queue string) graph.Func {
	return r.agent.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		result, err := r.runBranch(ctx, s, n, b.OutputKey, cmp.Or(queue, n.QueueName()))
		switch {
		case err == nil:
			return graph.Put(branchResults.Set([]any{result})), nil
		case b.OnFailure != spec.OnFailureStop:
			err = b.newItemError(ctx, err)
		}
		return graph.Update{}, err
	})
}

// failureFunc returns a function that sends a failed item to its handler, which sees the item and the reason.
func (b *mapNode) failureFunc(r *runtime) graph.Func {
	return func(ctx context.Context, s graph.State) (graph.Update, error) {
		causes := graph.Causes(ctx)
		item, _ := s.Value(b.As)
		overlay := []graph.Write{
			r.keySet.replaceValue(b.As, item),
			r.keySet.replaceValue(spec.ReasonKey, causes[0].Err.Error()),
			placeKey.Reset(int64(causes[0].Index - 1)),
		}
		return graph.Update{Goto: []string{}, Send: []graph.Send{{To: b.Handler(), Overlay: overlay}}}, nil
	}
}

// handlerFunc returns a function that runs the handler for one failed item, and keeps its result for the place of the
// item.
func (b *mapNode) handlerFunc(r *runtime, n *spec.Node, queue string) graph.Func {
	return r.agent.host.redactErrors(func(ctx context.Context, s graph.State) (graph.Update, error) {
		place, _ := s.Value(placeKey.Name())
		reason, _ := s.Value(spec.ReasonKey)
		result, err := r.runBranch(ctx, s, n, b.OutputKey, cmp.Or(queue, n.QueueName()))
		if errors.Is(err, errNoOutput) {
			err = b.noOutputError("it")
		}
		if err != nil {
			return graph.Update{}, newChainError(fmt.Sprintf("handler '%s' of the failed item [%v]", n.ID, place), err)
		}
		return graph.Put(handledItems.Set([]any{[]any{place, result, reason}})), nil
	})
}

// run runs the branch for every item and collects the results.
func (b *mapNode) run(nr *nodeRun) error {
	if nr.lacksNext() {
		return nr.noNext()
	}
	name := fmt.Sprintf("map node '%s'", nr.node.ID)
	w, err := b.planWork(nr.node, nr.before)
	if err != nil {
		return spec.Errorf("%s: %w", name, err)
	}
	for _, id := range b.Nodes() {
		if n := nr.agent.File.Node(id); len(w.items) > 0 && !canBeBranch(n) {
			if n == nil {
				return nr.unknownNodeError(id)
			}
			return spec.Errorf("%s points to branch '%s' which is of type %s: such a node cannot run for every item", name, id, n.Kind())
		}
	}
	child, err := graph.Call(nr)
	if err != nil {
		return b.branchError(nr, name, err)
	}
	list, failed := w.mergeOutcomes(b.outcomesOf(nr, w, child))
	nr.writes.Set(b.CollectInto, list)
	if nr.node.CountsKey() != "" {
		nr.writes.Set(nr.node.CountsKey(), newCounts(w.total-len(failed), failed))
		b.warnFailed(nr, w, failed)
	}
	return nr.goNext()
}

// branchError returns an error that names the first item that failed.
func (b *mapNode) branchError(nr *nodeRun, name string, err error) error {
	var step *graph.StepError
	if isWaiting(err) || nr.Err() != nil || !errors.As(err, &step) || len(step.Tasks) == 0 {
		return err
	}
	first := step.Tasks[0]
	if first.Node != b.To {
		return newChainError(name, first.Err)
	}
	at := fmt.Sprintf("%s: sub-branch [%d]", name, first.Index-1)
	if errors.Is(first.Err, errNoOutput) {
		return b.noOutputError(at)
	}
	return newChainError(at+" failed", first.Err)
}
