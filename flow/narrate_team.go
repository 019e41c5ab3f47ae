package flow

import (
	"fmt"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/wording"
	"raddle.dev/team"
)

// What a Narrator tells of agents that were spawned. They work at the same time:
// each line names the one that it is about.

// crewTime is what a Narrator has seen of a spawned agent.
type crewTime struct {
	begun  time.Duration // on the stopwatch
	calls  int
	tokens int
}

// member is the frame of an agent of a team. What a spawned one is inside is told
// where its events say so.
func (f frame) member(id string) frame {
	f.team = false
	if id == team.Lead {
		return f
	}
	var child *Agent
	if f.agent.crew != nil {
		child = f.agent.crew.agents[team.AgentOf(id)]
	}
	f.agent, f.talks = child, child == nil || child.Config != nil
	f.label = "[" + id + "] "
	return f
}

// front is the label of a frame whose own nodes are told, where the indentation
// does not say which one it is.
func (f frame) front() string {
	if f.branch || strings.HasPrefix(f.label, "[agent_") {
		return f.label
	}
	return ""
}

// crewID is the spawned agent that a path lies in, "" for none.
func crewID(path string) string {
	for id := range strings.SplitSeq(path, "/") {
		if team.AgentOf(id) != "" {
			return id
		}
	}
	return ""
}

// count adds up what spawned agents cost.
func (n *Narrator) count(e graph.Event) {
	b, ok := e.Body.(graph.Emitted)
	if !ok {
		return
	}
	c := n.crew[crewID(e.Path)]
	if c == nil {
		return
	}
	switch v := b.Value.(type) {
	case agent.Replied:
		c.calls, c.tokens = c.calls+1, c.tokens+v.Usage.Input+v.Usage.Output
	case ModelDone:
		c.calls, c.tokens = c.calls+1, c.tokens+v.Usage.Input+v.Usage.Output
	}
}

// crewed tells of a team, if that is what an event is about.
func (n *Narrator) crewed(f frame, e graph.Event, v any) bool {
	f.label = ""
	switch v := v.(type) {
	case team.AgentStarted:
		verb := "started"
		if n.crew[v.ID] != nil {
			return true // it goes on after an answer; that is no news
		}
		if v.Resumed {
			verb = "goes on"
		}
		if v.Parent != team.Lead {
			verb += ", spawned by " + v.Parent
		}
		if v.Task != "" {
			verb += ", for task " + v.Task
		}
		n.crew[v.ID] = &crewTime{begun: n.watch.at(e.Time)}
		n.line(f.indent, "%s (%s) %s", v.Agent, v.ID, verb)
	case team.AgentEnded:
		n.line(f.indent, "%s (%s) %s%s", v.Agent, v.ID, v.Status, n.cost(e, v))
		delete(n.crew, v.ID)
	case team.TaskWaiting:
		n.line(f.indent, "task %s waits for a place: %s (%s)", v.ID, v.Subject, v.Agent)
	default:
		return false
	}
	return true
}

// cost is what an agent has taken, and why it failed.
func (n *Narrator) cost(e graph.Event, v team.AgentEnded) string {
	text := ""
	if c := n.crew[v.ID]; c != nil {
		calls := max(c.calls, v.Spent.Calls)
		tokens := max(c.tokens, v.Spent.Usage.Input+v.Spent.Usage.Output)
		text = fmt.Sprintf(" in %s (%s, %d tokens)", elapsed(n.watch.at(e.Time)-c.begun), counted(calls, "model call"), tokens)
	}
	if v.Error != "" {
		text += ": " + wording.CutText(v.Error, mostArgs, "...")
	}
	return text
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
