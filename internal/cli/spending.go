package cli

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/app"
	"raddle.dev/llm"
)

// spending is what models have cost while this process looked on.
type spending struct {
	calls   int
	usage   llm.Usage
	cost    float64  // US dollars
	unknown []string // models whose price is not known, each once
	priced  bool     // the price of at least one call is known
}

func (s *spending) add(u llm.Usage, model string, cost float64, known bool) {
	s.calls++
	s.usage = s.usage.Add(u)
	s.cost += cost
	s.priced = s.priced || known
	replayed := app.IsReplay(model)
	if model = orElse(model, "the model"); !known && !replayed && !slices.Contains(s.unknown, model) {
		s.unknown = append(s.unknown, model)
	}
}

// String is the spending in one line, "" for none.
func (s *spending) String() string {
	if s.calls == 0 {
		return ""
	}
	line := fmt.Sprintf("%s, %d tokens in", plural(s.calls, "model call"), s.usage.Input)
	if s.usage.Cached > 0 {
		line += fmt.Sprintf(" (%d cached)", s.usage.Cached)
	}
	line += fmt.Sprintf(", %d out", s.usage.Output)
	if !s.priced && len(s.unknown) == 0 {
		return line
	}
	return line + ", " + costText(s.cost, s.priced, s.unknown)
}

// String is what a run's journal says of its model calls, in one line.
func (u usage) String() string {
	line := fmt.Sprintf("%s, %d tokens in, %d out", plural(u.Calls, "model call"), u.Input, u.Output)
	var unknown []string
	if u.Unpriced > 0 {
		unknown = append(unknown, plural(u.Unpriced, "call"))
	}
	switch {
	case u.Cost != nil:
		return line + ", " + costText(*u.Cost, true, unknown)
	case unknown != nil:
		return line + ", " + costText(0, false, unknown)
	}
	return line
}

// costText is an amount, and of which models it does not tell.
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
