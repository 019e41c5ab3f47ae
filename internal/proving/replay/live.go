package replay

import (
	"cmp"
	"fmt"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// NewLive returns the request for a new run of a replayed one: recorded effects answer until something differs, and
// from there on models, tools and scripts are called. answers are the recorded answers to the questions before that, as
// ID=TEXT.
func (r *Result) NewLive(rec *Recording) (req app.Request, answers []string, err error) {
	if len(rec.segments) != 1 || rec.segments[0].first.Kind != journal.KindStart {
		return req, nil, failure.NewUsage("fork the run instead: raddle runs fork "+rec.Run+"@N", "a turn of a session, a fork and an edited run cannot be continued live")
	}
	if r.Directory == "" {
		return req, nil, failure.NewUsage("name its directory with --agent", "the agent of run %s is not on this machine", r.Run)
	}
	s := rec.segments[0]
	p := &player{base: cmp.Or(r.base, newTrace()), live: true, segment: s, trace: newTrace(), cancel: func() {}}
	req = newRequest(s, r.Directory)
	req.ID = ""
	req.Transient = false
	req.Adjust = p.adjustHost
	if _, _, ok := runs.SessionOf(s.thread); ok {
		req.Session = "temp"
	}
	for _, given := range r.answered {
		if text, ok := given.answer.Value.(string); ok {
			answers = append(answers, fmt.Sprintf("%s=%s", given.question.ID, text))
		}
	}
	return req, answers, nil
}
