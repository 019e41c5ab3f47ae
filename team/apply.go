package team

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// The methods of this file make the changes of the entries. Each method refuses
// an entry before it changes anything.

type problem struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type spawned struct {
	Status  string `json:"status"`
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Message string `json:"message"`
	Queued  bool   `json:"queued,omitempty"`
}

func (s *state) spawn(e entry) outcome {
	m := s.add(e.By, e.Agent, e.Text, e.Key)
	if e.Queued {
		by := s.agents[e.By]
		s.lined = append(s.lined, m)
		return outcome{result: spawned{"ok", m.id, m.name, fmt.Sprintf("Agent '%s' spawned as '%s'. It waits for a place: %d/%d agents run. Use agent__collect to get its result.", m.name, m.id, by.atWork, s.most(by)), true}}
	}
	s.place(m)
	return outcome{result: told(m)}
}

func told(m *member) spawned {
	return spawned{"ok", m.id, m.name, fmt.Sprintf("Agent '%s' spawned as '%s'. Use agent__check or agent__collect to get results.", m.name, m.id), false}
}

// end ends an agent whose loop is finished: its own agents are cancelled, its
// task is completed or failed, and its place is free for another agent.
func (s *state) end(e entry) outcome {
	m := s.agents[e.ID]
	if m == nil || m.status != running {
		return outcome{refused: true}
	}
	out := outcome{ended: s.removeBelow(m)}
	s.withdraw(m.id)
	s.spent = total(s.spent, e.Spent)
	m.status, m.output, m.problem, m.prompt, m.inbox = completed, e.Text, e.Error, "", nil
	if e.Error != "" {
		m.status = failed
	}
	if q := s.queues[m.parent]; m.task != "" {
		if t := q.find(m.task); t.Status == taskInProgress && m.status == completed {
			q.complete(t)
		} else if t.Status == taskInProgress {
			t.Status = taskFailed
		}
	}
	if m.id != lead {
		s.agents[m.parent].atWork--
		s.dispatch(m.parent, e.Key)
	}
	return out
}

// finished is the output of an agent.
type finished struct {
	Status     string        `json:"status"`
	ID         string        `json:"id"`
	Agent      string        `json:"agent"`
	ExitStatus string        `json:"exit_status"`
	Output     string        `json:"output"`
	Error      string        `json:"error,omitempty"`
	Stuck      []stuckTask   `json:"blocked_for_ever,omitempty"` // tasks of the collector that no earlier result has named
	Pending    []*escalation `json:"pending_escalations,omitempty"`
}

// collect returns the output of one agent or of several. An output is returned
// only once.
func (s *state) collect(e entry) outcome {
	if len(e.IDs) == 0 {
		out := s.collectOne(e.By, e.ID)
		if f, ok := out.result.(finished); ok {
			f.Stuck = s.reportStuck(e.By)
			out.result = f
		}
		return out
	}
	g := gathered{Status: "ok"}
	for _, id := range e.IDs { // none is missing: the same call has checked it, unless another call came in between
		if f, ok := s.collectOne(e.By, id).result.(finished); ok {
			g.Agents = append(g.Agents, f)
		}
	}
	if len(g.Agents) == 0 {
		return refuse("Another call has collected these agents: %s.", joined(e.IDs))
	}
	g.Left, g.Stuck = s.childIDs(e.By), s.reportStuck(e.By)
	return outcome{result: g}
}

func (s *state) collectOne(by, id string) outcome {
	m := s.child(by, id)
	if m == nil || m.status == running {
		return refuse("Agent '%s' not found. Use agent__check to verify it exists and is finished.", id)
	}
	f := finished{Status: m.status, ID: m.id, Agent: m.name, ExitStatus: "Completed", Output: m.output}
	if m.status == failed {
		f.ExitStatus, f.Error = fmt.Sprintf("Failed(%q)", m.problem), m.problem
	}
	s.remove(m)
	return outcome{result: f}
}

// stopped is the result of a cancellation.
type stopped struct {
	Status  string      `json:"status"`
	Message string      `json:"message"`
	Stuck   []stuckTask `json:"blocked_for_ever,omitempty"`
}

func (s *state) cancel(e entry) outcome {
	m := s.child(e.By, e.ID)
	if m == nil {
		return refuse("No agent found with id '%s'", e.ID)
	}
	if q := s.queues[e.By]; m.task != "" {
		if t := q.find(m.task); t.Status == taskInProgress {
			t.Status = taskFailed
		}
	}
	name := m.name
	out := outcome{ended: s.remove(m)}
	s.dispatch(e.By, e.Key)
	out.result = stopped{"ok", fmt.Sprintf("Cancelled agent '%s'", name), s.reportStuck(e.By)}
	return out
}

// dispatch starts the agents of an agent that wait for a place, and then the
// tasks of its queue that can start, while there are free places.
func (s *state) dispatch(by, key string) (begun []spawned) {
	m := s.agents[by]
	for _, child := range m.children {
		if child.queued && m.atWork < s.most(m) {
			s.place(child)
		}
	}
	free := s.most(m) - m.atWork
	for i, t := range s.queues[by].waiting() {
		if i >= free {
			s.crowd(by, t)
			continue
		}
		m := s.add(by, *t.Agent, *t.Prompt, key+" task "+t.ID)
		m.purpose = firstWords(t.Subject)
		s.place(m)
		owner := "auto:" + m.name
		t.Status, t.Owner, t.AgentID, m.task = taskInProgress, &owner, m.id, t.ID
		begun = append(begun, told(m))
	}
	return begun
}

// crowd records that a task waits for a place, once.
func (s *state) crowd(by string, t *task) {
	if !t.crowded {
		t.crowded = true
		s.crowded = append(s.crowded, crowded{by, t})
	}
}

type created struct {
	Status       string   `json:"status"`
	TaskID       string   `json:"task_id"`
	AutoDispatch bool     `json:"auto_dispatch,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

func (s *state) create(e entry) outcome {
	q := s.queues[e.By]
	if q == nil {
		q = &queue{}
		s.queues[e.By] = q
	}
	t, warnings := q.create(*e.Task)
	s.dispatch(e.By, e.Key)
	return outcome{result: created{"ok", t.ID, t.Agent != nil, warnings}}
}

type done struct {
	Status     string     `json:"status"`
	TaskID     string     `json:"task_id"`
	Runnable   []runnable `json:"newly_runnable"`
	Dispatched []spawned  `json:"auto_dispatched,omitempty"`
}

type runnable struct {
	ID          string  `json:"id"`
	Subject     string  `json:"subject"`
	Description string  `json:"description"`
	Agent       *string `json:"agent"`
}

func (s *state) complete(e entry) outcome {
	q := s.queues[e.By]
	t := q.find(e.ID)
	switch {
	case t == nil:
		return refuse("Task '%s' not found", e.ID)
	case t.Status == taskBlocked:
		return refuse("Task '%s' is blocked by: %s", t.ID, joined(t.BlockedBy))
	case t.Status == taskFailed:
		return refuse("Task '%s' has failed and cannot be completed. Create a new one.", t.ID)
	}
	d := done{Status: "ok", TaskID: t.ID, Runnable: []runnable{}}
	for _, r := range q.complete(t) {
		d.Runnable = append(d.Runnable, runnable{r.ID, r.Subject, r.Description, r.Agent})
	}
	d.Dispatched = s.dispatch(e.By, e.Key)
	return outcome{result: d}
}

type lost struct {
	Status  string   `json:"status"`
	TaskID  string   `json:"task_id"`
	Blocked []string `json:"blocked_dependents"`
	Message string   `json:"message"`

	Stuck []stuckTask `json:"blocked_for_ever,omitempty"` // including tasks that depend on the dependents
}

func (s *state) fail(e entry) outcome {
	t := s.queues[e.By].find(e.ID)
	switch {
	case t == nil:
		return refuse("Task '%s' not found", e.ID)
	case t.Status == taskCompleted:
		return refuse("Task '%s' is completed and cannot fail any more.", t.ID)
	}
	t.Status = taskFailed
	return outcome{result: lost{"ok", t.ID, slices.Clone(t.Blocks),
		fmt.Sprintf("Task '%s' marked as failed. %d dependent task(s) will remain blocked.", t.ID, len(t.Blocks)), s.reportStuck(e.By)}}
}

// send puts a message into the inbox of a child, of a sibling or of the parent.
func (s *state) send(e entry) outcome {
	by := s.agents[e.By]
	to := s.agents[e.ID]
	if e.ID == "parent" && by.id != lead {
		to = s.agents[by.parent]
	}
	near := to != nil && (to.parent == by.id || by.id != lead && (to.parent == by.parent || to.id == by.parent))
	if !near || to == by || to.status != running {
		return refuse("No agent found with id '%s'. Agent may not exist or may have already completed.", e.ID)
	}
	from := by.id
	if from == lead {
		from = "parent" // it can only write to its own agents
	}
	to.inbox = append(to.inbox, mail{from, payload{"text", e.Text}, e.At.UTC().Format(time.RFC3339)})
	return outcome{result: problem{"ok", fmt.Sprintf("Message delivered to agent '%s'", e.ID)}}
}

type inbox struct {
	Messages []mail `json:"messages"`
	Count    int    `json:"count"`

	Pending []*escalation `json:"pending_escalations,omitempty"`
}

func (s *state) drain(e entry) outcome {
	m := s.agents[e.By]
	box := inbox{Messages: m.inbox, Count: len(m.inbox)}
	if box.Count == 0 {
		return outcome{result: inbox{Messages: []mail{}}, refused: true}
	}
	m.inbox = nil
	return outcome{result: box}
}

// escalate sends a question to the agent that spawned this one.
func (s *state) escalate(e entry) outcome {
	m := s.agents[e.By]
	x := &escalation{ID: s.newID("esc_", e.Key), From: m.id, Name: m.name, Question: e.Text, Options: e.Options, to: m.parent}
	s.escalations = append(s.escalations, x)
	return outcome{result: x}
}

type replied struct {
	Status   string `json:"status"`
	Message  string `json:"message"`
	Question string `json:"original_question"`
}

// reply answers a question, or stops waiting for an answer.
func (s *state) reply(e entry) outcome {
	i := slices.IndexFunc(s.escalations, func(x *escalation) bool { return x.ID == e.ID && !x.replied })
	if i < 0 || e.Op == opReply && s.escalations[i].to != e.By {
		return refuse("No pending escalation found with id '%s'. It may have already been replied to or timed out.", e.ID)
	}
	x := s.escalations[i]
	if e.Op == opGiveUp {
		s.escalations = slices.Delete(s.escalations, i, i+1)
		return outcome{}
	}
	x.replied, x.reply = true, e.Text
	return outcome{result: replied{"ok", fmt.Sprintf("Reply sent to agent '%s' for escalation '%s'", x.Name, x.ID), x.Question}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
