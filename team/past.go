package team

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
)

// A Past is what the journal of a run tells of a team, those of its agents included
// that were collected or cancelled and of which nothing else is kept. Feed it the
// team's log: the data of the effects for which IsLog is true, of one task, in
// their order. It needs neither the agents nor their graphs.
type Past struct {
	Agents []Account // in the order of their spawning
	Tasks  []Task    // of all queues, in the order of their making

	state *state
	at    map[string]int   // index in Agents by id, of those that the state knows
	tasks map[string][]int // indexes in Tasks, by whose queue it is
}

// An Account is what has become of an agent.
type Account struct {
	ID, Agent    string
	Parent       string // the id of the agent that has spawned it; Lead: the one that is talked to
	Task         string // the id of the task of its parent's queue that it works on; "": none
	Purpose      string // the subject of its task, or the first words of its prompt, in one line
	Status       string // queued, running, completed, failed or cancelled
	Error        string
	Began, Ended time.Time   // Began is zero for one that never had a place, Ended for one that has not ended
	Spent        agent.Spend // of one that has ended
}

// A Task is a task of a queue.
type Task struct {
	Parent    string   `json:"parent"` // the id of the agent whose queue it is in
	ID        string   `json:"id"`     // in that queue
	Subject   string   `json:"subject"`
	Status    string   `json:"status"`               // pending, blocked, in_progress, completed or failed
	Agent     string   `json:"agent,omitempty"`      // that is to work on it
	AgentID   string   `json:"agent_id,omitempty"`   // that works on it, or did
	BlockedBy []string `json:"blocked_by,omitempty"` // ids of tasks of the same queue

	BlockedForEver []string `json:"blocked_for_ever,omitempty"` // ids of the failed tasks that it cannot do without
}

// IsLog tells whether an effect is an entry of a team's log. what is the effect's
// id, as [graph.Entry] has it in ID.
func IsLog(what string) bool {
	_, name, _ := strings.Cut(what, "\x00")
	return strings.HasPrefix(name, logEffect+"\x00")
}

// Add takes the next entry in. The first entry of another turn begins anew.
func (p *Past) Add(data []byte) error {
	var e entry
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("team: an entry of the log: %w", err)
	}
	if e.Op == opBegin || p.state == nil {
		for i := range p.Agents {
			p.over(p.Agents[i].ID, entry{At: e.At}) // of a turn that was edited or forked
		}
		p.state, p.at, p.tasks = newState(nil, nil), map[string]int{}, map[string][]int{}
	}
	if by := p.state.agents[e.By]; by == nil && e.By != "" {
		return fmt.Errorf("team: the log tells of agent %s, which was never spawned", e.By)
	}
	ended := p.state.apply(e).ended
	p.begun(e)
	if e.Op == opEnd {
		p.over(e.ID, e)
	}
	if e.Op == opCancel {
		p.over(e.ID, entry{At: e.At})
	}
	for _, id := range ended {
		p.over(id, entry{At: e.At})
	}
	if a := p.known(e.ID); a != nil && e.Op == opSpent {
		a.Spent = e.Spent
	}
	p.note(e)
	return nil
}

// begun takes in the agents that an entry has begun, or that it lets wait for a place.
func (p *Past) begun(e entry) {
	for _, m := range p.state.lined {
		p.account(m).Status = queued
	}
	for _, m := range p.state.begun {
		a := p.account(m)
		a.Status, a.Began = running, e.At
	}
	p.state.lined, p.state.begun = nil, nil
}

// account returns the account of an agent, a new one for an agent without.
func (p *Past) account(m *member) *Account {
	if a := p.known(m.id); a != nil {
		return a
	}
	p.at[m.id] = len(p.Agents)
	p.Agents = append(p.Agents, Account{ID: m.id, Agent: m.name, Parent: m.parent, Task: m.task, Purpose: m.purpose})
	return &p.Agents[len(p.Agents)-1]
}

// queued is the status of an agent that waits for a place.
const queued = "queued"

func (p *Past) known(id string) *Account {
	if i, ok := p.at[id]; ok {
		return &p.Agents[i]
	}
	return nil
}

// over is how an agent has ended: an entry that tells of no end is one that
// cancelled it.
func (p *Past) over(id string, e entry) {
	a := p.known(id)
	if a == nil || a.Status != running && a.Status != queued {
		return
	}
	a.Ended, a.Error, a.Spent, a.Status = e.At, e.Error, e.Spent, completed
	switch {
	case e.Op != opEnd:
		a.Status = cancelled
	case e.Error != "":
		a.Status = failed
	}
}

// note brings the tasks up to date of the queue that an entry may have changed.
func (p *Past) note(e entry) {
	by := e.By
	switch e.Op {
	case opCreate, opComplete, opFail, opCancel:
	case opEnd:
		a := p.known(e.ID)
		if a == nil {
			return
		}
		by = a.Parent
	default:
		return
	}
	q := p.state.queues[by]
	if q == nil {
		return
	}
	for i, t := range q.tasks {
		if i == len(p.tasks[by]) {
			p.tasks[by] = append(p.tasks[by], len(p.Tasks))
			p.Tasks = append(p.Tasks, Task{Parent: by, ID: t.ID, Subject: t.Subject})
		}
		now := &p.Tasks[p.tasks[by][i]]
		now.Status, now.AgentID, now.BlockedBy = t.Status, t.AgentID, slices.Clone(t.BlockedBy)
		if t.Agent != nil {
			now.Agent = *t.Agent
		}
		now.BlockedForEver = nil
	}
	for _, t := range q.stuck(false) {
		i := slices.Index(q.tasks, q.find(t.ID))
		p.Tasks[p.tasks[by][i]].BlockedForEver = t.Failed
	}
}
