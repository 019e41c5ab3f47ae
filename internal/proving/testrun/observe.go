package testrun

import (
	"cmp"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/proving/testcase"
)

// observation collects which nodes ran and which questions were asked, from the events of all drives of a run.
type observation struct {
	names     *naming
	root      int               // the step of the graph itself that works
	groups    []*stepTasks      // in the order in which they began
	kinds     map[string]string // of the nodes that have nodes inside, by the path of their frame
	questions []graph.Question
}

// stepTasks are the tasks of one step of a frame. A step that was not saved before a crash happens again, and counts
// once.
type stepTasks struct {
	root  int // the step of the graph in which it happened
	frame string
	step  int
	tasks []observedTask
	order []string // nodes in the order of tasks, when the step is committed
}

type observedTask struct {
	id, node string
	index    int
}

func newObservation() *observation { return &observation{kinds: map[string]string{}} }

func (o *observation) add(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.TaskStarted:
		if ev.Path == "" {
			o.root = ev.Step
		}
		o.kinds[ev.Path+ev.Node+"/"] = b.Kind
		g := o.findGroup(ev)
		if !slices.ContainsFunc(g.tasks, func(t observedTask) bool { return t.id == ev.Task }) {
			_, index := splitTask(ev.Task)
			g.tasks = append(g.tasks, observedTask{ev.Task, ev.Node, index})
		}
	case graph.StepCommitted:
		o.findGroup(ev).order = b.Nodes
	case graph.QuestionAsked:
		if b.Question.Kind == graph.KindEvent {
			break // no one is asked
		}
		if !slices.ContainsFunc(o.questions, func(q graph.Question) bool { return q.ID == b.Question.ID }) {
			o.questions = append(o.questions, b.Question)
		}
	}
}

func (o *observation) findGroup(ev graph.Event) *stepTasks {
	i := slices.IndexFunc(o.groups, func(g *stepTasks) bool {
		return g.frame == ev.Path && g.step == ev.Step && (ev.Path == "" || g.root == o.root)
	})
	if i >= 0 {
		return o.groups[i]
	}
	g := &stepTasks{root: o.root, frame: ev.Path, step: ev.Step}
	if ev.Path == "" {
		g.root = ev.Step
	}
	o.groups = append(o.groups, g)
	return g
}

// path returns the nodes that ran, in the order of steps and of the file. The nodes inside of a step come after its
// own.
func (o *observation) path() (list []testcase.Event) {
	groups := slices.Clone(o.groups)
	slices.SortStableFunc(groups, func(a, b *stepTasks) int { return cmp.Compare(a.root, b.root) })
	for _, g := range groups {
		slices.SortStableFunc(g.tasks, func(a, b observedTask) int {
			return cmp.Or(cmp.Compare(slices.Index(g.order, a.node), slices.Index(g.order, b.node)), cmp.Compare(a.node, b.node), cmp.Compare(a.index, b.index))
		})
		for _, t := range g.tasks {
			name := o.shorten(g.frame) + t.node
			// others belong to the loop of a model, or to the engine
			if node, _ := o.names.findNode(name); node != nil {
				list = append(list, testcase.Event{Name: name, Full: g.frame + t.node})
			}
		}
	}
	return list
}

// shorten returns the path of a frame without the nodes of maps: their branches are nodes of the same file.
func (o *observation) shorten(frame string) (short string) {
	full := ""
	for part := range strings.SplitAfterSeq(frame, "/") {
		if full += part; part != "" && o.kinds[full] != "map" {
			short += part
		}
	}
	return short
}

// isOfGraph reports whether an event of the path is a node of the graph itself, outside of maps and agents below.
func isOfGraph(e *testcase.Event) bool { return !strings.Contains(e.Full, "/") }
