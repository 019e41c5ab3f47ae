package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow"
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
	ids     []string // ids of the replies, including those of earlier turns, if the model gave one
}

// ModelCalls are the calls of one model.
type ModelCalls struct {
	Model string // the provider's name for it; empty if the provider reports none
	Count int
	Usage llm.Usage
}

// addReply adds the call that a reply answers.
func (c *Calls) addReply(r flow.Reply) {
	c.addCalls(&Calls{Count: 1, Usage: r.Usage, Models: []ModelCalls{{Model: r.Model, Count: 1, Usage: r.Usage}}})
}

// addCalls adds other calls.
func (c *Calls) addCalls(o *Calls) {
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

// ReadModelCalls reads the model calls that a run has recorded, including those of earlier
// drives.
func (a *Archive) ReadModelCalls(ctx context.Context, id string) (Calls, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return Calls{}, err
	}
	return st.sumModelCalls(ctx, found)
}

// sumModelCalls adds up the replies of a run. A step that runs again from its start after an
// edit, or in a fork, calls its models again: it does not count the ids of its replies.
func (s *Store) sumModelCalls(ctx context.Context, at runRef) (Calls, error) {
	id := at.thread
	heads, origin, err := s.listReplies(ctx, journal.Point{Thread: id})
	if err != nil {
		return Calls{}, err
	}
	var c Calls
	for seen := map[string]bool{id: true}; origin.Thread != "" && !seen[origin.Thread]; {
		seen[origin.Thread] = true
		older, next, err := s.listReplies(ctx, origin)
		if err != nil {
			return c, err
		}
		if err := s.readReplies(ctx, origin.Thread, older, func(r flow.Reply, _ int64, at replyPosition) { c.recordReplyID(r, at.kept) }); err != nil {
			return c, err
		}
		origin = next
	}
	err = s.readReplies(ctx, id, heads, func(r flow.Reply, seq int64, of replyPosition) {
		if at.containsRecord(seq) {
			c.addReply(r)
			c.recordFlaw(r, of.node)
		}
		c.recordReplyID(r, of.kept)
	})
	return c, err
}

// recordFlaw records why a reply is not a full answer.
func (c *Calls) recordFlaw(r flow.Reply, node string) {
	if r.Flaw != "" {
		c.Flaws = append(c.Flaws, fmt.Sprintf("%s: the reply of %s %s", node, cmp.Or(r.Model, "the model"), r.Flaw))
		c.Useless = c.Useless || r.Useless
	}
}

// recordReplyID records the id of a reply that will not be requested again.
func (c *Calls) recordReplyID(r flow.Reply, kept bool) {
	if kept && r.ID != "" {
		c.ids = append(c.ids, r.ID)
	}
}

// A replyPosition is a reply and the place where it was recorded.
type replyPosition struct {
	kept bool   // it will not be requested again
	node string // the node that called the model, with the nodes above it
}

// nodeOf returns the public path of the node that the effect of a record belongs to.
func nodeOf(e history.Entry) string {
	return publicPath(e.Path + taskOf(e))
}

// listReplies returns the records of a run that are replies of models, with whether each counts for
// the work up to a point. It also returns the run that this one was forked from.
func (s *Store) listReplies(ctx context.Context, upTo journal.Point) (kept map[int64]replyPosition, origin journal.Point, err error) {
	kept = map[int64]replyPosition{}
	redo := upTo.Seq > 0 // replies of the current step are requested again
	done := map[string]bool{}
	for e, err := range history.Entries(ctx, s, upTo.Thread) {
		if err != nil {
			return nil, origin, err
		}
		origin = e.From
		switch {
		case upTo.Seq > 0 && e.Seq > upTo.Seq:
		case e.Kind == journal.KindStart: // replies of earlier turns are not requested again
			redo = false
		case e.Kind == journal.KindEdit:
			redo = true
			clear(done)
		case e.Kind == journal.KindStep && !strings.Contains(e.Path, "#"): // a team starts again with its node
			done[e.Path] = true
		case e.Kind == journal.KindEffect && flow.IsReply(e.ID):
			kept[e.Seq] = replyPosition{!redo || isInsideFrame(e.Path, done), nodeOf(e)}
		}
	}
	return kept, origin, nil
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

// readReplies calls a function with some records of a run as replies, oldest first.
func (s *Store) readReplies(ctx context.Context, id string, kept map[int64]replyPosition, use func(r flow.Reply, seq int64, at replyPosition)) error {
	if len(kept) == 0 {
		return nil
	}
	for r, err := range journal.Records(ctx, s, id, journal.Range{}) {
		if err != nil {
			return err
		}
		at, reply := kept[r.Seq]
		if !reply {
			continue
		}
		parsed, err := flow.ReadReply(r.Data)
		if err != nil {
			return fmt.Errorf("run %s, record %d: %w", id, r.Seq, err)
		}
		use(parsed, r.Seq, at)
	}
	return nil
}
