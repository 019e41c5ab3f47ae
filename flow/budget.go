package flow

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow/internal/allowance"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// budgetsOf are the budgets of a node's visit: that of its graph and its own.
type budgetsOf struct{ graph, node *allowance.Allowance }

// shareBudgets returns the context of a node: all nodes of a run share its budget, those of a graph the graph's, and what
// is below a node the node's.
func (nr *nodeRun) shareBudgets(ctx context.Context) (b budgetsOf, err error) {
	ctx = nr.agent.host.shareRunBudget(ctx)
	task := graph.TaskPath(ctx)
	if !nr.branch { // the context of an item has it
		frame := task[:strings.LastIndexByte(strings.TrimSuffix(task, "/"), '/')+1]
		if ctx, b.graph, err = allowance.Share(ctx, nr.agent.File.Budget, "graph '"+nr.agent.Name+"'", "graph "+frame); err != nil {
			return b, err
		}
	}
	ctx, b.node, err = allowance.Share(ctx, nr.node.Budget, "node '"+nr.node.ID+"'", "node "+task)
	nr.Context = ctx
	return b, err
}

// shareRunBudget returns a context whose models use the budget of the run together.
func (h *Host) shareRunBudget(ctx context.Context) context.Context {
	b := h.Tooling.Budget
	if b.Of == "" {
		b.Of = "the run"
	}
	return b.Share(ctx, "", agent.Spend{})
}

// shareInNodes lets all nodes of a conversation use the budget of the run.
func (h *Host) shareInNodes(def *graph.Def) {
	for i := range def.Nodes {
		if run := def.Nodes[i].Run; run != nil {
			def.Nodes[i].Run = func(ctx context.Context, s graph.State) (graph.Update, error) { return run(h.shareRunBudget(ctx), s) }
		}
	}
}

// checkBudgetPrices returns a finding for each model whose price is unknown, if a budget limits what it may cost.
func checkBudgetPrices(a *Agent) (list []strictyaml.Finding) {
	if a.host.Models == nil || a.host.Offline {
		return nil
	}
	for _, n := range a.File.Nodes {
		b := n.Budget
		if b == nil || b.Cost == nil {
			b = a.File.Budget
		}
		asks, is := n.Body.(*llmNode)
		if !is || b == nil || b.Cost == nil {
			continue
		}
		id := a.modelID(asks.model)
		if id == "" || !a.host.Models.IsKnown(a.Dir, id) || !a.modelFacts(id).IsUnpriced() {
			continue
		}
		list = append(list, strictyaml.Finding{
			Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "unknown-price", Node: n.ID, Pos: b.Source.FieldPosition("cost"),
			Message: fmt.Sprintf("budget.cost: the price of model '%s' is not known", id),
			Hint:    priceHint,
		})
	}
	return list
}

// followExceeded does what the file says about a budget that is used up, and otherwise returns err. An item of a map
// leads nowhere: its failure is one of the map.
func (nr *nodeRun) followExceeded(b budgetsOf, err error) error {
	for _, a := range []*allowance.Allowance{b.node, b.graph} {
		to, after := a.DecideExceeded(nr, err, !nr.branch)
		if to != "" {
			nr.writes = jsonvalue.Object{}
			nr.fault = nil
			return nr.goTo(to)
		}
		if after != err {
			return after
		}
	}
	return err
}
