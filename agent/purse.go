package agent

import (
	"context"
	"errors"
	"iter"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A purse is a budget that agents beside each other spend from: what a context
// made by Budget.Share carries.
type purse struct {
	Budget
	scope string
	base  Spend  // before it was opened
	outer *purse // which has to last for it, too
}

type purseKey struct{}

func purseOf(ctx context.Context) *purse {
	p, _ := ctx.Value(purseKey{}).(*purse)
	return p
}

// Share makes all agents below a context spend from one budget together, at every
// depth, besides the budgets that they have of their own: children of a team,
// agents that are nodes or tools, whatever calls its model through Charged.
//
// A call of a model begins when what was spent and what the calls under way may
// still cost leave room for it, or when none is under way; else it waits until one
// of these has ended. So all together exceed the budget no further than one agent
// alone would: by its last call. What a call may cost is estimated: from its
// request, and for the reply from Request.MaxTokens, or else from the longest
// reply so far, 4096 tokens at least. What is spent is journaled before a reply is
// used: a run that is resumed goes on with what is left.
//
// scope names the budget within a run: graph.TaskPath for what one task runs, ""
// for the whole run. Where ctx has a budget of that scope already, that one holds.
// spent was spent before. Time that a call waits counts for timeouts. A budget
// without bounds changes nothing, and neither
// does its Time.
func (b Budget) Share(ctx context.Context, scope string, spent Spend) context.Context {
	if b.Tokens <= 0 && b.Money <= 0 && b.Calls <= 0 && b.ToolCalls <= 0 {
		return ctx
	}
	outer := purseOf(ctx)
	for p := outer; p != nil; p = p.outer {
		if p.scope == scope {
			return ctx
		}
	}
	return context.WithValue(ctx, purseKey{}, &purse{b, scope, spent, outer})
}

// Charged is a model whose calls are paid for from the budgets that their context
// shares; b has their prices, where it has any. What a tool's call of it costs is
// part of what its agent has spent. Model nodes of this package see to it
// themselves, and a model that is charged already stays as it is.
func (b Budget) Charged(m llm.Model) llm.Model {
	if c, ok := m.(*charged); ok {
		return c
	}
	return &charged{b, m}
}

type charged struct {
	budget Budget
	model  llm.Model
}

// Stream implements llm.Model.
func (m *charged) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	if purseOf(ctx) == nil && billOf(ctx) == nil {
		return m.model.Stream(ctx, r)
	}
	return func(yield func(llm.Delta, error) bool) { m.budget.charge(ctx, m.model, r, yield) }
}

// charge makes one call that is paid for.
func (b *Budget) charge(ctx context.Context, m llm.Model, r llm.Request, yield func(llm.Delta, error) bool) {
	own := billOf(ctx)
	c, err := b.begin(ctx, purseOf(ctx), &r)
	if err != nil {
		yield(llm.Delta{}, err)
		return
	}
	defer c.end()                                           // of a call that has failed, or whose reader has gone
	ctx = context.WithValue(ctx, purseKey{}, (*purse)(nil)) // a model within is paid for, and must not wait for this call
	for d, err := range m.Stream(withBill(ctx, nil), r) {
		if err == nil && d.Done != nil {
			own.add(b.spend(d.Done))
			if err = c.settle(b, d.Done); err != nil {
				d = llm.Delta{}
			}
		}
		if !yield(d, err) || err != nil {
			return
		}
	}
}

// till is what the journal and a drive know of a purse.
type till struct {
	Spent  Spend    `json:"spent,omitzero"`
	Factor int      `json:"factor,omitempty"` // per cent: tokens of a request for estimated ones, the most so far
	Reply  int      `json:"reply,omitempty"`  // tokens of the longest
	Begun  []string `json:"begun,omitempty"`  // calls of tools that are counted and may be made again

	flying hold // of all calls under way
}

// A hold is what calls under way may cost.
type hold struct {
	calls, tokens int
	money         float64
}

func (h *hold) add(o hold, times int) {
	h.calls += times * o.calls
	h.tokens += times * o.tokens
	if h.money += float64(times) * o.money; h.calls == 0 {
		h.money = 0 // whatever was rounded
	}
}

// A charge is a call of a model under way, and what the purses hold for it.
type charge struct {
	estimate int // tokens of the request, before any correction
	held     []held
}

type held struct {
	*purse
	*graph.Shared[till]
	hold
}

// begin waits until all purses have room for a call, the innermost first: who
// waits for an outer one keeps nobody outside from going on.
func (b *Budget) begin(ctx context.Context, p *purse, r *llm.Request) (*charge, error) {
	c := &charge{estimate: headTokens(r)}
	for i := range r.Messages {
		c.estimate += messageTokens(&r.Messages[i])
	}
	for ; p != nil; p = p.outer {
		h, err := p.open(ctx)
		if err == nil {
			err = h.Await(ctx, func(t *till) (bool, error) {
				h.hold = b.or(p).hold(t, r, c.estimate)
				return p.admits(t, h.hold)
			})
		}
		if err != nil {
			c.end()
			return nil, err
		}
		c.held = append(c.held, h)
	}
	return c, nil
}

// or is the budget whose prices count: b's, unless it has none.
func (b *Budget) or(p *purse) *Budget {
	if b.Price == (Price{}) && b.Prices == nil {
		return &p.Budget
	}
	return b
}

func (p *purse) open(ctx context.Context) (held, error) {
	t, err := graph.Share[till](ctx, "budget "+p.scope)
	return held{p, t, hold{}}, err
}

// hold is what a call may cost.
func (b *Budget) hold(t *till, r *llm.Request, estimate int) hold {
	u := llm.Usage{Input: estimate * max(t.Factor, percent) / percent, Output: r.MaxTokens}
	if u.Output == 0 {
		u.Output = max(mostReply, t.Reply)
	}
	h := hold{calls: 1, tokens: u.Input + u.Output}
	h.money, _ = b.cost("", u)
	for name := range b.Prices { // which one it will be the reply says
		money, _ := b.cost(name, u)
		h.money = max(h.money, money)
	}
	return h
}

// admits takes a hold where there is room for it. Where nothing will ever be, the
// error says so.
func (p *purse) admits(t *till, h hold) (bool, error) {
	spent := p.base.add(t.Spent)
	if err := p.allows(spent); err != nil {
		return false, p.shared(err)
	}
	all := t.flying
	all.add(h, 1)
	full := p.Tokens > 0 && spent.Usage.Input+spent.Usage.Output+all.tokens > p.Tokens ||
		p.Money > 0 && spent.Money+all.money > p.Money || p.Calls > 0 && spent.Calls+all.calls > p.Calls
	if full && t.flying.calls > 0 {
		return false, nil
	}
	t.flying = all
	return true, nil
}

// shared says on a BudgetError that the budget is not one agent's alone.
func (p *purse) shared(err error) error {
	if e, ok := err.(*BudgetError); ok {
		e.Shared, e.scope = true, p.scope
	}
	return err
}

// UsedUp tells whether a failure is that of a budget which ctx shares: who runs
// under ctx cannot go on either, and what was refused has not failed by itself.
// Pass such a failure on; the run goes on when it is resumed with more. That of a
// budget which is shared only further below is a failure like any other.
func UsedUp(ctx context.Context, err error) bool {
	var e *BudgetError
	if !errors.As(err, &e) || !e.Shared {
		return false
	}
	for p := purseOf(ctx); p != nil; p = p.outer {
		if p.scope == e.scope {
			return true
		}
	}
	return false
}

// settle records what a call has cost, in the place of what was held for it.
func (c *charge) settle(b *Budget, r *llm.Reply) error {
	for len(c.held) > 0 {
		h := c.held[0]
		c.held = c.held[1:]
		cost := b.or(h.purse).spend(r)
		err := h.Use(func(t *till) bool {
			t.flying.add(h.hold, -1)
			t.Spent = t.Spent.add(cost)
			t.Reply = max(t.Reply, r.Usage.Output)
			if c.estimate > 0 {
				t.Factor = min(max(t.Factor, r.Usage.Input*percent/c.estimate), mostFactor)
			}
			return true
		})
		if err != nil {
			c.end()
			return err
		}
	}
	return nil
}

// end lets go of what is still held for a call.
func (c *charge) end() {
	for _, h := range c.held {
		_ = h.Use(func(t *till) bool { t.flying.add(h.hold, -1); return false }) // nothing is recorded, so nothing can fail
	}
	c.held = nil
}

// beginTool counts a call of a tool in the purses that bound them, once, however
// often it is begun again. done tells that it will not be.
func beginTool(ctx context.Context) (done func(), err error) {
	key := graph.EffectKey(ctx)
	var counted []held
	for p := purseOf(ctx); p != nil; p = p.outer {
		if p.ToolCalls <= 0 {
			continue
		}
		h, err := p.open(ctx)
		if err != nil {
			return nil, err
		}
		var over error
		err = h.Use(func(t *till) bool {
			if slices.Contains(t.Begun, key) {
				return false
			}
			if over = p.allowsTools(p.base.add(t.Spent), 1); over != nil {
				return false
			}
			t.Spent.ToolCalls++
			t.Begun = append(t.Begun, key)
			return true
		})
		if err == nil {
			err = p.shared(over)
		}
		if err != nil {
			return nil, err
		}
		counted = append(counted, h)
	}
	return func() {
		for _, h := range counted {
			_ = h.Use(func(t *till) bool { // what is recorded with the next is soon enough
				t.Begun = slices.DeleteFunc(t.Begun, func(k string) bool { return k == key })
				return false
			})
		}
	}, nil
}
