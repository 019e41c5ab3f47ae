package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// A History is the past of a team as the journal of a run records it. It
// includes agents that were collected or cancelled, of which the state keeps
// nothing. Pass it the team's log: the data of the effects for which IsLog
// returns true, of one task, in their order. It needs neither the agents nor
// their graphs.
type History struct {
	Agents []Account // in the order in which they were spawned
	Tasks  []Task    // of all queues, in the order in which they were created

	state *state
	at    map[string]int   // indexes in Agents by id, of the agents that the state contains
	tasks map[string][]int // indexes in Tasks by the id of the agent whose queue it is
}

// An Account is the history of one agent.
type Account struct {
	ID, Agent    string
	Parent       string // the id of the agent that spawned it; Lead: the lead
	Task         string // the id of its task in the parent's queue; "": none
	Purpose      string // the subject of its task, or the first words of its prompt, in one line
	Status       string // queued, running, completed, failed or cancelled
	Error        string
	Began, Ended time.Time   // Began is zero if the agent never got a place, Ended if it has not ended
	Spent        agent.Spend // set when the agent has ended
}

// A Task is a task of a queue.
type Task struct {
	Parent    string   `json:"parent"` // the id of the agent whose queue it is in
	ID        string   `json:"id"`     // in that queue
	Subject   string   `json:"subject"`
	Status    string   `json:"status"`               // pending, blocked, in_progress, completed or failed
	Agent     string   `json:"agent,omitempty"`      // the agent for the task
	AgentID   string   `json:"agent_id,omitempty"`   // the agent that works or worked on it
	BlockedBy []string `json:"blocked_by,omitempty"` // ids of tasks of the same queue

	BlockedForEver []string `json:"blocked_for_ever,omitempty"` // ids of the failed tasks that it depends on
}

// IsLog reports whether an effect is an entry of a team's log. what is the
// effect's id, as history.Entry has it in ID.
func IsLog(what string) bool {
	return graph.ParseEffectID(what).Name == logEffect
}

// Add adds the next entry. The first entry of another turn starts from scratch.
// Add fails if the entry cannot be decoded or does not match the earlier ones.
func (h *History) Add(data []byte) error {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("team: an entry of the log: %w", err)
	}
	if e.Op == opBegin || h.state == nil {
		for i := range h.Agents {
			h.recordEnd(h.Agents[i].ID, entry{At: e.At}) // of a turn that was edited or forked
		}
		h.state = newState(nil, nil)
		h.at = map[string]int{}
		h.tasks = map[string][]int{}
	}
	if by := h.state.agents[e.By]; by == nil && e.By != "" {
		return fmt.Errorf("team: the log names agent %s, which was never spawned", e.By)
	}
	ended := h.state.applyEntry(e).ended
	h.addSpawned(e)
	if e.Op == opEnd {
		h.recordEnd(e.ID, e)
	}
	if e.Op == opCancel {
		h.recordEnd(e.ID, entry{At: e.At})
	}
	for _, id := range ended {
		h.recordEnd(id, entry{At: e.At})
	}
	if a := h.findAccount(e.ID); a != nil && e.Op == opSpent {
		a.Spent = e.Spent
	}
	h.updateTasks(e)
	return nil
}

// addSpawned adds the agents that an entry started, or that it made wait for a
// place.
func (h *History) addSpawned(e entry) {
	for _, m := range h.state.newlyQueued {
		h.account(m).Status = queued
	}
	for _, m := range h.state.newlyStarted {
		a := h.account(m)
		a.Status = running
		a.Began = e.At
	}
	h.state.newlyQueued = nil
	h.state.newlyStarted = nil
}

// account returns the account of an agent, and creates it if there is none.
func (h *History) account(m *member) *Account {
	if a := h.findAccount(m.id); a != nil {
		return a
	}
	h.at[m.id] = len(h.Agents)
	h.Agents = append(h.Agents, Account{ID: m.id, Agent: m.name, Parent: m.parent, Task: m.task, Purpose: m.purpose})
	return &h.Agents[len(h.Agents)-1]
}

// queued is the status of an agent that waits for a place.
const queued = "queued"

func (h *History) findAccount(id string) *Account {
	if i, ok := h.at[id]; ok {
		return &h.Agents[i]
	}
	return nil
}

// recordEnd records how an agent has ended. An entry that does not say how means
// that the agent was cancelled.
func (h *History) recordEnd(id string, e entry) {
	a := h.findAccount(id)
	if a == nil || a.Status != running && a.Status != queued {
		return
	}
	a.Ended = e.At
	a.Error = e.Error
	a.Spent = e.Spent
	a.Status = completed
	switch {
	case e.Op != opEnd:
		a.Status = cancelled
	case e.Error != "":
		a.Status = failed
	}
}

// updateTasks updates the tasks of the queue that an entry may have changed.
func (h *History) updateTasks(e entry) {
	by := e.By
	switch e.Op {
	case opCreate, opComplete, opFail, opCancel:
	case opEnd:
		a := h.findAccount(e.ID)
		if a == nil {
			return
		}
		by = a.Parent
	default:
		return
	}
	q := h.state.queues[by]
	if q == nil {
		return
	}
	for i, t := range q.tasks {
		if i == len(h.tasks[by]) {
			h.tasks[by] = append(h.tasks[by], len(h.Tasks))
			h.Tasks = append(h.Tasks, Task{Parent: by, ID: t.ID, Subject: t.Subject})
		}
		now := &h.Tasks[h.tasks[by][i]]
		now.Status = t.Status
		now.AgentID = t.AgentID
		now.BlockedBy = slices.Clone(t.BlockedBy)
		if t.Agent != nil {
			now.Agent = *t.Agent
		}
		now.BlockedForEver = nil
	}
	for _, t := range q.stuckTasks(false) {
		i := slices.Index(q.tasks, q.findTask(t.ID))
		h.Tasks[h.tasks[by][i]].BlockedForEver = t.Failed
	}
}

// ReadCollected returns, for the outcome of a call that collects agents, how many of the agents have failed, and the
// error of the first of them. It returns 0 for every other call.
func ReadCollected(toolName, outcome string) (failures int, first string) {
	if toolName != collectTool {
		return 0, ""
	}
	var several struct {
		outputResult
		Agents []outputResult `json:"agents"`
	}
	if json.Unmarshal([]byte(outcome), &several) != nil {
		return 0, ""
	}
	for _, o := range append(several.Agents, several.outputResult) {
		if o.Status != failed {
			continue
		}
		if failures++; failures == 1 {
			first = o.Error
		}
	}
	return failures, first
}
