package agui

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/runs"
)

// storedValues returns the state of a run as one JSON object.
func storedValues(d *runs.Detail) json.RawMessage {
	b := json.RawMessage(flow.StoredJSON(d.Snapshot.Values))
	if !json.Valid(b) {
		return nil
	}
	return b
}

// errFound ends the search for a record.
var errFound = errors.New("found")

// readContent returns what a record of the run says.
func (r *replay) readContent(ctx context.Context, record string) (c history.Content, err error) {
	seq, err := strconv.ParseInt(record, 10, 64)
	if err != nil {
		return c, err
	}
	err = r.service.Process().Runs.ExportRecords(ctx, r.t.run, func(e history.Entry, rec journal.Record) error {
		if e.Seq != seq {
			return nil
		}
		if c, err = history.DecodeContent(rec); err != nil {
			return err
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return c, err
}
