package server

import (
	"sync/atomic"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/llm"
)

// Totals counts what the drives of a service have done. It is safe for concurrent use.
type Totals struct {
	Started, Ended, Failed    atomic.Int64 // drives
	ModelCalls, ToolCalls     atomic.Int64
	ToolErrors                atomic.Int64
	InputTokens, OutputTokens atomic.Int64
	Questions                 atomic.Int64
	microDollars              atomic.Int64
}

// CostDollars returns what the model calls have cost whose price is known, in US dollars.
func (t *Totals) CostDollars() float64 { return float64(t.microDollars.Load()) / 1e6 }

// countEvent counts an event of a drive.
func (t *Totals) countEvent(ev graph.Event, price func(model string, u llm.Usage) (dollars float64, known bool)) {
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		t.Started.Add(1)
	case graph.RunEnded:
		t.Ended.Add(1)
		if b.Result.Status == graph.Failed {
			t.Failed.Add(1)
		}
	case graph.QuestionAsked:
		t.Questions.Add(1)
	case graph.ValueEmitted:
		if done, ok := b.Value.(agent.ToolDone); ok {
			t.ToolCalls.Add(1)
			if done.Error {
				t.ToolErrors.Add(1)
			}
		}
	}
	if call, ok := updates.ModelCallOf(ev); ok && !call.Summary {
		t.ModelCalls.Add(1)
		if cost, known := call.Cost(price); known {
			t.microDollars.Add(int64(cost * 1e6))
		}
		t.InputTokens.Add(int64(call.Usage.Input))
		t.OutputTokens.Add(int64(call.Usage.Output))
	}
}
