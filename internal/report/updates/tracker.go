package updates

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// A Tracker keeps what a run has said, and says what each of its events adds. The events may come from a drive, from a journal, or from both in the
// order of a subscription; the end of a reply must come once. The zero value is ready to use. It is not safe for concurrent use.
type Tracker struct {
	// Replaces says that a receiver can take back what it got of a reply: it learns at once that a reply begins again. Otherwise the new text is
	// compared with what the receiver has, and only passed on where it goes on or differs. It must not change after the first event.
	Replaces bool

	replies   map[string]*Reply // that are not complete, by their places
	finished  map[string]int    // numbers of complete replies, by their places
	ended     map[string]int64  // records of the last complete replies, by their places
	drive     int64             // the record of the newest start or resume
	calls     map[string]*Call
	steps     []*Step
	questions map[string]*Question
}

// HandleEvent takes an event, and returns what it adds, in order. It may be nothing.
func (t *Tracker) HandleEvent(ev graph.Event) []Update {
	if t.replies == nil {
		t.replies, t.finished, t.ended = map[string]*Reply{}, map[string]int{}, map[string]int64{}
		t.calls, t.questions = map[string]*Call{}, map[string]*Question{}
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		if ev.Path == "" {
			t.drive = ev.Record
		}
		return []Update{StateChanged{Start: true}}
	case graph.TaskStarted:
		return t.startStep(ev)
	case graph.TaskRetry:
		return t.retryTask(ev)
	case graph.TaskDone:
		return t.endSteps(func(s *Step) bool { return s.Path == ev.Path && s.Node == ev.Node })
	case graph.StepCommitted:
		list := t.endSteps(func(s *Step) bool {
			return s.Path == ev.Path && slices.Contains(b.Nodes, s.Node) || isBelow(s.Path, ev.Path, b.Nodes)
		})
		if ev.Path == "" {
			list = append(list, StateChanged{})
		}
		return list
	case graph.QuestionAsked:
		q := &Question{Question: b.Question, Path: PlainPath(ev.Path), Record: ev.Record}
		t.questions[b.Question.ID] = q
		return []Update{QuestionAsked{q}}
	case graph.QuestionAnswered:
		if q := t.questions[b.ID]; q != nil {
			return []Update{QuestionAnswered{q}}
		}
	case graph.ValueEmitted:
		return t.handleValue(ev, b.Value)
	}
	return nil
}

// handleValue takes a value that a node has emitted.
func (t *Tracker) handleValue(ev graph.Event, value any) (list []Update) {
	switch v := value.(type) {
	case agent.TextDelta, agent.ReasoningDelta:
		return t.addPiece(ev, v)
	case agent.RetryScheduled:
		if r := t.replies[placeOf(ev)]; r != nil {
			list = r.beginAgain(v.Restart(), t.Replaces)
		}
	case agent.ReplyDone:
		return t.endReply(ev, v)
	case agent.ToolStarted:
		c, list := t.addCall(ev, v.ID, v.Name, nil)
		if len(v.Args) > 0 {
			c.Args = v.Args
		}
		return append(list, CallStarted{c})
	case agent.ToolProgress:
		list = []Update{CallOutput{t.findCall(ev, v.ID, v.Name), v.Text + "\n"}}
	case agent.ToolOutput:
		list = []Update{CallOutput{t.findCall(ev, v.ID, v.Name), v.Text}}
	case agent.ToolDone:
		c, list := t.addCall(ev, v.ID, v.Name, nil)
		return append(list, CallEnded{c, v})
	}
	return append(list, ValueAdded{value})
}

// addPiece takes a piece of a reply. One that comes after the whole reply adds nothing.
func (t *Tracker) addPiece(ev graph.Event, piece any) (list []Update) {
	if t.IsLate(ev) {
		return nil
	}
	r := t.openReply(ev)
	if r.newest.Record < t.drive && t.drive <= ev.Record { // another drive writes it
		list = r.beginAgain("the reply starts again", t.Replaces)
	}
	r.newest = ev
	switch v := piece.(type) {
	case agent.TextDelta:
		list = append(list, r.addText(v.Text)...)
	case agent.ReasoningDelta:
		list = append(list, r.addReasoning(v.Text)...)
	}
	return list
}

// IsLate reports whether an event is about a reply that was complete when the event happened.
func (t *Tracker) IsLate(ev graph.Event) bool { return ev.Record < t.ended[placeOf(ev)] }

// openReply returns the reply that the task of an event gives now.
func (t *Tracker) openReply(ev graph.Event) *Reply {
	at := placeOf(ev)
	r := t.replies[at]
	if r == nil {
		r = &Reply{Place: at, Path: PlainPath(ev.Path), Node: ev.Path + ev.Node, Number: t.finished[at] + 1, newest: ev}
		t.replies[at] = r
	}
	return r
}

// endReply takes a whole reply.
func (t *Tracker) endReply(ev graph.Event, done agent.ReplyDone) []Update {
	r := t.openReply(ev)
	list, missing := r.finish(done.Message)
	delete(t.replies, r.Place)
	t.finished[r.Place]++
	t.ended[r.Place] = ev.Record
	list = append(list, ReplyEnded{Reply: r, Done: done, Missing: missing})
	for _, c := range done.Message.ToolCalls() {
		call, added := t.addCall(ev, c.ID, c.Name, r)
		call.Args = c.Args
		list = append(list, added...)
	}
	return list
}

// findCall returns a call: a new one, which is not kept, if its start has not been seen.
func (t *Tracker) findCall(ev graph.Event, id, name string) *Call {
	c := &Call{ID: id, Path: PlainPath(ev.Path), Name: name}
	return cmp.Or(t.calls[c.Key()], c)
}

// addCall returns a call, and that it is new.
func (t *Tracker) addCall(ev graph.Event, id, name string, reply *Reply) (c *Call, list []Update) {
	c = t.findCall(ev, id, name)
	if t.calls[c.Key()] == nil {
		t.calls[c.Key()] = c
		list = append(list, CallAdded{Call: c, Reply: reply})
	}
	return c, list
}

// retryTask makes the replies of a task begin again, and those of the graphs below it.
func (t *Tracker) retryTask(ev graph.Event) (list []Update) {
	below := PlainPath(pathBelow(ev))
	if ev.Node == team.Node { // its lead has the path of the node
		below = PlainPath(ev.Path)
	}
	for _, r := range t.OpenReplies() {
		if r.Place == placeOf(ev) || strings.HasPrefix(r.Path, below) {
			list = append(list, r.beginAgain("the reply starts again", t.Replaces)...)
		}
	}
	return list
}

// pathBelow returns the path of what the task of an event calls.
func pathBelow(ev graph.Event) string {
	path := ev.Path + ev.Node
	if at := strings.LastIndexByte(ev.Task, '.'); at >= 0 && ev.Task[at+1:] != "0" {
		path += "[" + ev.Task[at+1:] + "]"
	}
	return path + "/"
}

// FindReply returns the reply that the task of an event gives now, or nil.
func (t *Tracker) FindReply(ev graph.Event) *Reply { return t.replies[placeOf(ev)] }

// OpenReplies returns the replies that are not complete, in the order of their places.
func (t *Tracker) OpenReplies() (list []*Reply) {
	for _, at := range slices.Sorted(maps.Keys(t.replies)) {
		list = append(list, t.replies[at])
	}
	return list
}

// FindQuestion returns the question of an id that was asked last, or nil.
func (t *Tracker) FindQuestion(id string) *Question { return t.questions[id] }

// Steps returns the nodes that run.
func (t *Tracker) Steps() []*Step { return slices.Clone(t.steps) }

// EndSteps ends all nodes that run.
func (t *Tracker) EndSteps() []Update { return t.endSteps(func(*Step) bool { return true }) }

// startStep takes the start of a node.
func (t *Tracker) startStep(ev graph.Event) []Update {
	if ev.Task != "" && slices.ContainsFunc(t.steps, func(s *Step) bool { return s.Path == ev.Path && s.task == ev.Task }) {
		return nil // it runs again, after an answer
	}
	base := ev.Path + ev.Node
	name := base
	for n := 2; slices.ContainsFunc(t.steps, func(s *Step) bool { return s.Name == name }); n++ {
		name = base + "#" + strconv.Itoa(n)
	}
	s := &Step{Name: name, Path: ev.Path, Node: ev.Node, task: ev.Task}
	t.steps = append(t.steps, s)
	return []Update{StepStarted{s}}
}

// endSteps ends nodes that run.
func (t *Tracker) endSteps(ends func(*Step) bool) (list []Update) {
	t.steps = slices.DeleteFunc(t.steps, func(s *Step) bool {
		if !ends(s) {
			return false
		}
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

// leadPath is what the paths of events of a drive have for the lead of a team.
const leadPath = team.Node + "/" + team.Lead + "/"

// PlainPath returns the path of a conversation, each node followed by a slash. The lead of a team speaks for the node that has the team: a
// drive calls its path team/lead/, a journal does not.
func PlainPath(path string) string {
	if path != "" && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return strings.TrimPrefix(strings.ReplaceAll("/"+path, "/"+leadPath, "/"), "/")
}

// placeOf names the task that an event is about.
func placeOf(ev graph.Event) string { return PlainPath(ev.Path) + cmp.Or(ev.Task, ev.Node) }
