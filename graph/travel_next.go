package graph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/graph/internal/wire"
)

// EditNext is Edit with a choice of the nodes of the root that run next, instead of
// those that would have run: End alone means that none does. Arrivals at joins are
// dropped, and so are child graphs that have not ended. A run that has ended has no
// next node: fork the thread at a point before the end, and edit the copy.
//
// A node that the graph does not have is refused before anything is written.
func (r *Runner) EditNext(ctx context.Context, thread string, next []string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *replay) (Record, error) {
		if len(next) == 0 {
			return Record{}, errors.New("name at least one node to run next, or only End to run none")
		}
		if s.run.status.Final() {
			return Record{}, fmt.Errorf("run %s is over (%s): fork the thread at an earlier record and edit the copy", s.run.id, s.run.status)
		}
		fr, err := r.Graph.newFrontier(next)
		if err != nil {
			return Record{}, err
		}
		return r.newEditRecord(s, set, fr)
	})
}

// newFrontier returns the frontier of the given nodes.
func (g *Graph) newFrontier(next []string) (*frontier, error) {
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
	sortTasks(fr)
	return fr, nil
}

// putNext appends the last part of the data of an edit that chooses what runs next.
func putNext(data []byte, g *Graph, fr *frontier) ([]byte, error) {
	h, d, err := putFrontier(nil, nil, g, fr)
	return wire.PutString(wire.PutString(data, h), d), err
}

// applyNextNodes reads what putNext wrote: the nodes that were to run do not count as visited.
func (s *replay) applyNextNodes(d *wire.Reader) error {
	f := s.ensureFrame("")
	h, own := &wire.Reader{Rest: d.Bytes()}, &wire.Reader{Rest: d.Bytes()}
	for i, t := range f.tasks {
		if i == 0 || f.tasks[i-1].node != t.node {
			setEntry(&f.visits, t.node, max(f.visits[t.node]-1, 0))
		}
	}
	f.tasks, f.arrived = readFrontier(h, own)
	f.countVisits()
	f.halted, f.value, f.above = false, nil, false
	s.frames = map[string]*rawFrame{"": f}
	return firstError(h.Err, own.Err)
}
