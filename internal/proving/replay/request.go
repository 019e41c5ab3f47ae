package replay

import (
	"context"
	"fmt"
	"os"

	"raddle.dev/internal/base/failure"
)

// Request is what a run asked of a model.
type Request struct {
	Model        string   `json:"model"`
	Instructions string   `json:"instructions,omitempty" doc:"the system prompt"`
	Prompt       string   `json:"prompt" doc:"the message; of a conversation all messages, each after a line with its role"`
	Tools        string   `json:"tools,omitempty" doc:"the tools that the model may call, as JSON"`
	Settings     string   `json:"settings,omitempty" doc:"what else the request sets, as JSON"`
	Notes        []string `json:"notes" nullable:"false" doc:"what is not known as it was then"`
}

// Requests are what a run has asked of models.
type Requests struct {
	thread string // that holds the run
	notes  []string
	failed error // the agent could not be loaded
	was    *execution
}

// PlayRequests finds what a run has asked of models. A journal has the replies of models, and not what was asked:
// PlayRequests executes the run again, once and offline, with the files that its agent had then.
func PlayRequests(ctx context.Context, j Job) (*Requests, error) {
	rec := j.Recording
	if len(rec.segments) == 0 {
		return nil, errEmpty
	}
	if j.Environ == nil {
		j.Environ = os.Environ()
	}
	res := &Result{Notes: []string{}}
	dir, remove, err := rec.restoreFiles(res)
	if err != nil {
		return nil, err
	}
	defer remove()
	r := &Requests{thread: rec.segments[len(rec.segments)-1].thread}
	r.was, r.failed = j.play(ctx, dir, nil)
	r.notes = res.Notes
	return r, nil
}

// Find returns the request whose reply is in a record of the run's own journal.
func (r *Requests) Find(record int64) (*Request, error) {
	if r.failed != nil {
		return nil, failure.NewStale("", "the request of record %d cannot be computed: the agent cannot be loaded with the files that it had then: %v", record, r.failed)
	}
	for _, a := range r.was.player.trace.asks {
		if a.kind == kindModel && a.thread == r.thread && a.record == record {
			return &Request{Model: a.name, Instructions: a.text("instructions"), Prompt: a.text("prompt"), Tools: dropEmpty(a.text("tools")), Settings: dropEmpty(a.text("settings")), Notes: r.notes}, nil
		}
	}
	reason := "no model was asked for it"
	switch p := r.was.player; {
	case p.diff != nil:
		reason = fmt.Sprintf("the files do not repeat the run up to there: %v", p.diff)
	case p.ended != "":
		reason = "the replay has " + p.ended
	}
	return nil, failure.NewStale("", "the request of record %d cannot be computed: %s", record, reason)
}

// dropEmpty returns a JSON text, "" if it is an empty value.
func dropEmpty(text string) string {
	if text == "null" || text == "{}" || text == "[]" {
		return ""
	}
	return text
}
