package graph

// Break is where a run has stopped because a node asks for it: see
// Node.BreakBefore and Node.BreakAfter. The run is Paused; resuming it goes on
// from there, once: in a loop the next visit breaks again.
type Break struct {
	Node  string `json:"node"` // with the nodes above it, each with a '/'
	After bool   `json:"after,omitempty"`
}

// breakHere reports whether a frame must stop before its next step, and keeps
// where.
func (x *drive) breakHere(f *frame) bool {
	hits := f.broke
	f.broke = nil
	if step, passed := x.passed[f.path]; !passed || step != f.step {
		for _, name := range f.next.names(f.g) {
			if f.g.nodes[f.g.byName[name]].BreakBefore {
				hits = append(hits, Break{Node: f.public + name})
			}
		}
	}
	if hits == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.breaks = append(x.breaks, hits...)
	x.broken = append(x.broken, brokenStep{f.path, f.step})
	return true
}

// breakAfter notes which nodes of the step that was just committed ask for a stop.
func (f *frame) breakAfter(ts []task) {
	for i := range ts {
		n := ts[i].node()
		if n.BreakAfter && (i == 0 || ts[i-1].ref.node != ts[i].ref.node) {
			f.broke = append(f.broke, Break{Node: f.public + n.Name, After: true})
		}
	}
}

// brokenStep is the step before which a frame has stopped: the drive that resumes
// the run goes past it.
type brokenStep struct {
	path string
	step int
}

func putBroken(b []byte, steps []brokenStep) []byte {
	b = putInt(b, len(steps))
	for _, s := range steps {
		b = putInt(putString(b, s.path), s.step)
	}
	return b
}

func readBroken(r *reader) map[string]int {
	n := r.count()
	if n == 0 {
		return nil
	}
	steps := make(map[string]int, n)
	for range n {
		path := r.string()
		steps[path] = r.int()
	}
	return steps
}
