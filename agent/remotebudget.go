package agent

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Limits are what a run of its own may cost: what the shared budgets of the run above have left. A zero field sets no
// limit.
type Limits struct {
	Tokens    int     `json:"tokens,omitempty"`
	Money     float64 `json:"money,omitempty"`
	Calls     int     `json:"calls,omitempty"`
	ToolCalls int     `json:"tool_calls,omitempty"`
}

// A Loan is what a run of its own may spend.
type Loan struct {
	Limits
	Group string `json:"group"` // of the tasks that share what is left
}

// asSpend returns the loan as if all of it had been spent.
func (l *Limits) asSpend() Spend {
	return Spend{Calls: l.Calls, ToolCalls: l.ToolCalls, Money: l.Money, Usage: llm.Usage{Input: l.Tokens}}
}

// sumLent returns what all runs of their own may spend.
func (l *ledger) sumLent() (all Limits) {
	for _, loan := range l.Lent {
		all.Tokens += loan.Tokens
		all.Money += loan.Money
		all.Calls += loan.Calls
		all.ToolCalls += loan.ToolCalls
	}
	return all
}

// LendBudget reserves a part of what the shared budgets of ctx have left for a run of its own, for which the task waits,
// until [PayRemote]. It returns the part, nil without budgets. The tasks of a group get equal parts of what is left, so
// that they can work at the same time and never spend more together. parts is how many they are. The error is a
// *BudgetError if a budget does not have a call for each of them.
func LendBudget(ctx context.Context, group string, parts int) (*Limits, error) {
	var lent *Limits
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		h, err := p.openLedger(ctx)
		if err != nil {
			return nil, err
		}
		var part Limits
		var over error
		err = h.Use(func(l *ledger) bool {
			part, over = p.lend(l, graph.TaskPath(ctx), group, parts)
			return over == nil
		})
		if err = cmp.Or(p.markShared(over), err); err != nil {
			return nil, err
		}
		if lent == nil {
			lent = &Limits{}
		}
		lent.Tokens = lessOf(lent.Tokens, part.Tokens, 0)
		lent.Calls = lessOf(lent.Calls, part.Calls, 0)
		lent.ToolCalls = lessOf(lent.ToolCalls, part.ToolCalls, 0)
		lent.Money = lessOf(lent.Money, part.Money, 0)
	}
	return lent, nil
}

// lend reserves a part for a task. What the group has already been lent is divided, too.
func (p *sharedBudget) lend(l *ledger, task, group string, parts int) (Limits, error) {
	delete(l.Lent, task)
	spent := p.base.add(l.Spent)
	for _, loan := range l.Lent {
		if loan.Group != group {
			spent = spent.add(loan.asSpend())
		}
	}
	spent = spent.add(Spend{Calls: l.reserved.calls, Money: l.reserved.money, Usage: llm.Usage{Input: l.reserved.tokens}})
	if err := cmp.Or(p.checkSpend(spent), p.allowsTools(spent, 1)); err != nil {
		return Limits{}, err
	}
	part := Limits{
		Tokens:    lessOf(0, p.Tokens, spent.Usage.Input+spent.Usage.Output) / parts,
		Money:     lessOf(0, p.Money, spent.Money) / float64(parts),
		Calls:     lessOf(0, p.Calls, spent.Calls) / parts,
		ToolCalls: lessOf(0, p.ToolCalls, spent.ToolCalls) / parts,
	}
	for _, few := range []struct {
		what        string
		limit, part int
		used        int
	}{{"calls", p.Calls, part.Calls, spent.Calls}, {"tokens", p.Tokens, part.Tokens, spent.Usage.Input + spent.Usage.Output}, {"tool calls", p.ToolCalls, part.ToolCalls, spent.ToolCalls}} {
		if few.limit > 0 && few.part == 0 {
			return Limits{}, &BudgetError{Of: p.Of, At: p.At, What: few.what, Limit: strconv.Itoa(few.limit), Spent: strconv.Itoa(few.used), Parts: parts}
		}
	}
	if l.Lent == nil {
		l.Lent = map[string]Loan{}
	}
	l.Lent[task] = Loan{part, group}
	return part, nil
}

// lessOf returns the smaller one of a limit and of what another one has left. A limit of 0 does not limit.
func lessOf[N int | float64](limit, other, spent N) N {
	switch rest := other - spent; {
	case other <= 0:
		return limit
	case limit == 0:
		return rest
	default:
		return min(limit, rest)
	}
}

// PayRemote charges the shared budgets of ctx with what a run of its own has spent, once for each run, and gives back the
// rest of what it was lent.
func PayRemote(ctx context.Context, run string, s Spend) error {
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		h, err := p.openLedger(ctx)
		if err != nil {
			return err
		}
		if err := h.Use(func(l *ledger) bool { return l.payRun(graph.TaskPath(ctx), run, s) }); err != nil {
			return err
		}
	}
	return nil
}

// payRun adds what a run has spent, and returns false if it was added before.
func (l *ledger) payRun(task, run string, s Spend) bool {
	if slices.Contains(l.Runs, run) {
		return false
	}
	delete(l.Lent, task)
	l.Runs = append(l.Runs, run)
	l.Spent = l.Spent.add(s)
	return true
}

// Limit returns the budget with lower limits where l has any.
func (b Budget) Limit(l *Limits) Budget {
	if l == nil {
		return b
	}
	b.Tokens, b.Calls, b.ToolCalls = lessOf(b.Tokens, l.Tokens, 0), lessOf(b.Calls, l.Calls, 0), lessOf(b.ToolCalls, l.ToolCalls, 0)
	b.Money = lessOf(b.Money, l.Money, 0)
	return b
}
