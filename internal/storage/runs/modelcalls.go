package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// Calls are the model calls of a run whose replies its journal holds.
type Calls struct {
	Count  int
	Usage  llm.Usage
	Models []ModelCalls // in the order of their first call
	Flaws  []string     // reasons why replies are not full answers, with their nodes
	// Useless is true if one of the replies has no text at all.
	Useless bool
}

// ModelCalls are the calls of one model.
type ModelCalls struct {
	Model string // the provider's name for it; empty if the provider reports none
	Count int
	Usage llm.Usage
}

// addReply adds the call that a reply answers.
func (c *Calls) addReply(r flow.Reply) {
	c.AddCalls(&Calls{Count: 1, Usage: r.Usage, Models: []ModelCalls{{Model: r.Model, Count: 1, Usage: r.Usage}}})
}

// AddCalls adds other calls, without their flaws.
func (c *Calls) AddCalls(o *Calls) {
	c.Count += o.Count
	c.Usage = c.Usage.Add(o.Usage)
	for _, m := range o.Models {
		i := slices.IndexFunc(c.Models, func(mine ModelCalls) bool { return mine.Model == m.Model })
		if i < 0 {
			c.Models = append(c.Models, m)
			continue
		}
		c.Models[i].Count += m.Count
		c.Models[i].Usage = c.Models[i].Usage.Add(m.Usage)
	}
}

// ModelNames returns the models that have answered, in the order of their first reply.
func (c *Calls) ModelNames() []string {
	names := []string{}
	for _, m := range c.Models {
		if m.Model != "" {
			names = append(names, m.Model)
		}
	}
	return names
}

// ReadModelCalls reads the [View.ReadModels] of a run alone.
func (a *Archive) ReadModelCalls(ctx context.Context, id string) (Calls, error) {
	v, err := a.ReadUsage(ctx, id)
	if err != nil {
		return Calls{}, err
	}
	return v.ReadModels(ctx)
}

// addRecorded adds a recorded reply, and why it is not a full answer.
func (c *Calls) addRecorded(r *flow.Reply, e *history.Entry) {
	c.addReply(*r)
	if r.Flaw != "" {
		c.Flaws = append(c.Flaws, fmt.Sprintf("%s: the reply of %s %s", nodeOf(*e), cmp.Or(r.Model, "the model"), r.Flaw))
		c.Useless = c.Useless || r.Useless
	}
}

// nodeOf returns the public path of the node that the effect of a record belongs to.
func nodeOf(e history.Entry) string {
	return publicPath(e.Path + graph.ParseEffectID(e.ID).Task)
}

// ListReplyIDs returns the ids of the replies of models that a thread has recorded up to a record (0: all) and that
// will not be requested again, oldest first. A step that runs again from its start after an edit, or in a fork, calls
// its models again: its replies are not among them.
func (s *Store) ListReplyIDs(ctx context.Context, thread string, upTo int64) (ids []string, err error) {
	var before []string // in the threads that it was forked from
	seen := map[string]bool{}
	for at := (journal.Point{Thread: thread, Seq: upTo}); at.Thread != "" && !seen[at.Thread]; {
		seen[at.Thread] = true
		kept, origin, err := s.listReplyIDs(ctx, at, at.Thread != thread)
		if err != nil {
			return nil, err
		}
		if at.Thread == thread {
			ids = kept
		} else {
			before = append(before, kept...)
		}
		at = origin
	}
	return append(before, ids...), nil
}

// listReplyIDs is ListReplyIDs for the records of one thread up to a point. If redo is true, the replies of the step
// that works there are requested again. It also returns the point that the thread was forked from.
func (s *Store) listReplyIDs(ctx context.Context, upTo journal.Point, redo bool) (ids []string, origin journal.Point, err error) {
	type line struct {
		history.Entry
		reply string
	}
	var lines []line
	for r, err := range journal.Records(ctx, s, upTo.Thread, journal.Range{UpTo: upTo.Seq}) {
		if err != nil {
			return nil, origin, err
		}
		e, err := history.DecodeEntry(r)
		if err != nil {
			return nil, origin, &journal.DamagedError{Thread: upTo.Thread, Seq: r.Seq, Kind: r.Kind, Err: err}
		}
		l := line{Entry: e}
		if e.Kind == journal.KindEffect && flow.IsReply(e.ID) {
			reply, err := flow.ReadReply(r.Data)
			if err != nil {
				return nil, origin, fmt.Errorf("run %s, record %d: %w", upTo.Thread, r.Seq, err)
			}
			l.reply = reply.ID
		}
		if len(lines) == 0 {
			origin = e.From
		}
		lines = append(lines, l)
	}
	done := map[string]bool{}
	for _, e := range slices.Backward(lines) {
		switch {
		case e.Kind == journal.KindStart: // replies of earlier turns are not requested again
			redo = false
		case e.Kind == journal.KindEdit:
			redo = true
			clear(done)
		case e.Kind == journal.KindStep && !strings.Contains(e.Path, "#"): // a team starts again with its node
			done[e.Path] = true
		case e.reply != "" && (!redo || isInsideFrame(e.Path, done)):
			ids = append(ids, e.reply)
		}
	}
	slices.Reverse(ids)
	return ids, origin, nil
}

// isInsideFrame reports whether a frame, or one around it, is in frames: then one of its
// steps ended later.
func isInsideFrame(path string, frames map[string]bool) bool {
	for {
		if frames[path] || path == "" {
			return frames[path]
		}
		path = parentFrame(path)
	}
}
