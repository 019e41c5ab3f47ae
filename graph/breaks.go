package graph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/graph/internal/wire"
)

// Break is a place where a run stops because a node or the caller asks for it: see
// Node.BreakBefore, Node.BreakAfter and Input.Break. The run is Paused. Resuming it
// continues past this stop once: in a loop the next visit stops again.
type Break struct {
	Node  string `json:"node"` // the path: the nodes above it, each followed by '/', then its name
	After bool   `json:"after,omitempty"`
}

// breakpoints is what a drive knows of the places where runs stop.
type breakpoints struct {
	set    map[Break]bool // for this drive, in addition to those of nodes
	passed map[string]int // by frame: the step before which it has stopped already
	mu     sync.Mutex     // guards the fields below
	at     []brokenStep   // where this drive has stopped
}

// breakHere reports whether a frame must stop before its next step, and remembers the
// place.
func (x *drive) breakHere(f *frame) bool {
	f.breaks, f.broke = f.broke, nil
	if step, passed := x.stops.passed[f.path]; !passed || step != f.step {
		for _, name := range f.next.nodeNames(f.g) {
			if f.g.nodes[f.g.byName[name]].BreakBefore || x.stops.set[Break{Node: stripTaskIndexes(f.public + name)}] {
				f.breaks = append(f.breaks, Break{Node: f.public + name})
			}
		}
	}
	if f.breaks == nil {
		return false
	}
	x.stops.mu.Lock()
	defer x.stops.mu.Unlock()
	x.stops.at = append(x.stops.at, brokenStep{f.path, f.step})
	return true
}

// stripTaskIndexes returns the path of a node without the indexes of tasks of a Send.
func stripTaskIndexes(path string) string {
	for {
		before, rest, ok := strings.Cut(path, "[")
		if !ok {
			return path
		}
		_, after, _ := strings.Cut(rest, "]")
		path = before + after
	}
}

// breakAt sets the breaks of one drive. It refuses unknown nodes.
func (x *drive) breakAt(breaks []Break) error {
	for _, b := range breaks {
		b.Node = stripTaskIndexes(b.Node)
		if !x.r.Graph.hasNode(b.Node) {
			return fmt.Errorf("graph %s: a break names node %q, which it does not have", x.r.Graph.def.Name, b.Node)
		}
		setEntry(&x.stops.set, b, true)
	}
	return nil
}

// hasNode reports whether there is a node at a path.
func (g *Graph) hasNode(path string) bool {
	name, rest, below := strings.Cut(path, "/")
	i, ok := g.byName[name]
	if !ok || i == end {
		return false
	}
	n := &g.nodes[i]
	if !below || n.Graph != nil {
		return !below || n.Graph.hasNode(rest)
	}
	_, rest, below = strings.Cut(rest, "/") // after the name of a child, which only the run knows
	for _, sub := range n.Children {
		if !below || sub.Graph.hasNode(rest) {
			return below
		}
	}
	return false
}

// listBrokenSteps lists the steps that the next drive runs without stopping first: those before
// which this drive has stopped, and those that it ran so itself and has not finished.
func (x *drive) listBrokenSteps(f *frame) []brokenStep {
	all := x.stops.at
	under := strconv.Itoa(f.step) + "."
	for path, step := range x.stops.passed {
		same := func(s brokenStep) bool { return s.path == path }
		if live := path == "" && step == f.step || strings.HasPrefix(path, under); live && !slices.ContainsFunc(all, same) {
			all = append(all, brokenStep{path, step})
		}
	}
	slices.SortFunc(all, func(a, b brokenStep) int { return strings.Compare(a.path, b.path) })
	return all
}

// breakAfter remembers which nodes of the step that was just committed ask for a stop.
func (x *drive) breakAfter(f *frame, ts []task) {
	for i := range ts {
		n := ts[i].node()
		if (n.BreakAfter || x.stops.set[Break{stripTaskIndexes(f.public + n.Name), true}]) && (i == 0 || ts[i-1].ref.node != ts[i].ref.node) {
			f.broke = append(f.broke, Break{Node: f.public + n.Name, After: true})
		}
	}
}

// brokenStep is the step before which a frame has stopped. The drive that resumes the
// run does not stop there again.
type brokenStep struct {
	path string
	step int
}

func putBroken(b []byte, steps []brokenStep) []byte {
	b = wire.PutInt(b, len(steps))
	for _, s := range steps {
		b = wire.PutInt(wire.PutString(b, s.path), s.step)
	}
	return b
}

// brokenSteps lists what readBroken has read.
func brokenSteps(m map[string]int) (steps []brokenStep) {
	for _, path := range sortedKeys(m) {
		steps = append(steps, brokenStep{path, m[path]})
	}
	return steps
}

func readBroken(r *wire.Reader) map[string]int {
	n := r.Count()
	if n == 0 {
		return nil
	}
	steps := make(map[string]int, n)
	for range n {
		path := r.Text()
		steps[path] = r.Int()
	}
	return steps
}
