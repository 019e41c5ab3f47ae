package cli

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/provider"
	"raddle.dev/internal/wording"
	"raddle.dev/llm"
)

// spendTotal is the cost of models during this process.
type spendTotal struct {
	calls   int
	usage   llm.Usage
	cost    float64  // US dollars
	unknown []string // models whose price is unknown, each once
	priced  bool     // the price of at least one call is known
}

func (s *spendTotal) addCall(u llm.Usage, model string, cost float64, known bool) {
	s.calls++
	s.usage = s.usage.Add(u)
	s.cost += cost
	s.priced = s.priced || known
	replayed := provider.IsReplay(model)
	if model = orElse(model, "the model"); !known && !replayed && !slices.Contains(s.unknown, model) {
		s.unknown = append(s.unknown, model)
	}
}

// String returns the spending on one line, or "".
func (s *spendTotal) String() string {
	if s.calls == 0 {
		return ""
	}
	line := fmt.Sprintf("%s, %d tokens in", wording.FormatCount(s.calls, "model call"), s.usage.Input)
	if s.usage.Cached > 0 {
		line += fmt.Sprintf(" (%d cached)", s.usage.Cached)
	}
	line += fmt.Sprintf(", %d out", s.usage.Output)
	if !s.priced && len(s.unknown) == 0 {
		return line
	}
	return line + ", " + costText(s.cost, s.priced, s.unknown)
}

// String returns the model calls of a run's journal on one line.
func (u usageReport) String() string {
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
		missing = "of " + plainText(strings.Join(unknown, ", ")) + " is not known"
	}
	switch {
	case !priced:
		return "the price " + missing
	case missing != "":
		return fmt.Sprintf("%.4f USD and more: the price %s", cost, missing)
	}
	return fmt.Sprintf("%.4f USD", cost)
}
