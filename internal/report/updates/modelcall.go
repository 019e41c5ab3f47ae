package updates

import (
	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A ModelCall is what a model has used for a reply or for a summary.
type ModelCall struct {
	Model   string
	Usage   llm.Usage
	Summary bool // the reply is a summary, which is not a part of a conversation

	cost   float64 // in US dollars
	priced bool    // reports whether the cost is known
}

// ModelCallOf returns the call of a model that an event reports; ok is false if it reports none.
func ModelCallOf(ev graph.Event) (c ModelCall, ok bool) {
	emitted, _ := ev.Body.(graph.ValueEmitted)
	switch v := emitted.Value.(type) {
	case agent.ReplyDone:
		return ModelCall{Model: v.Model, Usage: v.Usage, cost: v.Cost, priced: v.Priced}, true
	case agent.SummaryDone:
		return ModelCall{Model: v.Model, Usage: v.Usage, Summary: true}, true
	}
	return c, false
}

// Cost returns what a call has cost, in US dollars: as it was recorded with the reply, or else by the prices of the
// models. known is false if neither says it.
func (c ModelCall) Cost(price func(model string, u llm.Usage) (dollars float64, known bool)) (dollars float64, known bool) {
	if c.priced {
		return c.cost, true
	}
	return price(c.Model, c.Usage)
}
