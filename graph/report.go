package graph

import "slices"

// deliverStepCommitted delivers the event of a committed step.
func (x *drive) deliverStepCommitted(f *frame, ts []task, was *frontier, dropped []string, seq int64, root bool) {
	now, next := len(was.tasks), len(f.next.tasks)
	l := &nameLists{all: make([]string, 0, now+next+max(now, next)+1)}
	b := StepCommitted{Nodes: l.listNodes(f.g, was), Next: l.listNodes(f.g, &f.next), Dropped: dropped, Halted: f.halted, Seq: seq, State: f.st}
	for _, ws := range f.writes {
		for _, w := range ws {
			l.add(w.key.name)
		}
	}
	b.Keys = l.endList()
	b.Moves = make([]Move, 0, len(b.Nodes))
	for i := range ts {
		if n := ts[i].node(); i == 0 || n != ts[i-1].node() {
			if i > 0 {
				b.Moves[len(b.Moves)-1].To = l.endList()
			}
			b.Moves = append(b.Moves, Move{From: n.Name})
		}
		f.addMoveTargets(l, &ts[i])
	}
	b.Moves[len(b.Moves)-1].To = l.endList()
	e := Event{Path: f.public, Step: f.step, Body: b}
	if root {
		x.out.deliverEvent(e)
	} else {
		x.out.sendEvent(e)
	}
}

// nameLists makes lists of names, each name once, that share an array.
type nameLists struct {
	all  []string
	from int             // where the current list begins
	seen map[string]bool // names in the current list, if it is long
}

func (l *nameLists) add(name string) {
	list := l.all[l.from:]
	switch {
	case len(list) < manyTasks:
		if slices.Contains(list, name) {
			return
		}
	case l.seen == nil:
		l.seen = make(map[string]bool, 2*len(list))
		for _, s := range list {
			l.seen[s] = true
		}
		fallthrough
	default:
		if l.seen[name] {
			return
		}
		l.seen[name] = true
	}
	l.all = append(l.all, name)
}

// endList ends a list and returns it; nil if it is empty.
func (l *nameLists) endList() []string {
	from := l.from
	l.from, l.seen = len(l.all), nil
	if from == l.from {
		return nil
	}
	return l.all[from:l.from:l.from]
}

// listNodes lists the nodes of the tasks, each once, in task order.
func (l *nameLists) listNodes(g *Graph, fr *frontier) []string {
	for i := range fr.tasks {
		if i == 0 || fr.tasks[i].node != fr.tasks[i-1].node {
			l.all = append(l.all, g.nodes[fr.tasks[i].node].Name)
		}
	}
	return l.endList()
}

// addMoveTargets adds where a task led.
func (f *frame) addMoveTargets(l *nameLists, t *task) {
	n, add := t.node(), l.add
	switch {
	case t.up.Halt != nil:
		add(End)
		return
	case t.up.failed != "":
		add(n.OnError)
		return
	}
	for _, s := range t.up.Send {
		to, _ := n.resolveTarget(f.g, s.To)
		add(f.g.nameOf(to))
	}
	if t.up.Goto != nil {
		for _, name := range t.up.Goto {
			to, _ := n.resolveTarget(f.g, name)
			add(f.g.nameOf(to))
		}
		return
	}
	for _, to := range n.to {
		add(f.g.nameOf(to))
	}
	for i := range n.picks {
		labels, err := evaluateBranch(n, &n.picks[i], f.st)
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
}

// keepFailures keeps the failures that ended a path. Only the Result reports them.
func (f *frame) keepFailures(ts []task) {
	for i := range ts {
		t := &ts[i]
		if t.recovered != nil && t.node().OnError == End {
			e, ok := t.recovered.(*NodeError)
			if !ok { // from the journal, as text
				e = t.wrapNodeError(t.recovered).(*NodeError)
			}
			f.failures = append(f.failures, e)
		}
	}
}
