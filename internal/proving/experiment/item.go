package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/storage/runs"
)

// MakeItem makes an item of a run that has happened: what it was given, or, of RUN@RECORD, the point from which a copy is
// to continue. What the run has made of it is in its metadata. The item has no secrets; notes say what is missing in it
// because of that. learn is that of [app.Process.NewLearner].
func MakeItem(ctx context.Context, p *app.Process, point string, learn func(*runs.Record)) (item *dataset.Item, notes []string, err error) {
	id, at, err := runs.SplitPoint(point)
	if err != nil {
		return nil, nil, err
	}
	d, err := p.Runs.ReadRunDetail(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if d.Record == nil {
		return nil, nil, failure.NewStale("choose a run of an agent", "run %s was started by a program, and its journal does not say what it was given", d.Run)
	}
	learn(d.Record)
	item = &dataset.Item{
		ID:       d.Run,
		Prompt:   d.Record.Prompt,
		Metadata: &jsonvalue.Object{},
	}
	if len(d.Record.Attached) > 0 && at == 0 {
		at = 1 // the start has what is attached
		notes = append(notes, fmt.Sprintf("run %s has attachments: the item is a copy from its start", d.Run))
	}
	if at > 0 {
		item.From = runs.Point{Run: d.Run, At: at}.String()
		if item.ID = item.From; d.Snapshot.Head < at {
			return nil, nil, failure.NewStale("raddle runs show "+d.Run+" lists them", "run %s has no record %d", d.Run, at)
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(d.Record.Variables)) {
			value := d.Record.Variables[name]
			if strings.Contains(value, redact.Mask) {
				notes = append(notes, fmt.Sprintf("run %s: the variable %s is a secret and is left out; set it in the environment", d.Run, name))
				continue
			}
			item.Variables = append(item.Variables, strictyaml.Pair{Key: name, Value: value})
		}
	}
	r, err := readResult(ctx, p, d.Run)
	if err != nil {
		return nil, nil, err
	}
	item.Metadata.Set("agent", d.Agent)
	item.Metadata.Set("status", r.Status)
	if r.Status == score.StatusDone && d.Snapshot.Status == graph.Done {
		item.Metadata.Set("output", r.Output)
	} else {
		item.Metadata.Set("error", r.Error)
	}
	return item, notes, nil
}

// AppendItem appends an item to the text of a data set of JSONL, without the secrets that the process knows.
func AppendItem(p *app.Process, text []byte, item *dataset.Item) ([]byte, error) {
	line, err := dataset.AppendLine(nil, item)
	if err != nil {
		return nil, err
	}
	clean := redact.RedactJSON(json.RawMessage(line), p.Tools.SecretSet().Text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	return append(append(text, strings.TrimRight(string(clean), "\n")...), '\n'), nil
}
