package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A Budget limits what one turn of one agent may cost; after Share it limits
// all agents below a context together. It is checked before every model call
// and before every round of tool calls. A zero field sets no limit.
type Budget struct {
	Of        string  // the owner, for error messages; empty: the name of the Config
	At        string  // where it is set, such as FILE:LINE, for error messages; empty: unknown
	Tokens    int     // of requests and replies together, as counted by the provider
	Money     float64 // in the currency of Prices; a request without a known price does not count
	Calls     int     // requests to models, including requests for summaries
	ToolCalls int     // tool calls that were started
	// Time is active time of a run; waiting for a person does not count. It works only in a Config, as Def.Timeout.
	Time   time.Duration
	Prices map[string]Price
	Price  Price // of models that Prices does not list; zero: their price is unknown
}

// Price is the price of a million tokens. The zero value is an unknown price.
type Price struct {
	Input, Output float64
	Cached        float64 // for the part of Input that the provider read from its cache; 0: the price of Input
	Written       float64 // for the part of Input that the provider wrote to its cache; 0: the price of Input
	Search        float64 // of one search that the provider makes by itself; 0: unknown
	// Long are the prices of requests with many tokens, in any order. They count for the whole request and its reply.
	Long []LongPrice
}

// A LongPrice is the price of a million tokens of requests with more than Above tokens. Its zero prices are those of
// [Price].
type LongPrice struct {
	Above         int
	Input, Output float64
	Cached        float64
	Written       float64
}

// IsZero reports whether the price is unknown.
func (p Price) IsZero() bool {
	return p.Input == 0 && p.Output == 0 && p.Cached == 0 && p.Written == 0 && len(p.Long) == 0
}

// CostOf returns the cost of one reply, 0 if the price is unknown.
func (p Price) CostOf(u llm.Usage) float64 {
	at := p.at(u.Input)
	const million = 1e6
	plain := u.Input - u.Cached - u.Written
	input := float64(plain)*at.Input + float64(u.Cached)*at.Cached + float64(u.Written)*at.Written
	return (input+float64(u.Output)*at.Output)/million + float64(u.Searches)*p.Search
}

// at returns the price of a request with a number of tokens: every part of it is set, and it is the same for all sizes.
func (p Price) at(tokens int) Price {
	at := Price{Input: p.Input, Output: p.Output, Cached: p.Cached, Written: p.Written}
	above := -1
	for _, long := range p.Long {
		if tokens > long.Above && long.Above > above {
			above = long.Above
			at = Price{
				Input: cmp.Or(long.Input, p.Input), Output: cmp.Or(long.Output, p.Output), Cached: cmp.Or(long.Cached, p.Cached), Written: cmp.Or(long.Written, p.Written),
			}
		}
	}
	at.Cached = cmp.Or(at.Cached, at.Input)
	at.Written = cmp.Or(at.Written, at.Input)
	return at
}

// Max returns the price of requests that either of two models may answer: for every size the higher one.
func (p Price) Max(other Price) Price {
	higher := func(tokens int) Price {
		a := p.at(tokens)
		b := other.at(tokens)
		return Price{Input: max(a.Input, b.Input), Output: max(a.Output, b.Output), Cached: max(a.Cached, b.Cached), Written: max(a.Written, b.Written)}
	}
	all := higher(0)
	all.Search = max(p.Search, other.Search)
	for _, long := range slices.Concat(p.Long, other.Long) {
		at := higher(long.Above + 1)
		all.Long = append(all.Long, LongPrice{Above: long.Above, Input: at.Input, Output: at.Output, Cached: at.Cached, Written: at.Written})
	}
	return all
}

// replyCost returns the cost of a reply. known is false if the model has no price.
func (b *Budget) replyCost(model string, u llm.Usage) (money float64, known bool) {
	p, ok := b.Prices[model]
	if !ok {
		p = b.Price
	}
	return p.CostOf(u), !p.IsZero()
}

// Spend is the amount that models and tools have used.
type Spend struct {
	Calls     int       `json:"calls,omitempty"`      // requests to models
	ToolCalls int       `json:"tool_calls,omitempty"` // calls of tools
	Usage     llm.Usage `json:"usage,omitzero"`
	Money     float64   `json:"money,omitempty"`
	Unpriced  int       `json:"unpriced,omitempty"` // requests whose cost is unknown and therefore not part of Money
}

func (s Spend) add(o Spend) Spend {
	return Spend{Calls: s.Calls + o.Calls, ToolCalls: s.ToolCalls + o.ToolCalls, Usage: s.Usage.Add(o.Usage),
		Money: s.Money + o.Money, Unpriced: s.Unpriced + o.Unpriced}
}

// replySpend returns the cost of one reply.
func (b *Budget) replySpend(r *llm.Reply) Spend {
	s := Spend{Calls: 1, Usage: r.Usage}
	money, known := b.replyCost(r.Model, r.Usage)
	if s.Money = money; !known {
		s.Unpriced = 1
	}
	return s
}

// BudgetError says that a turn has used up its budget. The run failed before
// the call that would have exceeded the budget, and its results are saved. It
// continues when it is resumed by a graph with a larger budget.
type BudgetError struct {
	Of     string // the owner of the budget; empty: unknown
	At     string // where the budget is set; empty: unknown
	What   string // "tokens", "money", "calls" or "tool calls"
	Limit  string
	Spent  string
	Shared bool // other agents use it too: see Budget.Share
	Parts  int  // how many runs of their own need a part of what is left, which is too little for that; 0: it is used up

	scope string // of a shared budget
}

func (e *BudgetError) Error() string {
	whose := ""
	if of := e.Of; of != "" || e.Shared {
		whose = " of " + cmp.Or(of, "the run")
	}
	if e.Shared {
		whose += " and the agents below it"
	}
	if e.At != "" {
		whose += " (" + e.At + ")"
	}
	if e.Parts > 0 {
		return fmt.Sprintf("the budget%s for %s is too small for %d runs on queues at the same time: %s of %s are used; raise it and resume", whose, e.What, e.Parts, e.Spent, e.Limit)
	}
	return fmt.Sprintf("the budget%s for %s is used up: %s of %s; raise it and resume, or start a new turn", whose, e.What, e.Spent, e.Limit)
}

// Scope returns the scope of a shared budget, as [Budget.Share] got it.
func (e *BudgetError) Scope() string { return e.scope }

// Unwrap returns the error that the engine uses for its own limits, for callers
// that do not need to know which limit it was.
func (e *BudgetError) Unwrap() error { return &graph.LimitError{Status: graph.VisitLimit} }

// IterationError says that a model has given the maximum number of replies in a
// turn and is not finished. The conversation is saved. The run continues when
// it is resumed by a graph with a higher limit; a new turn starts a new count.
type IterationError struct {
	Node  string
	Limit int
}

func (e *IterationError) Error() string {
	return fmt.Sprintf("%s has replied %d times in this turn, which is the limit, and is not finished; raise MaxIterations and resume, or start a new turn", e.Node, e.Limit)
}

// Unwrap returns the error that the engine uses for its own limits.
func (e *IterationError) Unwrap() error {
	return &graph.LimitError{Status: graph.VisitLimit, Node: e.Node, Limit: e.Limit, Count: e.Limit + 1}
}

// checkSpend returns a BudgetError if a limit is reached, else nil.
func (b *Budget) checkSpend(s Spend) error {
	if total := s.Usage.Input + s.Usage.Output; b.Tokens > 0 && total >= b.Tokens {
		return &BudgetError{Of: b.Of, At: b.At, What: "tokens", Limit: strconv.Itoa(b.Tokens), Spent: strconv.Itoa(total)}
	}
	if b.Money > 0 && s.Money >= b.Money {
		const cents = 4
		return &BudgetError{Of: b.Of, At: b.At, What: "money", Limit: strconv.FormatFloat(b.Money, 'f', -1, 64), Spent: strconv.FormatFloat(s.Money, 'f', cents, 64)}
	}
	if b.Calls > 0 && s.Calls >= b.Calls {
		return &BudgetError{Of: b.Of, At: b.At, What: "calls", Limit: strconv.Itoa(b.Calls), Spent: strconv.Itoa(s.Calls)}
	}
	return nil
}

// allowsTools returns a BudgetError if n more tool calls would exceed the
// limit, else nil.
func (b *Budget) allowsTools(s Spend, n int) error {
	if b.ToolCalls > 0 && s.ToolCalls+n > b.ToolCalls {
		return &BudgetError{Of: b.Of, At: b.At, What: "tool calls", Limit: strconv.Itoa(b.ToolCalls), Spent: strconv.Itoa(s.ToolCalls)}
	}
	return nil
}
