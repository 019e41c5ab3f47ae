package runview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/report/overview"
	"raddle.dev/llm"
)

// A SpendTotal is what the calls of models in this process have used and cost. The zero value is ready to use. It is not
// safe for concurrent use.
type SpendTotal struct {
	calls   int
	Usage   llm.Usage // of all calls
	cost    float64   // US dollars
	unknown []string  // models whose price is unknown, each once
	priced  bool      // the price of at least one call is known
}

// AddCall adds a call of a model, which cost this many US dollars if its price is known.
func (s *SpendTotal) AddCall(u llm.Usage, model string, cost float64, known bool) {
	s.calls++
	s.Usage = s.Usage.Add(u)
	s.cost += cost
	s.priced = s.priced || known
	replayed := provider.IsReplay(model)
	if model = cmp.Or(model, "the model"); !known && !replayed && !slices.Contains(s.unknown, model) {
		s.unknown = append(s.unknown, model)
	}
}

// String returns the spending on one line, or "".
func (s *SpendTotal) String() string {
	if s.calls == 0 {
		return ""
	}
	line := fmt.Sprintf("%s, %d tokens in", wording.FormatCount(s.calls, "model call"), s.Usage.Input)
	if s.Usage.Cached > 0 {
		line += fmt.Sprintf(" (%d cached)", s.Usage.Cached)
	}
	line += fmt.Sprintf(", %d out", s.Usage.Output)
	if !s.priced && len(s.unknown) == 0 {
		return line
	}
	return line + ", " + costText(s.cost, s.priced, s.unknown)
}

// FormatCost returns the cost for the last line about a run, "" if there is none.
func (s *SpendTotal) FormatCost() string {
	amount := fmt.Sprintf("$%.4f", s.cost)
	if s.cost > 0 && s.cost < 0.0001 {
		amount = "under $0.0001"
	}
	missing := "no price known for " + term.CleanText(strings.Join(s.unknown, ", "))
	switch {
	case s.calls == 0 || !s.priced && len(s.unknown) == 0:
		return ""
	case !s.priced:
		return missing
	case len(s.unknown) > 0:
		return "at least " + amount + " (" + missing + ")"
	}
	return amount
}

// FormatUsage returns the model calls of a run's journal on one line.
func FormatUsage(u overview.Usage) string {
	line := fmt.Sprintf("%s, %d tokens in, %d out", wording.FormatCount(u.Calls, "model call"), u.Input, u.Output)
	var unknown []string
	if u.Unpriced > 0 {
		unknown = append(unknown, wording.FormatCount(u.Unpriced, "call"))
	}
	switch {
	case u.Cost != nil:
		return line + ", " + costText(*u.Cost, true, unknown)
	case unknown != nil:
		return line + ", " + costText(0, false, unknown)
	}
	return line
}

// costText returns an amount, and the models that it does not include.
func costText(cost float64, priced bool, unknown []string) string {
	missing := ""
	if len(unknown) > 0 {
		missing = "of " + term.CleanText(strings.Join(unknown, ", ")) + " is not known"
	}
	switch {
	case !priced:
		return "the price " + missing
	case missing != "":
		return fmt.Sprintf("%.4f USD and more: the price %s", cost, missing)
	}
	return fmt.Sprintf("%.4f USD", cost)
}
