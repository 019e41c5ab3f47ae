package updates

import (
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph"
)

// A Tracker keeps what a run has said, and says what each of its events adds. The events may come from a drive, from a
// journal, or from both in the order of a subscription; the end of a reply must come once. The zero value is ready to
// use. It is not safe for concurrent use.
type Tracker struct {
	Replies

	calls     callList
	steps     []*Step
	names     map[string]bool // of the nodes that run
	questions map[string]*Question
}

// HandleEvent takes an event, and returns what it adds, in order. It may be nothing.
func (t *Tracker) HandleEvent(ev graph.Event) []RunUpdate {
	if t.questions == nil {
		t.questions = map[string]*Question{}
		t.names = map[string]bool{}
	}
	list := t.calls.handleEvent(ev, t.Replies.HandleEvent(ev))
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		list = append(list, StateChanged{Start: true})
	case graph.TaskStarted:
		list = append(list, t.startStep(ev)...)
	case graph.TaskDone:
		list = append(list, t.endSteps(func(s *Step) bool { return s.Path == ev.Path && s.Node == ev.Node })...)
	case graph.StepCommitted:
		list = append(list, t.endSteps(func(s *Step) bool {
			return s.Path == ev.Path && slices.Contains(b.Nodes, s.Node) || isBelow(s.Path, ev.Path, b.Nodes)
		})...)
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

// Steps returns the nodes that run.
func (t *Tracker) Steps() []*Step { return slices.Clone(t.steps) }

// EndSteps ends all nodes that run.
func (t *Tracker) EndSteps() []RunUpdate { return t.endSteps(func(*Step) bool { return true }) }

// startStep takes the start of a node.
func (t *Tracker) startStep(ev graph.Event) []RunUpdate {
	if ev.Task != "" && slices.ContainsFunc(t.steps, func(s *Step) bool { return s.Path == ev.Path && s.task == ev.Task }) {
		return nil // it runs again, after an answer
	}
	base := ev.Path + ev.Node
	name := base
	for n := 2; t.names[name]; n++ {
		name = base + "#" + strconv.Itoa(n)
	}
	s := &Step{Name: name, Path: ev.Path, Node: ev.Node, task: ev.Task}
	t.steps = append(t.steps, s)
	t.names[name] = true
	return []RunUpdate{StepStarted{s}}
}

// endSteps ends nodes that run.
func (t *Tracker) endSteps(ends func(*Step) bool) (list []RunUpdate) {
	t.steps = slices.DeleteFunc(t.steps, func(s *Step) bool {
		if !ends(s) {
			return false
		}
		delete(t.names, s.Name)
		list = append(list, StepEnded{s})
		return true
	})
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
