// Package allowance is what graphs and nodes of a file may use of models together: their budgets, shared by everything
// below them, and what a person adds to a budget that is used up.
package allowance

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// An Allowance is the budget of one visit of a node, or of one run of a graph, in the context of a task.
type Allowance struct {
	spec  *spec.Budget
	owner string // for people
	scope string // of the budget in the run
}

// grants is what people have answered about a budget that was used up. All tasks of the run share it.
type grants struct {
	Asked map[string]int  `json:"asked,omitempty"` // questions of each task
	Given map[string]bool `json:"given,omitempty"` // the questions whose answer adds to the budget
}

// Share returns a context whose models use a budget together, at every depth and through every crash. owner says whose
// it is, and scope tells it from the other budgets of the run. If a budget asks when it is used up, the task first
// waits for the answer to what it has asked. Without a budget, the context is ctx and the Allowance nil.
func Share(ctx context.Context, b *spec.Budget, owner, scope string) (context.Context, *Allowance, error) {
	if b == nil {
		return ctx, nil, nil
	}
	a := &Allowance{spec: b, owner: owner, scope: scope}
	times, err := a.countGrants(ctx)
	if err != nil {
		return nil, nil, err
	}
	budget := agent.Budget{Of: owner, At: b.Place(), Calls: times * b.Calls, Tokens: times * b.Tokens}
	if b.Cost != nil {
		budget.Money = float64(times) * *b.Cost
	}
	return budget.Share(ctx, scope, agent.Spend{}), a, nil
}

// countGrants returns how many times its limits the budget has, after the answers to what the task has asked.
func (a *Allowance) countGrants(ctx context.Context) (times int, err error) {
	if a.spec.OnExceeded != spec.AskWord {
		return 1, nil
	}
	shared, err := graph.Share[grants](ctx, "grants "+a.scope)
	if err != nil {
		return 0, err
	}
	task := graph.TaskPath(ctx)
	asked := 0
	if err := shared.Use(func(g *grants) bool { asked = g.Asked[task]; return false }); err != nil {
		return 0, err
	}
	for n := range asked {
		given, err := a.askForMore(ctx, n)
		if err != nil {
			return 0, err
		}
		key := fmt.Sprint(task, " ", n)
		err = shared.Use(func(g *grants) bool {
			if !given || g.Given[key] {
				return false
			}
			if g.Given == nil {
				g.Given = map[string]bool{}
			}
			g.Given[key] = true
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	err = shared.Use(func(g *grants) bool { times = 1 + len(g.Given); return false })
	return times, err
}

// These are the answers to the question about a budget that is used up.
const (
	answerMore = "continue"
	answerStop = "stop"
)

// askForMore asks whether as much again may be used. n counts the questions of the task.
func (a *Allowance) askForMore(ctx context.Context, n int) (bool, error) {
	answer, err := graph.Interrupt[string](ctx, graph.Ask{
		Name:    fmt.Sprint("budget ", a.scope, " ", n),
		Kind:    "select",
		Prompt:  fmt.Sprintf("The budget of %s is used up (%s). Continue with as much again: %s?", a.owner, a.spec.Place(), a.describeLimits()),
		Options: []string{answerMore, answerStop},
	})
	return answer == answerMore, err
}

// describeLimits returns the limits for people.
func (a *Allowance) describeLimits() (text string) {
	add := func(part string) {
		if text != "" {
			text += ", "
		}
		text += part
	}
	if a.spec.Calls > 0 {
		add(fmt.Sprintf("%d calls of models", a.spec.Calls))
	}
	if a.spec.Tokens > 0 {
		add(fmt.Sprintf("%d tokens", a.spec.Tokens))
	}
	if a.spec.Cost != nil {
		add(fmt.Sprintf("$%.2f", *a.spec.Cost))
	}
	return text
}

// DecideExceeded decides what follows an error of a task: to is the node that runs next if the budget is used up and names
// one. Otherwise the error is what the task must end with: err, or one that says that a person was asked. leads says that
// the task can lead to a node.
func (a *Allowance) DecideExceeded(ctx context.Context, err error, leads bool) (to string, _ error) {
	var over *agent.BudgetError
	if a == nil || !errors.As(err, &over) || !over.Shared || over.Scope() != a.scope || ctx.Err() != nil {
		return "", err
	}
	switch to := a.spec.Handler(); {
	case to != "" && leads:
		return to, nil
	case a.spec.OnExceeded != spec.AskWord:
		return "", err
	}
	shared, fault := graph.Share[grants](ctx, "grants "+a.scope)
	if fault != nil {
		return "", fault
	}
	task := graph.TaskPath(ctx)
	n := 0
	fault = shared.Use(func(g *grants) bool {
		if n = g.Asked[task]; n > 0 && !g.Given[fmt.Sprint(task, " ", n-1)] {
			n = -1 // the answer was to stop
			return false
		}
		if g.Asked == nil {
			g.Asked = map[string]int{}
		}
		g.Asked[task] = n + 1
		return true
	})
	if fault != nil || n < 0 {
		return "", errors.Join(fault, err)
	}
	given, fault := a.askForMore(ctx, n)
	if fault == nil && given { // the answer was there already: the task begins again with the larger budget
		fault = errors.New("the budget was raised; resume the run")
	}
	if fault != nil {
		return "", fault
	}
	return "", err
}
