package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A Budget bounds what a turn may cost. It is checked before every call of a
// model and before every round of tool calls; a zero field is no bound. It is that
// of one agent; with Share that of all below a context.
type Budget struct {
	Of        string        // whose it is, for errors; empty: the name of the Config
	Tokens    int           // of requests and replies together, as the provider counts them
	Money     float64       // in the currency of Prices; what has no price is not counted
	Calls     int           // requests to models, summaries included
	ToolCalls int           // calls of tools that were begun
	Time      time.Duration // active time of a run; waiting for a person does not count. Needs Config: it is Def.Timeout
	Prices    map[string]Price
	Price     Price // of models that Prices does not name; zero: they have no price
}

// Price is what a million tokens cost.
type Price struct {
	Input, Output float64
	Cached        float64 // of Input, the part read from the provider's cache; 0: as Input
}

// cost of a reply; known is false where nobody has said what the model costs.
func (b *Budget) cost(model string, u llm.Usage) (money float64, known bool) {
	p, ok := b.Prices[model]
	if !ok {
		p = b.Price
	}
	if p == (Price{}) {
		return 0, false
	}
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	const million = 1e6
	return (float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Output)*p.Output) / million, true
}

// Spend is what models and tools have cost.
type Spend struct {
	Calls     int       `json:"calls,omitempty"`      // requests to models
	ToolCalls int       `json:"tool_calls,omitempty"` // calls of tools
	Usage     llm.Usage `json:"usage,omitzero"`
	Money     float64   `json:"money,omitempty"`
	Unpriced  int       `json:"unpriced,omitempty"` // requests whose cost is not known and not in Money
}

func (s Spend) add(o Spend) Spend {
	return Spend{Calls: s.Calls + o.Calls, ToolCalls: s.ToolCalls + o.ToolCalls, Usage: s.Usage.Add(o.Usage),
		Money: s.Money + o.Money, Unpriced: s.Unpriced + o.Unpriced}
}

// spend is what one reply costs.
func (b *Budget) spend(r *llm.Reply) Spend {
	s := Spend{Calls: 1, Usage: r.Usage}
	money, known := b.cost(r.Model, r.Usage)
	if s.Money = money; !known {
		s.Unpriced = 1
	}
	return s
}

// BudgetError says that a turn has used up its budget. The run has failed before
// the call that would have exceeded it, keeps what it has, and goes on when it is
// resumed by a graph with a larger budget.
type BudgetError struct {
	Of     string // whose budget it is; empty: nobody has said
	What   string // "tokens", "money", "calls" or "tool calls"
	Limit  string
	Spent  string
	Shared bool // others spend from it, too: see Budget.Share

	scope string // of a shared one
}

func (e *BudgetError) Error() string {
	whose := ""
	if of := e.Of; of != "" || e.Shared {
		whose = " of " + cmp.Or(of, "the run")
	}
	if e.Shared {
		whose += " and the agents below it"
	}
	return fmt.Sprintf("the budget%s for %s is used up: %s of %s; raise it and resume, or begin a new turn", whose, e.What, e.Spent, e.Limit)
}

// Unwrap is the limit as the engine tells of its own, for callers that do not care
// which one it was.
func (e *BudgetError) Unwrap() error { return &graph.LimitError{Status: graph.VisitLimit} }

// IterationError says that a model has replied as often in a turn as it may and
// still wants to go on. What was said is kept; the run goes on when it is resumed
// by a graph with a higher limit, and a new turn has a count of its own.
type IterationError struct {
	Node  string
	Limit int
}

func (e *IterationError) Error() string {
	return fmt.Sprintf("%s has replied %d times in this turn, which is the limit, and is not done; raise MaxIterations and resume, or begin a new turn", e.Node, e.Limit)
}

// Unwrap is the limit as the engine tells of its own.
func (e *IterationError) Unwrap() error {
	return &graph.LimitError{Status: graph.VisitLimit, Node: e.Node, Limit: e.Limit, Count: e.Limit + 1}
}

// allows says what is used up, if anything.
func (b *Budget) allows(s Spend) error {
	if total := s.Usage.Input + s.Usage.Output; b.Tokens > 0 && total >= b.Tokens {
		return &BudgetError{Of: b.Of, What: "tokens", Limit: strconv.Itoa(b.Tokens), Spent: strconv.Itoa(total)}
	}
	if b.Money > 0 && s.Money >= b.Money {
		const cents = 4
		return &BudgetError{Of: b.Of, What: "money", Limit: strconv.FormatFloat(b.Money, 'f', -1, 64), Spent: strconv.FormatFloat(s.Money, 'f', cents, 64)}
	}
	if b.Calls > 0 && s.Calls >= b.Calls {
		return &BudgetError{Of: b.Of, What: "calls", Limit: strconv.Itoa(b.Calls), Spent: strconv.Itoa(s.Calls)}
	}
	return nil
}

// allowsTools says whether n more calls of tools may be made.
func (b *Budget) allowsTools(s Spend, n int) error {
	if b.ToolCalls > 0 && s.ToolCalls+n > b.ToolCalls {
		return &BudgetError{Of: b.Of, What: "tool calls", Limit: strconv.Itoa(b.ToolCalls), Spent: strconv.Itoa(s.ToolCalls)}
	}
	return nil
}
