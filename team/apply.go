package team

import (
	"fmt"
	"slices"
	"time"
)

// The methods of this file make the changes of the entries. Each method refuses
// an entry before it changes anything.

type errorResult struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type spawnResult struct {
	Status  string `json:"status"`
	ID      string `json:"id"`
	Agent   string `json:"agent"`
	Message string `json:"message"`
	Queued  bool   `json:"queued,omitempty"`
}

func (s *state) applySpawn(e entry) outcome {
	m := s.addMember(e.By, e.Agent, e.Text, e.Key)
	if e.Queued {
		by := s.agents[e.By]
		s.newlyQueued = append(s.newlyQueued, m)
		return outcome{result: spawnResult{"ok", m.id, m.name, fmt.Sprintf("Agent '%s' spawned as '%s'. It waits for a place: %d/%d agents run. Use agent__collect to get its result.", m.name, m.id, by.atWork, s.maxConcurrent(by)), true}}
	}
	s.startMember(m)
	return outcome{result: newSpawnResult(m)}
}

func newSpawnResult(m *member) spawnResult {
	return spawnResult{"ok", m.id, m.name, fmt.Sprintf("Agent '%s' spawned as '%s'. Use agent__check or agent__collect to get results.", m.name, m.id), false}
}

// applyEnd ends an agent whose loop is finished: its own agents are cancelled, its
// task is completed or failed, and its place is free for another agent.
func (s *state) applyEnd(e entry) outcome {
	m := s.agents[e.ID]
	if m == nil || m.status != running {
		return outcome{refused: true}
	}
	out := outcome{ended: s.removeBelow(m)}
	s.withdrawQuestions(m.id)
	s.spent = sumSpend(s.spent, e.Spent)
	m.status = completed
	m.output = e.Text
	m.problem = e.Error
	m.prompt = ""
	m.inbox = nil
	if e.Error != "" {
		m.status = failed
	}
	if q := s.queues[m.parent]; m.task != "" {
		if t := q.findTask(m.task); t.Status == taskInProgress && m.status == completed {
			q.completeTask(t)
		} else if t.Status == taskInProgress {
			t.Status = taskFailed
		}
	}
	if m.id != lead {
		s.agents[m.parent].atWork--
		s.dispatchWaiting(m.parent, e.Key)
	}
	return out
}

// outputResult is the output of an agent.
type outputResult struct {
	Status     string `json:"status"`
	ID         string `json:"id"`
	Agent      string `json:"agent"`
	ExitStatus string `json:"exit_status"`
	Output     string `json:"output"`
	Error      string `json:"error,omitempty"`
	// Stuck are tasks of the collector that no earlier result has named.
	Stuck   []stuckTask   `json:"blocked_for_ever,omitempty"`
	Pending []*escalation `json:"pending_escalations,omitempty"`
}

// applyCollect returns the output of one agent or of several. An output is returned
// only once.
func (s *state) applyCollect(e entry) outcome {
	if len(e.IDs) == 0 {
		out := s.collectOne(e.By, e.ID)
		if f, ok := out.result.(outputResult); ok {
			f.Stuck = s.reportStuck(e.By)
			out.result = f
		}
		return out
	}
	g := collectResult{Status: "ok"}
	for _, id := range e.IDs { // none is missing: the same call has checked it, unless another call came in between
		if f, ok := s.collectOne(e.By, id).result.(outputResult); ok {
			g.Agents = append(g.Agents, f)
		}
	}
	if len(g.Agents) == 0 {
		return refuseEntry("Another call has collected these agents: %s.", joinIDs(e.IDs))
	}
	g.Left, g.Stuck = s.childIDs(e.By), s.reportStuck(e.By)
	return outcome{result: g}
}

func (s *state) collectOne(by, id string) outcome {
	m := s.childOf(by, id)
	if m == nil || m.status == running {
		return refuseEntry("Agent '%s' not found. Use agent__check to verify it exists and is finished.", id)
	}
	f := outputResult{Status: m.status, ID: m.id, Agent: m.name, ExitStatus: "Completed", Output: m.output}
	if m.status == failed {
		f.ExitStatus = fmt.Sprintf("Failed(%q)", m.problem)
		f.Error = m.problem
	}
	s.removeMember(m)
	return outcome{result: f}
}

// cancelResult is the result of a cancellation.
type cancelResult struct {
	Status  string      `json:"status"`
	Message string      `json:"message"`
	Stuck   []stuckTask `json:"blocked_for_ever,omitempty"`
}

func (s *state) applyCancel(e entry) outcome {
	m := s.childOf(e.By, e.ID)
	if m == nil {
		return refuseEntry("No agent found with id '%s'", e.ID)
	}
	if q := s.queues[e.By]; m.task != "" {
		if t := q.findTask(m.task); t.Status == taskInProgress {
			t.Status = taskFailed
		}
	}
	name := m.name
	out := outcome{ended: s.removeMember(m)}
	s.dispatchWaiting(e.By, e.Key)
	out.result = cancelResult{"ok", fmt.Sprintf("Cancelled agent '%s'", name), s.reportStuck(e.By)}
	return out
}

// dispatchWaiting starts the agents of an agent that wait for a place, and then the
// tasks of its queue that can start, while there are free places.
func (s *state) dispatchWaiting(by, key string) (started []spawnResult) {
	m := s.agents[by]
	for _, child := range m.children {
		if child.queued && m.atWork < s.maxConcurrent(m) {
			s.startMember(child)
		}
	}
	free := s.maxConcurrent(m) - m.atWork
	for i, t := range s.queues[by].readyTasks() {
		if i >= free {
			s.noteWaitingTask(by, t)
			continue
		}
		m := s.addMember(by, *t.Agent, *t.Prompt, key+" task "+t.ID)
		m.purpose = firstWords(t.Subject)
		s.startMember(m)
		owner := "auto:" + m.name
		t.Status = taskInProgress
		t.Owner = &owner
		t.AgentID = m.id
		m.task = t.ID
		started = append(started, newSpawnResult(m))
	}
	return started
}

// noteWaitingTask records that a task waits for a place, once.
func (s *state) noteWaitingTask(by string, t *task) {
	if !t.reportedWaiting {
		t.reportedWaiting = true
		s.waitingTasks = append(s.waitingTasks, waitingTask{by, t})
	}
}

type createResult struct {
	Status       string   `json:"status"`
	TaskID       string   `json:"task_id"`
	AutoDispatch bool     `json:"auto_dispatch,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`
}

func (s *state) applyCreate(e entry) outcome {
	q := s.queues[e.By]
	if q == nil {
		q = &queue{}
		s.queues[e.By] = q
	}
	t, warnings := q.addTask(*e.Task)
	s.dispatchWaiting(e.By, e.Key)
	return outcome{result: createResult{"ok", t.ID, t.Agent != nil, warnings}}
}

type completeResult struct {
	Status     string         `json:"status"`
	TaskID     string         `json:"task_id"`
	Runnable   []runnableTask `json:"newly_runnable"`
	Dispatched []spawnResult  `json:"auto_dispatched,omitempty"`
}

type runnableTask struct {
	ID          string  `json:"id"`
	Subject     string  `json:"subject"`
	Description string  `json:"description"`
	Agent       *string `json:"agent"`
}

func (s *state) applyComplete(e entry) outcome {
	q := s.queues[e.By]
	t := q.findTask(e.ID)
	switch {
	case t == nil:
		return refuseEntry("Task '%s' not found", e.ID)
	case t.Status == taskBlocked:
		return refuseEntry("Task '%s' is blocked by: %s", t.ID, joinIDs(t.BlockedBy))
	case t.Status == taskFailed:
		return refuseEntry("Task '%s' has failed and cannot be completed. Create a new one.", t.ID)
	}
	d := completeResult{Status: "ok", TaskID: t.ID, Runnable: []runnableTask{}}
	for _, r := range q.completeTask(t) {
		d.Runnable = append(d.Runnable, runnableTask{r.ID, r.Subject, r.Description, r.Agent})
	}
	d.Dispatched = s.dispatchWaiting(e.By, e.Key)
	return outcome{result: d}
}

type failResult struct {
	Status  string   `json:"status"`
	TaskID  string   `json:"task_id"`
	Blocked []string `json:"blocked_dependents"`
	Message string   `json:"message"`

	Stuck []stuckTask `json:"blocked_for_ever,omitempty"` // including tasks that depend on the dependents
}

func (s *state) applyFail(e entry) outcome {
	t := s.queues[e.By].findTask(e.ID)
	switch {
	case t == nil:
		return refuseEntry("Task '%s' not found", e.ID)
	case t.Status == taskCompleted:
		return refuseEntry("Task '%s' is completed and cannot fail any more.", t.ID)
	}
	t.Status = taskFailed
	return outcome{result: failResult{"ok", t.ID, slices.Clone(t.Blocks),
		fmt.Sprintf("Task '%s' marked as failed. %d dependent task(s) will remain blocked.", t.ID, len(t.Blocks)), s.reportStuck(e.By)}}
}

// applySend puts a message into the inbox of a child, of a sibling or of the parent.
func (s *state) applySend(e entry) outcome {
	by := s.agents[e.By]
	to := s.agents[e.ID]
	if e.ID == "parent" && by.id != lead {
		to = s.agents[by.parent]
	}
	near := to != nil && (to.parent == by.id || by.id != lead && (to.parent == by.parent || to.id == by.parent))
	if !near || to == by || to.status != running {
		return refuseEntry("No agent found with id '%s'. Agent may not exist or may have already completed.", e.ID)
	}
	from := by.id
	if from == lead {
		from = "parent" // it can only write to its own agents
	}
	to.inbox = append(to.inbox, inboxMessage{from, payload{"text", e.Text}, e.At.UTC().Format(time.RFC3339)})
	return outcome{result: errorResult{"ok", fmt.Sprintf("Message delivered to agent '%s'", e.ID)}}
}

type inboxResult struct {
	Messages []inboxMessage `json:"messages"`
	Count    int            `json:"count"`

	Pending []*escalation `json:"pending_escalations,omitempty"`
}

func (s *state) applyDrain(e entry) outcome {
	m := s.agents[e.By]
	box := inboxResult{Messages: m.inbox, Count: len(m.inbox)}
	if box.Count == 0 {
		return outcome{result: inboxResult{Messages: []inboxMessage{}}, refused: true}
	}
	m.inbox = nil
	return outcome{result: box}
}

// applyEscalate sends a question to the agent that spawned this one.
func (s *state) applyEscalate(e entry) outcome {
	m := s.agents[e.By]
	x := &escalation{ID: s.newID("esc_", e.Key), From: m.id, Name: m.name, Question: e.Text, Options: e.Options, to: m.parent}
	s.escalations = append(s.escalations, x)
	return outcome{result: x}
}

type replyResult struct {
	Status   string `json:"status"`
	Message  string `json:"message"`
	Question string `json:"original_question"`
}

// applyReply answers a question, or stops waiting for an answer.
func (s *state) applyReply(e entry) outcome {
	i := slices.IndexFunc(s.escalations, func(x *escalation) bool { return x.ID == e.ID && !x.replied })
	if i < 0 || e.Op == opReply && s.escalations[i].to != e.By {
		return refuseEntry("No pending escalation found with id '%s'. It may have already been replied to or timed out.", e.ID)
	}
	x := s.escalations[i]
	if e.Op == opGiveUp {
		s.escalations = slices.Delete(s.escalations, i, i+1)
		return outcome{}
	}
	x.replied = true
	x.reply = e.Text
	return outcome{result: replyResult{"ok", fmt.Sprintf("Reply sent to agent '%s' for escalation '%s'", x.Name, x.ID), x.Question}}
}
