package agent

import (
	"cmp"
	"context"
	"slices"
)

// Limits are what a run of its own may cost: what the shared budgets of the run above have left. A zero field sets no
// limit.
type Limits struct {
	Tokens    int     `json:"tokens,omitempty"`
	Money     float64 `json:"money,omitempty"`
	Calls     int     `json:"calls,omitempty"`
	ToolCalls int     `json:"tool_calls,omitempty"`
}

// BudgetLeft returns what the shared budgets of ctx have left, nil without budgets. The error is a *BudgetError if one
// of them is used up.
func BudgetLeft(ctx context.Context) (*Limits, error) {
	var left *Limits
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		h, err := p.openLedger(ctx)
		if err != nil {
			return nil, err
		}
		var spent Spend
		if err := h.Use(func(l *ledger) bool { spent = p.base.add(l.Spent); return false }); err != nil {
			return nil, err
		}
		if err := cmp.Or(p.checkSpend(spent), p.allowsTools(spent, 1)); err != nil {
			return nil, p.markShared(err)
		}
		if left == nil {
			left = &Limits{}
		}
		left.Tokens = lessOf(left.Tokens, p.Tokens, spent.Usage.Input+spent.Usage.Output)
		left.Calls = lessOf(left.Calls, p.Calls, spent.Calls)
		left.ToolCalls = lessOf(left.ToolCalls, p.ToolCalls, spent.ToolCalls)
		left.Money = lessOf(left.Money, p.Money, spent.Money)
	}
	return left, nil
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

// PayRemote charges the shared budgets of ctx with what a run of its own has spent, once for each run.
func PayRemote(ctx context.Context, run string, s Spend) error {
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		h, err := p.openLedger(ctx)
		if err != nil {
			return err
		}
		if err := h.Use(func(l *ledger) bool { return l.payRun(run, s) }); err != nil {
			return err
		}
	}
	return nil
}

// payRun adds what a run has spent, and returns false if it was added before.
func (l *ledger) payRun(run string, s Spend) bool {
	if slices.Contains(l.Runs, run) {
		return false
	}
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
