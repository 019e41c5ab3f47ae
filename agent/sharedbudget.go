package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A sharedBudget is a budget that concurrent agents share. It is in a context made by
// Budget.Share.
type sharedBudget struct {
	Budget
	scope string
	base  Spend         // what was spent before it was created
	outer *sharedBudget // the budget that contains this one and pays too
}

type sharedBudgetKey struct{}

func sharedBudgetOf(ctx context.Context) *sharedBudget {
	p, _ := ctx.Value(sharedBudgetKey{}).(*sharedBudget)
	return p
}

// Share returns a context whose agents all use one budget together, at every
// depth, in addition to their own budgets: children of a team, agents that are
// nodes or tools, and every caller of a model from MeterModel.
//
// A model call starts when the budget has room for what was spent and what the
// running calls may still cost, or when no other call is running; otherwise it
// waits until one of these has ended. So all agents together exceed the budget
// no further than one agent alone would: by its last call. The cost of a call
// is estimated from its request and, for the reply, from Request.MaxTokens or
// else from the longest reply so far, at least 4096 tokens. The cost is
// journaled before a reply is used: a resumed run continues with what is left.
//
// scope names the budget within a run: graph.TaskPath for everything that one
// task runs, "" for the whole run. If ctx already has a budget of that scope,
// that one is used. spent is what was spent before. Time that a call waits
// counts for timeouts. A budget without limits has no effect, and Time has no
// effect either.
func (b Budget) Share(ctx context.Context, scope string, spent Spend) context.Context {
	if b.Tokens <= 0 && b.Money <= 0 && b.Calls <= 0 && b.ToolCalls <= 0 {
		return ctx
	}
	outer := sharedBudgetOf(ctx)
	for p := outer; p != nil; p = p.outer {
		if p.scope == scope {
			return ctx
		}
	}
	return context.WithValue(ctx, sharedBudgetKey{}, &sharedBudget{b, scope, spent, outer})
}

// MeterModel returns a model whose calls are paid from the shared budgets of their
// context, with the prices of b if it has any. The cost of a model call inside
// a tool call is part of what the agent has spent. The model nodes of this
// package charge their models themselves, and MeterModel returns a metered model
// unchanged.
func (b Budget) MeterModel(m llm.Model) llm.Model {
	if c, ok := m.(*meteredModel); ok {
		return c
	}
	return &meteredModel{b, m}
}

type meteredModel struct {
	budget Budget
	model  llm.Model
}

// Stream implements llm.Model.
func (m *meteredModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	if sharedBudgetOf(ctx) == nil && toolSpendOf(ctx) == nil {
		return m.model.Stream(ctx, r)
	}
	return func(yield func(llm.Delta, error) bool) { m.budget.meterCall(ctx, m.model, r, yield) }
}

// meterCall makes one call that is paid for.
func (b *Budget) meterCall(ctx context.Context, m llm.Model, r llm.Request, yield func(llm.Delta, error) bool) {
	own := toolSpendOf(ctx)
	c, err := b.reserveCall(ctx, sharedBudgetOf(ctx), &r)
	if err != nil {
		yield(llm.Delta{}, err)
		return
	}
	refused := false
	defer func() { c.release(!refused) }() // for a call that failed or whose reader left
	// an inner model is already paid for, and must not wait for this call
	ctx = context.WithValue(ctx, sharedBudgetKey{}, (*sharedBudget)(nil))
	for d, err := range m.Stream(withToolSpend(ctx, nil), r) {
		refused = err != nil && ctx.Err() == nil
		if err == nil && d.Done != nil {
			own.add(b.replySpend(d.Done))
			if err = c.settleCost(b, d.Done); err != nil {
				d = llm.Delta{}
			}
		}
		if !yield(d, err) || err != nil {
			return
		}
	}
}

// ledger is the state of a shared budget: what the journal records, and what one drive
// knows.
type ledger struct {
	Spent Spend `json:"spent,omitzero"`
	// Factor is the highest ratio of reported to estimated request tokens so far, in per cent.
	Factor       int      `json:"factor,omitempty"`
	Reply        int      `json:"reply,omitempty"` // tokens of the longest reply
	CountedCalls []string `json:"begun,omitempty"` // tool calls that are counted and may be made again
	Runs         []string `json:"runs,omitempty"`  // runs of their own that are paid
	// Started is how many model calls were running when the ledger was recorded. They count as spent if the drive that
	// made them has ended: no one knows whether they were made.
	Started int `json:"started,omitempty"`
	// Lent is what runs of their own may spend until they are paid, by the task that waits for them.
	Lent map[string]Loan `json:"lent,omitempty"`

	reserved reservation // of all running calls
	isOpened bool        // in this drive
}

// A reservation is what running calls may cost.
type reservation struct {
	calls, tokens int
	money         float64
}

func (h *reservation) add(o reservation, times int) {
	h.calls += times * o.calls
	h.tokens += times * o.tokens
	if h.money += float64(times) * o.money; h.calls == 0 {
		h.money = 0 // removes rounding errors
	}
}

// callReservation are the amounts that the shared budgets reserve for one running model call.
type callReservation struct {
	estimate int // tokens of the request, uncorrected
	entries  []ledgerReservation
}

type ledgerReservation struct {
	*sharedBudget
	*graph.SharedValue[ledger]
	reservation
}

// reserveCall waits until all shared budgets have room for a call, the innermost first, so
// that a call that waits for an outer budget does not block others.
func (b *Budget) reserveCall(ctx context.Context, p *sharedBudget, r *llm.Request) (*callReservation, error) {
	c := &callReservation{estimate: headTokens(r)}
	for i := range r.Messages {
		c.estimate += messageTokens(&r.Messages[i])
	}
	for ; p != nil; p = p.outer {
		h, err := p.openLedger(ctx)
		if err == nil {
			err = h.Await(ctx, func(l *ledger) (bool, error) {
				h.reservation = b.pricedBudget(p).newReservation(l, r, c.estimate)
				return p.tryReserve(l, h.reservation)
			})
		}
		if err != nil {
			c.release(false)
			return nil, err
		}
		c.entries = append(c.entries, h)
		if err := h.recordStart(); err != nil {
			c.release(false)
			return nil, err
		}
	}
	return c, nil
}

// recordStart records, before a call is made, that it has started, if the budget limits calls: a call counts also if
// its drive is killed.
func (h *ledgerReservation) recordStart() error {
	if h.Calls <= 0 {
		return nil
	}
	return h.Use(func(l *ledger) bool { l.Started = l.reserved.calls; return true })
}

// pricedBudget returns the budget whose prices apply: b, unless it has none.
func (b *Budget) pricedBudget(p *sharedBudget) *Budget {
	if b.Price.IsZero() && b.Prices == nil {
		return &p.Budget
	}
	return b
}

func (p *sharedBudget) openLedger(ctx context.Context) (ledgerReservation, error) {
	t, err := graph.Share[ledger](ctx, "budget "+p.scope)
	if err == nil {
		err = t.Await(ctx, func(l *ledger) (bool, error) { l.open(); return true, nil })
	}
	return ledgerReservation{p, t, reservation{}}, err
}

// open counts the calls of an earlier drive whose outcome was not recorded.
func (l *ledger) open() {
	if !l.isOpened {
		l.isOpened = true
		l.Spent.Calls += l.Started
		l.Started = 0
	}
}

// newReservation returns what a call may cost.
func (b *Budget) newReservation(l *ledger, r *llm.Request, estimate int) reservation {
	u := llm.Usage{Input: estimate * max(l.Factor, percent) / percent, Output: r.MaxTokens}
	u.Output = cmp.Or(u.Output, max(maxReply, l.Reply))
	h := reservation{calls: 1, tokens: u.Input + u.Output}
	h.money, _ = b.replyCost("", u)
	for name := range b.Prices { // the reply says which of them was used
		money, _ := b.replyCost(name, u)
		h.money = max(h.money, money)
	}
	return h
}

// tryReserve reserves an amount and returns true if there is room for it. It returns
// an error if there will never be room.
func (p *sharedBudget) tryReserve(l *ledger, h reservation) (bool, error) {
	spent := p.base.add(l.Spent)
	lent := l.sumLent()
	if err := p.checkSpend(spent.add(lent.asSpend())); err != nil {
		return false, p.markShared(err)
	}
	all := l.reserved
	all.add(h, 1)
	full := p.Tokens > 0 && spent.Usage.Input+spent.Usage.Output+lent.Tokens+all.tokens > p.Tokens ||
		p.Money > 0 && spent.Money+lent.Money+all.money > p.Money || p.Calls > 0 && spent.Calls+lent.Calls+all.calls > p.Calls
	if full && l.reserved.calls > 0 {
		return false, nil
	}
	l.reserved = all
	return true, nil
}

// markShared marks a BudgetError as one of a shared budget.
func (p *sharedBudget) markShared(err error) error {
	if e, ok := err.(*BudgetError); ok {
		e.Shared = true
		e.scope = p.scope
	}
	return err
}

// IsBudgetExhausted reports whether err says that a budget which ctx shares is used up.
// Then nothing under ctx can continue, and the refused call is not a failure of
// its own: return err unchanged. The run continues when it is resumed with a
// larger budget. If the budget is shared only further below, err is an ordinary
// failure.
func IsBudgetExhausted(ctx context.Context, err error) bool {
	var e *BudgetError
	if !errors.As(err, &e) || !e.Shared {
		return false
	}
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		if p.scope == e.scope {
			return true
		}
	}
	return false
}

// settleCost records the cost of a call and releases its reservation.
func (c *callReservation) settleCost(b *Budget, r *llm.Reply) error {
	for len(c.entries) > 0 {
		h := c.entries[0]
		c.entries = c.entries[1:]
		cost := b.pricedBudget(h.sharedBudget).replySpend(r)
		err := h.Use(func(l *ledger) bool {
			l.reserved.add(h.reservation, -1)
			l.Started = l.reserved.calls
			l.Spent = l.Spent.add(cost)
			l.Reply = max(l.Reply, r.Usage.Output)
			if c.estimate > 0 {
				l.Factor = min(max(l.Factor, r.Usage.Input*percent/c.estimate), maxFactor)
			}
			return true
		})
		if err != nil {
			c.release(true)
			return err
		}
	}
	return nil
}

// release releases the rest of the reservation of a call. isMade says that the call may have been made: then it counts.
func (c *callReservation) release(isMade bool) {
	for _, h := range c.entries {
		// a failure to record it changes nothing: the start of the call is in the journal
		_ = h.Use(func(l *ledger) bool {
			l.reserved.add(h.reservation, -1)
			counts := isMade && h.Calls > 0
			if counts {
				l.Spent.Calls++
				l.Started = l.reserved.calls
			}
			return counts
		})
	}
	c.entries = nil
}

// countToolCall counts a tool call in the shared budgets that limit tool calls, once,
// however often it is started again. The caller must call done when the call
// will not be made again.
func countToolCall(ctx context.Context) (done func(), err error) {
	key := graph.EffectKey(ctx)
	var counted []ledgerReservation
	for p := sharedBudgetOf(ctx); p != nil; p = p.outer {
		if p.ToolCalls <= 0 {
			continue
		}
		h, err := p.openLedger(ctx)
		if err != nil {
			return nil, err
		}
		var over error
		err = h.Use(func(l *ledger) bool {
			if slices.Contains(l.CountedCalls, key) {
				return false
			}
			if over = p.allowsTools(p.base.add(l.Spent), 1); over != nil {
				return false
			}
			l.Spent.ToolCalls++
			l.CountedCalls = append(l.CountedCalls, key)
			return true
		})
		if err == nil {
			err = p.markShared(over)
		}
		if err != nil {
			return nil, err
		}
		counted = append(counted, h)
	}
	return func() {
		for _, h := range counted {
			_ = h.Use(func(l *ledger) bool { // recorded together with the next change
				l.CountedCalls = slices.DeleteFunc(l.CountedCalls, func(k string) bool { return k == key })
				return false
			})
		}
	}, nil
}
