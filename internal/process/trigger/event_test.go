package trigger

import (
	"context"
	"encoding/json"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
)

// An event starts the triggers that wait for it once for each key, and one for a single run starts none.
func TestSendEvent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.writeAgent("a", "  - {event: go}\n")
	p.enableAgent("a")
	process := p.set.process
	none := func(context.Context, string, []graph.Answer) error { return nil }
	req := app.EventRequest{Name: "go", Key: "k", Data: json.RawMessage(`{"n": 1}`)}
	sent, err := SendEvent(t.Context(), process, req, none)
	if err != nil || len(sent.Started) != 1 || !sent.Kept {
		t.Fatalf("%+v, %v", sent, err)
	}
	again, err := SendEvent(t.Context(), process, req, none)
	if err != nil || !again.Again || len(again.Started) != 1 || again.Started[0] != sent.Started[0] {
		t.Errorf("again: %+v, %v", again, err)
	}
	ticks, err := p.set.Store.ListTicks(t.Context(), "a/event", 10)
	if err != nil || len(ticks) != 1 {
		t.Errorf("the ticks are %+v (%v)", ticks, err)
	}
	if other, err := SendEvent(t.Context(), process, app.EventRequest{Name: "stop"}, none); err != nil || len(other.Started) != 0 {
		t.Errorf("another event: %+v, %v", other, err)
	}
	if wrong, err := SendEvent(t.Context(), process, app.EventRequest{Name: "go", Data: json.RawMessage(`{`)}, none); err == nil || len(wrong.Started) != 0 {
		t.Errorf("an event that was refused: %+v, %v", wrong, err)
	}
}
