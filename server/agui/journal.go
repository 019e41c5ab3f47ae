package agui

import (
	"context"
	"encoding/json"
	"strconv"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
)

// storedValues returns the state of a run as one JSON object.
func storedValues(d *runs.Detail) json.RawMessage {
	b := json.RawMessage(flow.StoredJSON(d.Snapshot.Values))
	if !json.Valid(b) {
		return nil
	}
	return b
}

// readContent returns what a record of the run says.
func (r *replay) readContent(ctx context.Context, record string) (c history.Content, err error) {
	seq, err := strconv.ParseInt(record, 10, 64)
	if err != nil {
		return c, err
	}
	st, at, err := r.service.Process().Runs.LocateRun(ctx, r.t.run)
	if err != nil {
		return c, err
	}
	for rec, err := range journal.Records(ctx, st, at.Thread, journal.Range{After: seq - 1, UpTo: seq}) {
		if err != nil {
			return c, err
		}
		return history.DecodeContent(rec)
	}
	return c, nil
}
