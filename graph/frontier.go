package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"raddle.dev/graph/internal/namelist"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
)

// A taskRef is one task that is to run: a node, its place among the tasks of a Send (0
// for others), its overlay, and the failures that led to it.
type taskRef struct {
	node   int
	index  int
	over   []Write
	cause  string // the first of causes, with where it was
	causes []record.Failure
}

// A frontier is all that a run will do next. It is plain data: tasks to run are kept
// nowhere else.
type frontier struct {
	tasks   []taskRef
	arrived []joinRef // sources that reached a join that has not fired, in order of arrival
}

// sortTasks is the first half of the engine's pure core: it puts the tasks of a
// frontier into the order in which their writes are folded, which is the
// declaration of their nodes, then their index.
func sortTasks(fr *frontier) {
	before := func(a, b taskRef) int {
		if a.node != b.node {
			return a.node - b.node
		}
		return a.index - b.index
	}
	if !slices.IsSortedFunc(fr.tasks, before) {
		slices.SortStableFunc(fr.tasks, before)
	}
}

// router computes the frontier after a step.
type router struct {
	g    *Graph
	st   State // the state after the step
	next frontier
	seen map[int]int // with many tasks: the place, in next, of a node's own task; otherwise a scan is faster
	sent int
	*arrivals
}

// arrivals counts the sources that have reached joins. Its memory is reused from step
// to step of a frame.
type arrivals struct {
	list  []joinRef // for the next frontier
	bits  []uint64  // sources that are in it; nil: not made for this step
	have  []int     // sources in it, by join
	ready []int     // joins that all sources have reached
}

// manyTasks is the number of tasks from which a map finds duplicates faster than a
// scan.
const manyTasks = 16

// routeTasks is the last part of the pure core: where each task of the frontier leads. A
// target of edges and Goto runs once per node; Sends are never merged. On an error, by
// is the task whose routing failed. The memory of into and a is reused.
func routeTasks(g *Graph, st State, fr *frontier, ts []task, into []taskRef, a *arrivals) (_ frontier, by int, err error) {
	r := router{g: g, st: st, next: frontier{tasks: into[:0]}, arrivals: a}
	a.startStep(g, fr.arrived)
	for i := range fr.tasks {
		if err := r.routeTask(&g.nodes[fr.tasks[i].node], &ts[i]); err != nil {
			return frontier{}, i, err
		}
	}
	r.fireJoins()
	r.next.arrived = a.list
	sortTasks(&r.next)
	return r.next, 0, nil
}

// addTask makes a node run once after the step.
func (r *router) addTask(node int) {
	if node != end {
		r.ensureTask(node)
	}
}

// ensureTask returns the task that a node has without a Send.
func (r *router) ensureTask(node int) *taskRef {
	at := r.findTask(node)
	if at < 0 {
		at = len(r.next.tasks)
		if r.seen != nil {
			r.seen[node] = at
		}
		r.next.tasks = append(r.next.tasks, taskRef{node: node})
	}
	return &r.next.tasks[at]
}

// addHandler makes the node run that handles the failure of a task. What a Send started has a handler of its own, which
// sees what that task saw; the failures of other tasks with the same handler are handled together.
func (r *router) addHandler(t *task) {
	node := r.g.byName[t.node().OnError]
	if node == end {
		return
	}
	if t.ref.index == 0 {
		handler := r.ensureTask(node)
		handler.cause = cmp.Or(handler.cause, t.up.failed.text)
		handler.causes = append(handler.causes, t.describeFailure())
		return
	}
	r.sent++
	r.next.tasks = append(r.next.tasks, taskRef{
		node:   node,
		index:  r.sent,
		over:   t.ref.over,
		cause:  t.up.failed.text,
		causes: []record.Failure{t.describeFailure()},
	})
}

// findTask returns the place of the task that a node has without a Send, or -1.
func (r *router) findTask(node int) int {
	own := func(t taskRef) bool { return t.node == node && t.index == 0 }
	if len(r.next.tasks) <= manyTasks {
		return slices.IndexFunc(r.next.tasks, own)
	}
	if r.seen == nil {
		r.seen = make(map[int]int, len(r.next.tasks))
		for i := range r.next.tasks {
			if t := &r.next.tasks[i]; t.index == 0 {
				r.seen[t.node] = i
			}
		}
	}
	if at, ok := r.seen[node]; ok {
		return at
	}
	return -1
}

func (r *router) routeTask(n *compiledNode, t *task) error {
	u := &t.up
	if u.failed != nil {
		r.addHandler(t)
		return nil
	}
	for _, s := range u.Send {
		to, ok := n.resolveTarget(r.g, s.To)
		if !ok || to == end {
			return n.newRouteError(r.g, "send", s.To)
		}
		r.sent++
		r.next.tasks = append(r.next.tasks, taskRef{node: to, index: r.sent, over: s.Overlay})
	}
	if u.Goto != nil {
		for _, name := range u.Goto {
			to, ok := n.resolveTarget(r.g, name)
			if !ok {
				return n.newRouteError(r.g, "goto", name)
			}
			r.addTask(to)
		}
		return nil
	}
	if u.Send == nil && u.Halt == nil && n.edgeCount() == 0 && !n.canEndPath() {
		return &RouteError{Node: n.Name, Target: "", By: "goto", Allowed: n.allowedTargets(r.g)}
	}
	for _, to := range n.to {
		r.addTask(to)
	}
	for i := range n.picks {
		if u.Halt != nil {
			break // routes of a node that ends the run are not evaluated
		}
		if err := r.followBranch(n, &n.picks[i]); err != nil {
			return err
		}
	}
	for _, j := range n.joins {
		r.markArrival(r.g, j)
	}
	return nil
}

// edgeCount counts the connections from the node that it does not name itself.
func (n *compiledNode) edgeCount() int { return len(n.to) + len(n.picks) + len(n.joins) }

func (n *compiledNode) newRouteError(g *Graph, by, target string) error {
	return &RouteError{Node: n.Name, Target: target, By: by, Allowed: n.allowedTargets(g)}
}

func (r *router) followBranch(n *compiledNode, p *pick) error {
	labels, err := evaluateBranch(n, p, r.st)
	if err != nil {
		return err
	}
	for _, l := range labels {
		to, ok := p.cases[l]
		if !ok && l == "" {
			continue
		}
		if !ok {
			return &RouteError{Node: n.Name, Target: l, By: "branch", Allowed: slices.Sorted(maps.Keys(p.cases))}
		}
		r.addTask(to)
	}
	return nil
}

// evaluateBranch calls a branch function; a panic in it becomes an error of its node.
func evaluateBranch(n *compiledNode, p *pick, st State) (labels []string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panics.NewError("the branch function of node "+n.Name, v)
		}
	}()
	if labels, err = p.choose(st); err != nil {
		err = fmt.Errorf("branch: %w", err)
	}
	return labels, err
}

// startStep restores the arrivals of the steps before.
func (a *arrivals) startStep(g *Graph, before []joinRef) {
	a.list, a.bits, a.ready = a.list[:0], a.bits[:0], a.ready[:0]
	for _, j := range before {
		a.markArrival(g, j)
	}
}

// markArrival marks one source of a join.
func (a *arrivals) markArrival(g *Graph, j joinRef) {
	if len(a.bits) == 0 {
		a.bits = zeroedSlice(a.bits, (g.sources+63)/64)
		a.have = zeroedSlice(a.have, len(g.joins))
	}
	join := &g.joins[j.join]
	at := join.bit + j.src
	word, bit := &a.bits[at/64], uint64(1)<<(at%64)
	if *word&bit != 0 {
		return
	}
	*word |= bit
	a.list = append(a.list, j)
	if a.have[j.join]++; a.have[j.join] == len(join.from) {
		a.ready = append(a.ready, j.join)
	}
}

// zeroedSlice returns n zeros, in the memory of s if it is large enough.
func zeroedSlice[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// fireJoins runs the joins whose sources have all arrived, and resets them. It comes after
// the whole step: a source that was done before and is done again in the step that
// completes the join counts once, wherever it is declared.
func (r *router) fireJoins() {
	if len(r.ready) == 0 {
		return
	}
	for _, join := range r.ready {
		r.addTask(r.g.joins[join].to)
		r.have[join] = 0
	}
	r.list = slices.DeleteFunc(r.list, func(j joinRef) bool { return r.have[j.join] == 0 })
}

// newStuckError returns the error for an empty frontier of a run that is not done.
func (fr *frontier) newStuckError(g *Graph) error {
	if len(fr.arrived) == 0 {
		return &StuckError{Graph: g.def.Name}
	}
	first := fr.arrived[0].join
	e := &StuckError{Graph: g.def.Name, Target: g.nameOf(g.joins[first].to)}
	for i, name := range g.joins[first].from {
		if slices.Contains(fr.arrived, joinRef{first, i}) {
			e.Have = append(e.Have, name)
		} else {
			e.Miss = append(e.Miss, name)
		}
	}
	return e
}

// nodeNames lists the nodes of the tasks, each once, in task order.
func (fr *frontier) nodeNames(g *Graph) []string {
	return listNodes(new(namelist.Lists), g, fr)
}

// listNodes lists the nodes of the tasks, each once, in task order.
func listNodes(l *namelist.Lists, g *Graph, fr *frontier) []string {
	for i := range fr.tasks {
		if i == 0 || fr.tasks[i].node != fr.tasks[i-1].node {
			l.AddNew(g.nodes[fr.tasks[i].node].Name)
		}
	}
	return l.End()
}

// setFrontier sets what runs next, with the overlays of its tasks. Tasks are appended to those of b.
func setFrontier(b *record.Parts, g *Graph, fr *frontier) error {
	b.Tasks = slices.Grow(b.Tasks, len(fr.tasks))
	for i := range fr.tasks {
		t := &fr.tasks[i]
		over, err := encodeWrites(t.over)
		if err != nil {
			return err
		}
		b.Tasks = append(b.Tasks, record.Task{Node: g.nodes[t.node].Name, Index: t.index, Cause: t.cause, Over: over})
	}
	for _, a := range fr.arrived {
		b.Arrived = append(b.Arrived, record.Arrival{Join: g.joins[a.join].id, Source: g.joins[a.join].from[a.src]})
	}
	return nil
}
