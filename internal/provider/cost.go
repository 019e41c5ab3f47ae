package provider

import (
	"cmp"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/runs"
	"raddle.dev/llm"
)

// UsageCost returns the cost of a reply in US dollars, by the name that its provider uses
// for its model. known is false if neither config.yaml nor the catalogue has a
// price.
func (r *Resolver) UsageCost(model string, u llm.Usage) (dollars float64, known bool) {
	price, known := r.modelPrice(model)
	if !known {
		return 0, false
	}
	price.Cached = cmp.Or(price.Cached, price.Input)
	const million = 1e6
	return (float64(u.Input-u.Cached)*price.Input + float64(u.Cached)*price.Cached + float64(u.Output)*price.Output) / million, true
}

// CostOf returns the cost of calls in US dollars, without the calls whose price is
// unknown, and the number of calls with and without a price. It does not count
// replays of a transcript.
func (r *Resolver) CostOf(c runs.Calls) (dollars float64, priced, unknown int) {
	for _, made := range c.Models {
		cost, known := r.UsageCost(made.Model, made.Usage)
		switch {
		case known:
			priced += made.Count
		case !IsReplay(made.Model):
			unknown += made.Count
		}
		dollars += cost
	}
	return dollars, priced, unknown
}

// IsReplay reports whether the name of a model is that of a transcript, which costs
// nothing.
func IsReplay(model string) bool { return strings.HasPrefix(model, replayPrefix) }

// replayPrefix is the prefix of the names of transcripts.
const replayPrefix = "script:"

// modelPrice returns the price of the model whose configured name is the longest prefix of
// the provider's name, otherwise the price in the catalogue.
func (r *Resolver) modelPrice(model string) (price agent.Price, known bool) {
	longest := 0
	for i := range r.config.Clients {
		for j := range r.config.Clients[i].Models {
			listed := &r.config.Clients[i].Models[j]
			if (listed.InputPrice != nil || listed.OutputPrice != nil) && len(listed.Name) > longest && strings.HasPrefix(model, listed.Name) {
				longest, price = len(listed.Name), agent.Price{Input: floatOrZero(listed.InputPrice), Output: floatOrZero(listed.OutputPrice)}
			}
		}
	}
	if longest > 0 {
		return price, true
	}
	price = catalogueFacts(model).Price
	return price, price != agent.Price{}
}
