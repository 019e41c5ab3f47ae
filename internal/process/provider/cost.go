package provider

import (
	"reflect"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/process/catalogue"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// UsageCost returns the cost of a reply in US dollars, by the name that its provider uses for its model. known is false
// if neither config.yaml nor the catalogue has the price of exactly this model, or if clients have it at different
// prices.
func (r *Resolver) UsageCost(model string, u llm.Usage) (dollars float64, known bool) {
	price, known := r.modelPrice(model)
	return price.CostOf(u), known
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

// modelPrice returns the price of the model that answers under a name: that of config.yaml, otherwise that of the
// catalogue for the clients that are ready, otherwise for the other clients, whose replies may be of another machine or
// of a test, otherwise the price that config.yaml assumes.
func (r *Resolver) modelPrice(name string) (price agent.Price, known bool) {
	for i := range r.clients {
		for j := range r.clients[i].Models {
			listed := &r.clients[i].Models[j]
			if price, set := configuredPrice(listed); set && catalogue.IsVersion(name, listed.Name) {
				price.Search = searchPrices[r.clients[i].listedName()]
				return price, true
			}
		}
	}
	var found []catalogue.Model
	for _, ready := range []bool{true, false} {
		for i := range r.clients {
			c := &r.clients[i]
			if m := r.known.findModel(c, name); c.isReady() == ready && (m.Free || !m.Price.IsZero()) {
				found = append(found, m)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	for _, m := range found {
		if !reflect.DeepEqual(m.Price, found[0].Price) {
			return agent.Price{}, false // the name does not say which client has answered
		}
		price = m.Price
		known = true
	}
	if assumed := assumedPrice(r.config); !known && !assumed.IsZero() && !IsReplay(name) {
		return assumed, true
	}
	return price, known
}
