package updates

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
)

// A Tracker keeps what a run has said, and says what each of its events adds. The events may come from a drive, from a
// journal, or from both in the order of a subscription; the end of a reply must come once. The zero value is ready to
// use. It is not safe for concurrent use.
type Tracker struct {
	Calls

	steps     map[string]map[string][]*Step // that run, by their paths and nodes
	tasks     map[string]bool               // of the steps that run, by their paths and ids
	names     map[string]bool               // of the steps that run
	started   int                           // how many steps have started
	questions map[string]*Question
}

// HandleEvent takes an event, and returns what it adds, in order. It may be nothing.
func (t *Tracker) HandleEvent(ev graph.Event) []RunUpdate {
	if t.questions == nil {
		t.questions = map[string]*Question{}
		t.steps = map[string]map[string][]*Step{}
		t.tasks = map[string]bool{}
		t.names = map[string]bool{}
	}
	list := t.Calls.HandleEvent(ev)
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		list = append(list, StateChanged{Start: true})
	case graph.TaskStarted:
		list = append(list, t.startStep(ev)...)
	case graph.TaskDone:
		list = append(list, endSteps(t.takeNodes(ev.Path, ev.Node))...)
	case graph.StepCommitted:
		steps := t.takeNodes(ev.Path, b.Nodes...)
		for path := range t.steps {
			if isBelow(path, ev.Path, b.Nodes) {
				steps = append(steps, t.takePath(path)...)
			}
		}
		list = append(list, endSteps(steps)...)
		if ev.Path == "" {
			list = append(list, StateChanged{})
		}
	case graph.QuestionAsked:
		q := &Question{Question: b.Question, Path: PlainPath(ev.Path), Record: ev.Record}
		t.questions[b.Question.ID] = q
		list = append(list, QuestionAsked{q})
	case graph.QuestionAnswered:
		if q := t.questions[b.ID]; q != nil {
			list = append(list, QuestionAnswered{q})
		}
	}
	return list
}

// FindQuestion returns the question of an id that was asked last, or nil.
func (t *Tracker) FindQuestion(id string) *Question { return t.questions[id] }

// Steps returns the nodes that run, in the order of their starts.
func (t *Tracker) Steps() (list []*Step) {
	for _, nodes := range t.steps {
		for _, steps := range nodes {
			list = append(list, steps...)
		}
	}
	slices.SortFunc(list, compareStarts)
	return list
}

// EndSteps ends all nodes that run.
func (t *Tracker) EndSteps() []RunUpdate {
	var steps []*Step
	for path := range t.steps {
		steps = append(steps, t.takePath(path)...)
	}
	return endSteps(steps)
}

// startStep takes the start of a node.
func (t *Tracker) startStep(ev graph.Event) []RunUpdate {
	s := &Step{Path: ev.Path, Node: ev.Node, task: ev.Task, order: t.started}
	if t.tasks[s.taskKey()] {
		return nil // it runs again, after an answer
	}
	nodes := t.steps[s.Path]
	if nodes == nil {
		nodes = map[string][]*Step{}
		t.steps[s.Path] = nodes
	}
	base := s.Path + s.Node
	s.Name = base
	for n := len(nodes[s.Node]) + 1; t.names[s.Name]; n++ { // the steps of a node end together
		s.Name = base + "#" + strconv.Itoa(max(n, 2))
	}
	nodes[s.Node] = append(nodes[s.Node], s)
	t.names[s.Name] = true
	if s.task != "" {
		t.tasks[s.taskKey()] = true
	}
	t.started++
	return []RunUpdate{StepStarted{s}}
}

// taskKey returns what no other task that runs has.
func (s *Step) taskKey() string { return s.Path + "\x00" + s.task }

// compareStarts puts the step that has started first before the other.
func compareStarts(a, b *Step) int { return a.order - b.order }

// takeNodes removes the steps of nodes of a path.
func (t *Tracker) takeNodes(path string, nodes ...string) (steps []*Step) {
	at := t.steps[path]
	for _, node := range nodes {
		steps = append(steps, at[node]...)
		delete(at, node)
	}
	if len(at) == 0 {
		delete(t.steps, path)
	}
	for _, s := range steps {
		delete(t.names, s.Name)
		delete(t.tasks, s.taskKey())
	}
	return steps
}

// takePath removes the steps of a path.
func (t *Tracker) takePath(path string) []*Step {
	return t.takeNodes(path, slices.Collect(maps.Keys(t.steps[path]))...)
}

// endSteps returns the ends of steps, in the order of their starts.
func endSteps(steps []*Step) (list []RunUpdate) {
	slices.SortFunc(steps, compareStarts)
	for _, s := range steps {
		list = append(list, StepEnded{s})
	}
	return list
}

// isBelow reports whether a path is that of a child graph of one of the nodes of a frame.
func isBelow(path, frame string, nodes []string) bool {
	rest, ok := strings.CutPrefix(path, frame)
	return ok && slices.ContainsFunc(nodes, func(n string) bool {
		more, ok := strings.CutPrefix(rest, n)
		return ok && more != "" && strings.ContainsRune("/[#", rune(more[0]))
	})
}
