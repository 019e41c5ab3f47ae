package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// EditNext is Edit that also says which nodes of the root run next, in the place of
// those that would have: End alone means that nothing does. What had arrived at
// joins is forgotten, and so are child graphs under way. A run that is over has no
// next node: fork the thread where it had, and edit the copy.
//
// A node that the graph does not have is refused before anything is written.
func (r *Runner) EditNext(ctx context.Context, thread string, next []string, set ...Write) (seq int64, err error) {
	return r.change(ctx, thread, func(s *replay) (Record, error) {
		if len(next) == 0 {
			return Record{}, errors.New("no node is named to run next; End alone means that none does")
		}
		if s.run.status.Final() {
			return Record{}, fmt.Errorf("run %s is over (%s): fork the thread at an earlier record and edit the copy", s.run.id, s.run.status)
		}
		fr, err := r.Graph.choice(next)
		if err != nil {
			return Record{}, err
		}
		return r.edit(s, set, fr)
	})
}

// choice is the frontier of nodes chosen by hand.
func (g *Graph) choice(next []string) (*frontier, error) {
	fr := &frontier{}
	var unknown []string
	seen := map[string]bool{}
	for _, name := range next {
		n, ok := g.byName[name]
		switch {
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%q", name))
		case n != end && !seen[name]:
			fr.tasks = append(fr.tasks, taskRef{node: n})
		}
		seen[name] = true
	}
	if unknown != nil {
		return nil, fmt.Errorf("graph %s has no node %s", g.def.Name, strings.Join(unknown, ", "))
	}
	plan(fr)
	return fr, nil
}

// putNext ends the data of an edit that chooses what runs next.
func putNext(data []byte, g *Graph, fr *frontier) ([]byte, error) {
	h, d, err := putFrontier(nil, nil, g, fr)
	return putString(putString(data, h), d), err
}

// reroute reads it: the nodes that were to run have not been visited after all.
func (s *replay) reroute(d *reader) error {
	f := s.frame("")
	h, own := &reader{b: d.bytes()}, &reader{b: d.bytes()}
	for i, t := range f.tasks {
		if i == 0 || f.tasks[i-1].node != t.node {
			keep(&f.visits, t.node, max(f.visits[t.node]-1, 0))
		}
	}
	f.tasks, f.arrived = readFrontier(h, own)
	f.visit()
	f.halted, f.value, f.above = false, nil, false
	s.frames = map[string]*rawFrame{"": f}
	return firstError(h.err, own.err)
}
