package team

import (
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// These are the values that the team's node emits while it runs, as
// [graph.ValueEmitted] events. Events of the agents themselves come from the paths
// of the agents. In the JSON of the event, each has a member "type".
type (
	// AgentStarted says that an agent starts, or continues in another drive.
	AgentStarted struct {
		ID     string `json:"id"`
		Agent  string `json:"agent"`
		Parent string `json:"parent"`         // the id of the agent that spawned it
		Task   string `json:"task,omitempty"` // of the parent's queue
		// Purpose is the subject of its task, or the first words of its prompt, in one line.
		Purpose string `json:"purpose,omitempty"`
		Resumed bool   `json:"resumed,omitempty"` // an earlier drive started it
	}
	// AgentQueued says that an agent was spawned and waits for a place.
	// AgentStarted follows when it gets one, or AgentEnded if it is cancelled
	// before.
	AgentQueued struct {
		ID      string `json:"id"`
		Agent   string `json:"agent"`
		Parent  string `json:"parent"` // the id of the agent that spawned it
		Purpose string `json:"purpose,omitempty"`
	}
	// AgentEnded says that an agent has ended.
	AgentEnded struct {
		ID     string      `json:"id"`
		Agent  string      `json:"agent"`
		Status string      `json:"status"` // completed, failed or cancelled
		Error  string      `json:"error,omitempty"`
		Spent  agent.Spend `json:"spent,omitzero"` // total of all drives
	}
	// TaskWaiting says that a task of a queue could start, but that its agent
	// must wait because the maximum number of agents is running.
	TaskWaiting struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
		Agent   string `json:"agent"`
		Parent  string `json:"parent"` // the id of the agent whose queue it is in
	}
)

// cancelled is the status of an agent that was ended before it finished.
const cancelled = "cancelled"

// String returns the event as a line for people: that the agent started.
func (v AgentStarted) String() string { return fmt.Sprintf("agent %s started", v.ID) }

// String returns the event as a line for people: that the agent waits for a place.
func (v AgentQueued) String() string { return fmt.Sprintf("agent %s waits for a place", v.ID) }

// String returns the event as a line for people: how the agent has ended.
func (v AgentEnded) String() string { return fmt.Sprintf("agent %s %s", v.ID, v.Status) }

// String returns the event as a line for people: that the task waits for a place.
func (v TaskWaiting) String() string { return fmt.Sprintf("task %s waits for a place", v.ID) }

// EventType returns "agent_started".
func (AgentStarted) EventType() string { return "agent_started" }

// EventType returns "agent_queued".
func (AgentQueued) EventType() string { return "agent_queued" }

// EventType returns "agent_ended".
func (AgentEnded) EventType() string { return "agent_ended" }

// EventType returns "task_waiting".
func (TaskWaiting) EventType() string { return "task_waiting" }

// Lead is the id of the lead. It is part of the paths of the lead's events.
const Lead = lead

// idPrefix starts the ids of spawned agents; idDigits is the number of digits
// after the name.
const (
	idPrefix = "agent_"
	idDigits = 8
)

// AgentOf returns the name of the agent with an id, or "" if the id is not one
// of a spawned agent.
func AgentOf(id string) string {
	name, ok := strings.CutPrefix(id, idPrefix)
	at := len(name) - idDigits - 1
	if !ok || at < 1 || name[at] != '_' || strings.Trim(name[at+1:], "0123456789abcdef") != "" {
		return ""
	}
	return name[:at]
}

// emitStarted emits the event for an agent that is launched.
func (sup *supervisor) emitStarted(m *member) {
	if m.id != lead {
		graph.Emit(sup.ctx, AgentStarted{ID: m.id, Agent: m.name, Parent: m.parent, Task: m.task, Purpose: m.purpose, Resumed: !sup.relaunched})
	}
}

// emitWaiting emits events for the agents and the tasks that now wait for a
// place. The caller must hold mu.
func (sup *supervisor) emitWaiting() {
	for _, m := range sup.state.newlyQueued {
		if m.queued && sup.state.agents[m.id] == m { // otherwise it was cancelled in the meantime
			graph.Emit(sup.ctx, AgentQueued{ID: m.id, Agent: m.name, Parent: m.parent, Purpose: m.purpose})
		}
	}
	sup.state.newlyQueued = nil
	for _, w := range sup.state.waitingTasks {
		if w.task.Status == taskPending {
			graph.Emit(sup.ctx, TaskWaiting{ID: w.task.ID, Subject: w.task.Subject, Agent: *w.task.Agent, Parent: w.by})
		}
	}
	sup.state.waitingTasks = nil
}
