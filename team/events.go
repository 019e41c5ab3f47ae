package team

import (
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// The values that the team's node sends while it runs, as [graph.Emitted] events.
// What the agents do comes from below their own paths. They marshal to JSON with
// a "type" beside their fields.
type (
	// AgentStarted says that an agent begins, or goes on in another drive.
	AgentStarted struct {
		ID      string `json:"id"`
		Agent   string `json:"agent"`
		Parent  string `json:"parent"`            // the id of the agent that has spawned it
		Task    string `json:"task,omitempty"`    // of the parent's queue
		Purpose string `json:"purpose,omitempty"` // the subject of its task, or the first words of its prompt, in one line
		Resumed bool   `json:"resumed,omitempty"` // an earlier drive has begun it
	}
	// AgentQueued says that an agent was spawned and waits for a place. AgentStarted
	// follows when it has one, or AgentEnded when it is cancelled before.
	AgentQueued struct {
		ID      string `json:"id"`
		Agent   string `json:"agent"`
		Parent  string `json:"parent"` // the id of the agent that has spawned it
		Purpose string `json:"purpose,omitempty"`
	}
	// AgentEnded says that an agent has ended.
	AgentEnded struct {
		ID     string      `json:"id"`
		Agent  string      `json:"agent"`
		Status string      `json:"status"` // completed, failed or cancelled
		Error  string      `json:"error,omitempty"`
		Spent  agent.Spend `json:"spent,omitzero"` // over all drives
	}
	// TaskWaiting says that a task of a queue could begin, but that no agent may
	// be started now: there are as many as may run.
	TaskWaiting struct {
		ID      string `json:"id"`
		Subject string `json:"subject"`
		Agent   string `json:"agent"`
		Parent  string `json:"parent"` // the id of the agent whose queue it is in
	}
)

// cancelled is how an agent has ended that did not end by itself.
const cancelled = "cancelled"

func (v AgentStarted) String() string { return fmt.Sprintf("agent %s started", v.ID) }
func (v AgentQueued) String() string  { return fmt.Sprintf("agent %s waits for a place", v.ID) }
func (v AgentEnded) String() string   { return fmt.Sprintf("agent %s %s", v.ID, v.Status) }
func (v TaskWaiting) String() string  { return fmt.Sprintf("task %s waits for a place", v.ID) }

// MarshalJSON adds the type.
func (v AgentStarted) MarshalJSON() ([]byte, error) {
	type plain AgentStarted
	return typed("agent_started", plain(v))
}

// MarshalJSON adds the type.
func (v AgentQueued) MarshalJSON() ([]byte, error) {
	type plain AgentQueued
	return typed("agent_queued", plain(v))
}

// MarshalJSON adds the type.
func (v AgentEnded) MarshalJSON() ([]byte, error) {
	type plain AgentEnded
	return typed("agent_ended", plain(v))
}

// MarshalJSON adds the type.
func (v TaskWaiting) MarshalJSON() ([]byte, error) {
	type plain TaskWaiting
	return typed("task_waiting", plain(v))
}

func typed(name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"type":"`+name+`",`), b[1:]...), nil
}

// Lead is the id of the agent that is talked to: part of the paths of its events.
const Lead = lead

// idPrefix begins the ids of spawned agents; idDigits is the length of what
// follows the name.
const (
	idPrefix = "agent_"
	idDigits = 8
)

// AgentOf is the name of the agent that an id stands for, "" for what is no id of
// a spawned agent.
func AgentOf(id string) string {
	name, ok := strings.CutPrefix(id, idPrefix)
	at := len(name) - idDigits - 1
	if !ok || at < 1 || name[at] != '_' || strings.Trim(name[at+1:], "0123456789abcdef") != "" {
		return ""
	}
	return name[:at]
}

// started tells of an agent that is launched.
func (x *supervisor) started(m *member) {
	if m.id != lead {
		graph.Emit(x.ctx, AgentStarted{ID: m.id, Agent: m.name, Parent: m.parent, Task: m.task, Purpose: m.purpose, Resumed: !x.begun})
	}
}

// emitWaiting sends events for the agents and the tasks that have begun to wait for a
// place. The caller must hold mu.
func (x *supervisor) emitWaiting() {
	for _, m := range x.state.lined {
		if m.queued && x.state.agents[m.id] == m { // else it was cancelled meanwhile
			graph.Emit(x.ctx, AgentQueued{ID: m.id, Agent: m.name, Parent: m.parent, Purpose: m.purpose})
		}
	}
	x.state.lined = nil
	for _, w := range x.state.crowded {
		if w.task.Status == taskPending {
			graph.Emit(x.ctx, TaskWaiting{ID: w.task.ID, Subject: w.task.Subject, Agent: *w.task.Agent, Parent: w.by})
		}
	}
	x.state.crowded = nil
}
