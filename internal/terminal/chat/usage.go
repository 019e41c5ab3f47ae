package chat

import (
	"fmt"
	"slices"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/report/updates"
	"raddle.dev/llm"
)

// usage is what the models of a conversation have used since it was opened. It is safe for concurrent use.
type usage struct {
	models  *provider.Resolver
	details details

	mu      sync.Mutex
	context int // tokens of the last request of the conversation, with its reply
	window  int // of the model that answered; 0: unknown
	rows    []modelUsage
	signal  chan struct{}
}

// modelUsage is what one model has used.
type modelUsage struct {
	model   string
	calls   int
	usage   llm.Usage
	cost    float64
	priced  bool
	replays bool
}

// changeSignal returns a channel that receives after a change.
func (u *usage) changeSignal() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.signal == nil {
		u.signal = make(chan struct{}, 1)
	}
	return u.signal
}

// handleEvent counts the replies of models.
func (u *usage) handleEvent(ev graph.Event) {
	b, ok := ev.Body.(graph.ValueEmitted)
	if !ok {
		return
	}
	switch v := b.Value.(type) {
	case agent.ReasoningDelta:
		u.details.addReasoning(v.Text)
	case agent.ToolStarted:
		u.details.addCall(v.ID, v.Name, string(v.Args))
	case agent.ToolDone:
		u.details.addResult(v.ID, v.Name, v.Text)
	}
	if call, ok := updates.ModelCallOf(ev); ok {
		u.addCall(call, updates.PlainPath(ev.Path) == "" && !call.Summary)
	}
}

// addCall counts a call of a model. own says that it is a reply of the conversation.
func (u *usage) addCall(call updates.ModelCall, own bool) {
	model := call.Model
	n := call.Usage
	cost, priced := call.Cost(u.models.UsageCost)
	u.mu.Lock()
	defer u.mu.Unlock()
	at := slices.IndexFunc(u.rows, func(r modelUsage) bool { return r.model == model })
	if at < 0 {
		u.rows = append(u.rows, modelUsage{model: model, priced: true, replays: provider.IsReplay(model)})
		at = len(u.rows) - 1
	}
	r := &u.rows[at]
	r.calls++
	r.usage = r.usage.Add(n)
	r.cost += cost
	r.priced = r.priced && priced
	if own {
		u.context = n.Input + n.Output
		u.window = u.models.Facts("", model).Window
	}
	u.notifyLocked()
}

// notifyChange makes the conversation draw its lines again.
func (u *usage) notifyChange() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.notifyLocked()
}

func (u *usage) notifyLocked() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// contextText returns how full the model's window is; "" if that is unknown.
func (u *usage) contextText() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.context == 0:
		return ""
	case u.window == 0:
		return wording.FormatTokens(u.context) + " tokens"
	}
	return fmt.Sprintf("%s of %s", wording.FormatTokens(u.context), wording.FormatTokens(u.window))
}

// costText returns what the conversation has cost since it was opened; "" if nothing has a price.
func (u *usage) costText() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := 0.0
	known := false
	for _, r := range u.rows {
		sum += r.cost
		known = known || r.priced && !r.replays
	}
	if !known {
		return ""
	}
	return fmt.Sprintf("$%.2f", sum)
}

// reset begins to count for another conversation.
func (u *usage) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.context = 0
	u.window = 0
	u.rows = nil
}

// list returns what each model has used, in the order of their first call.
func (u *usage) list() []modelUsage {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.rows)
}
