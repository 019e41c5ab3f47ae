package graph

import "slices"

// committed delivers what a step did.
func (x *drive) committed(f *frame, ts []task, was *frontier, dropped []string, root bool) {
	b := StepCommitted{Nodes: was.names(f.g), Next: f.next.names(f.g), Dropped: dropped, Halted: f.halted}
	for _, ws := range f.writes {
		for _, w := range ws {
			if !slices.Contains(b.Keys, w.key.name) {
				b.Keys = append(b.Keys, w.key.name)
			}
		}
	}
	for i := range ts {
		b.Moves = f.move(b.Moves, &ts[i])
	}
	e := Event{Path: f.public, Step: f.step, Body: b}
	if root {
		x.out.deliver(e)
	} else {
		x.out.send(e)
	}
}

// move adds where a task led; the tasks of one node share a Move.
func (f *frame) move(moves []Move, t *task) []Move {
	n := t.node()
	if len(moves) == 0 || moves[len(moves)-1].From != n.Name {
		moves = append(moves, Move{From: n.Name})
	}
	m := &moves[len(moves)-1]
	add := func(name string) {
		if !slices.Contains(m.To, name) {
			m.To = append(m.To, name)
		}
	}
	switch {
	case t.up.Halt != nil:
		add(End)
		return moves
	case t.up.failed != "":
		add(n.OnError)
		return moves
	}
	for _, s := range t.up.Send {
		add(f.g.nameOf(n.routes[s.To]))
	}
	if t.up.Goto != nil {
		for _, name := range t.up.Goto {
			add(f.g.nameOf(n.routes[name]))
		}
		return moves
	}
	for _, to := range n.to {
		add(f.g.nameOf(to))
	}
	for i := range n.picks {
		labels, err := choose(n, &n.picks[i], f.st)
		if err != nil {
			continue
		}
		for _, l := range labels {
			if to, ok := n.picks[i].cases[l]; ok {
				add(f.g.nameOf(to))
			}
		}
	}
	for _, j := range n.joins {
		add(f.g.nameOf(f.g.joins[j.join].to))
	}
	return moves
}
