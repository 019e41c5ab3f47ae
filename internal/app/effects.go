package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Calls are the model calls of a run whose replies its journal holds.
type Calls struct {
	Count  int
	Usage  llm.Usage
	Models []ModelCalls // in the order of their first call
	Flaws  []string     // what keeps replies from being full answers, with their nodes
	// Useless is set if one of the replies has no text at all.
	Useless bool
	ids     []string // of the replies, those of earlier turns included, where the model gave one
}

// Calls reads the model calls that a run has recorded, those of earlier drives
// included.
func (p *Process) Calls(ctx context.Context, id string) (Calls, error) {
	st, found, err := p.locate(ctx, id)
	if err != nil {
		return Calls{}, err
	}
	return st.calls(ctx, found)
}

// calls adds up the replies of a run. A step that runs again from its top after an
// edit, or in a fork, asks its models again: the ids of its replies do not count.
func (j *journals) calls(ctx context.Context, at spot) (Calls, error) {
	id := at.thread
	heads, origin, err := j.replies(ctx, graph.Point{Thread: id})
	if err != nil {
		return Calls{}, err
	}
	var c Calls
	for seen := map[string]bool{id: true}; origin.Thread != "" && !seen[origin.Thread]; {
		seen[origin.Thread] = true
		older, next, err := j.replies(ctx, origin)
		if err != nil {
			return c, err
		}
		if err := j.each(ctx, origin.Thread, older, func(r flow.Reply, _ int64, at replyAt) { c.keep(r, at.kept) }); err != nil {
			return c, err
		}
		origin = next
	}
	err = j.each(ctx, id, heads, func(r flow.Reply, seq int64, of replyAt) {
		if at.holds(seq) {
			c.add(r)
			c.judge(r, of.node)
		}
		c.keep(r, of.kept)
	})
	return c, err
}

// judge notes what keeps a reply from being a full answer.
func (c *Calls) judge(r flow.Reply, node string) {
	if r.Flaw != "" {
		c.Flaws = append(c.Flaws, fmt.Sprintf("%s: the reply of %s %s", node, cmp.Or(r.Model, "the model"), r.Flaw))
		c.Useless = c.Useless || r.Useless
	}
}

// keep notes the id of a reply that will not be asked for again.
func (c *Calls) keep(r flow.Reply, kept bool) {
	if kept && r.ID != "" {
		c.ids = append(c.ids, r.ID)
	}
}

// replyAt is what is known of a reply from where it was recorded.
type replyAt struct {
	kept bool   // it will not be asked for again
	node string // that asked, with the nodes above it
}

// nodeOf is the public path of the node whose effect a record is.
func nodeOf(e graph.Entry) string {
	task, _, _ := strings.Cut(e.ID, "\x00")
	return public(e.Path + task)
}

// replies are the records of a run that are replies of models, and whether each
// counts for what is done up to a point; and what the run was forked from.
func (j *journals) replies(ctx context.Context, upTo graph.Point) (kept map[int64]replyAt, origin graph.Point, err error) {
	kept = map[int64]replyAt{}
	redo := upTo.Seq > 0 // replies of the step under way are asked for again
	done := map[string]bool{}
	for e, err := range graph.History(ctx, j, upTo.Thread) {
		if err != nil {
			return nil, origin, err
		}
		origin = e.From
		switch {
		case upTo.Seq > 0 && e.Seq > upTo.Seq:
		case e.Kind == graph.KindStart: // what earlier turns were told is not asked for again
			redo = false
		case e.Kind == graph.KindEdit:
			redo = true
			clear(done)
		case e.Kind == graph.KindStep && !strings.Contains(e.Path, "#"): // a team begins anew with its node
			done[e.Path] = true
		case e.Kind == graph.KindEffect && flow.IsReply(e.ID):
			kept[e.Seq] = replyAt{!redo || inside(e.Path, done), nodeOf(e)}
		}
	}
	return kept, origin, nil
}

// inside tells whether a frame, or one around it, is among some: then one of its
// steps ended later.
func inside(path string, frames map[string]bool) bool {
	for {
		if frames[path] || path == "" {
			return frames[path]
		}
		path = path[:max(0, strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1)]
	}
}

// each reads some records of a run as replies, oldest first.
func (j *journals) each(ctx context.Context, id string, kept map[int64]replyAt, use func(r flow.Reply, seq int64, at replyAt)) error {
	if len(kept) == 0 {
		return nil
	}
	for r, err := range graph.Records(ctx, j, id, graph.Range{}) {
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
