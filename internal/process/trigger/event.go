package trigger

import (
	"context"
	"errors"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// An EventSent says what an event has led to.
type EventSent struct {
	app.EventSent
	Started []string `json:"started"` // runs that triggers start
}

// SendEvent gives an event to the runs that wait for it, as [app.Process.SendEvent] does, and fires the triggers of the
// store that wait for it. An event for one run fires none.
func SendEvent(ctx context.Context, p *app.Process, req app.EventRequest, resume app.ContinueFunc) (EventSent, error) {
	sent, err := p.SendEvent(ctx, req, resume)
	all := EventSent{EventSent: sent, Started: []string{}}
	if sent.Data == nil || req.Run != "" {
		return all, err
	}
	st, failed := p.Runs.OpenStore()
	if failed != nil || runs.TriggersOf(st) == nil {
		return all, errors.Join(err, failed)
	}
	set, failed := Open(p)
	if failed == nil {
		var started []string
		started, failed = set.FireEvent(ctx, sent.Name, sent.Key, sent.Data)
		all.Started = append(all.Started, started...)
	}
	return all, errors.Join(err, failed)
}
