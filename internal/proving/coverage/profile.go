package coverage

import (
	"slices"
	"strings"
	"sync"

	"raddle.dev/graph"
)

// Topics are the events that a [Run] needs.
const Topics = graph.TopicStep | graph.TopicTask

// A Profile gathers what runs of one agent have reached. It is safe for concurrent use.
type Profile struct {
	name  string
	plan  *plan
	mu    sync.Mutex
	taken counts
	runs  int
}

// New returns an empty profile of an agent with this structure.
func New(s graph.Structure) *Profile {
	return &Profile{name: s.Name, plan: newPlan(&s), taken: newCounts()}
}

// StartRun returns what gathers the events of one run.
func (p *Profile) StartRun() *Run {
	return &Run{profile: p, taken: newCounts(), items: map[string]map[string]bool{}, answers: map[string]string{}}
}

// A Run gathers what one run has reached. It is not safe for concurrent use.
type Run struct {
	profile *Profile
	taken   counts
	items   map[string]map[string]bool // tasks of the branches of a map that runs, by the path of its frame
	answers map[string]string          // answers to questions, by node
}

// counts are visits of nodes, moves along edges, and the repetitions of loops and maps.
type counts struct {
	nodes   map[string]int // by name
	edges   map[edgeKey]int
	repeats map[string]*Repeats // by the name of a map or a loop
}

// Repeats says how often loops or maps were repeated in a run: never, once, or more often.
type Repeats struct {
	Zero bool `json:"zero"`
	One  bool `json:"one"`
	Many bool `json:"many"`
}

func (r *Repeats) add(n int) {
	switch n {
	case 0:
		r.Zero = true
	case 1:
		r.One = true
	default:
		r.Many = true
	}
}

func newCounts() counts {
	return counts{nodes: map[string]int{}, edges: map[edgeKey]int{}, repeats: map[string]*Repeats{}}
}

// addRepeats records that the loop or map of a key was repeated n times.
func (c *counts) addRepeats(key string, n int) {
	if c.repeats[key] == nil {
		c.repeats[key] = &Repeats{}
	}
	c.repeats[key].add(n)
}

// AddAnswer adds the answer to a question of the run, before the events that follow from it: it decides which of
// several routes between the same two nodes was taken.
func (r *Run) AddAnswer(q graph.Question, value any) {
	if text, ok := value.(string); ok {
		node, _, _ := strings.Cut(q.ID, "#")
		r.answers[node] = text
	}
}

// AddEvent adds an event of the run. The events of several drives of a run may follow each other.
func (r *Run) AddEvent(ev graph.Event) {
	plan := r.profile.plan
	in := ""
	if ev.Path != "" {
		if in = plan.findMap(ev.Path); in == "" {
			return // of another agent, or of the loop of a model
		}
	}
	switch body := ev.Body.(type) {
	case graph.TaskStarted:
		r.addTask(ev, in)
	case graph.TaskDone:
		if n := plan.nodes[ev.Node]; n != nil && n.branch != "" && !body.Waiting {
			frame := ev.Path + ev.Node + "/"
			r.taken.addRepeats(ev.Node, len(r.items[frame]))
			delete(r.items, frame)
		}
	case graph.StepCommitted:
		for _, m := range body.Moves {
			for _, to := range m.To {
				r.addMove(m.From, to)
			}
		}
	}
}

// addTask records that a node has started, in a frame of the branches of a map or, if in is "", outside of maps.
func (r *Run) addTask(ev graph.Event, in string) {
	plan := r.profile.plan
	if plan.nodes[ev.Node] == nil {
		return
	}
	r.taken.nodes[ev.Node]++
	if in == "" {
		return
	}
	if r.items[ev.Path] == nil {
		r.items[ev.Path] = map[string]bool{}
	}
	r.items[ev.Path][ev.Task] = true
	r.taken.edges[edgeKey{in, ev.Node, plan.nodes[in].branchLabel}]++
}

// addMove records that a node led to another one. Without an answer, nothing says which of several edges between the
// two was followed: all count.
func (r *Run) addMove(from, to string) {
	n := r.profile.plan.nodes[from]
	if n == nil || len(n.labels[to]) == 0 {
		return
	}
	labels := n.labels[to]
	if answer, asked := r.answers[from]; asked {
		label := labels[len(labels)-1]
		if slices.Contains(labels, answer) {
			label = answer
		}
		labels = []string{label}
	}
	for _, label := range labels {
		r.taken.edges[edgeKey{from, to, label}]++
	}
}

// End adds what the run has reached to its profile.
func (r *Run) End() {
	for key, loop := range r.profile.plan.loops {
		if r.taken.nodes[loop.from] > 0 {
			n := 0
			for edge, taken := range r.taken.edges {
				if edge.from == loop.from && edge.to == loop.to {
					n += taken
				}
			}
			r.taken.addRepeats(key, n)
		}
	}
	p := r.profile
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
	for place, n := range r.taken.nodes {
		p.taken.nodes[place] += n
	}
	for edge, n := range r.taken.edges {
		p.taken.edges[edge] += n
	}
	for key, n := range r.taken.repeats {
		if p.taken.repeats[key] == nil {
			p.taken.repeats[key] = &Repeats{}
		}
		all := p.taken.repeats[key]
		all.Zero = all.Zero || n.Zero
		all.One = all.One || n.One
		all.Many = all.Many || n.Many
	}
}
