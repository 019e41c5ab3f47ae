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

// This file prints the events of spawned agents. They run concurrently, so each
// line names its agent.

// agentTally is what a Narrator knows about a spawned agent.
type agentTally struct {
	startedAt time.Duration // on the stopwatch
	calls     int
	tokens    int
}

// memberFrame returns the frame of an agent of a team. What a spawned agent is
// inside follows from its events.
func (f frame) memberFrame(id string) frame {
	f.team = false
	if id == team.Lead {
		return f
	}
	var child *Agent
	if f.agent.spawnSet != nil {
		child = f.agent.spawnSet.agents[team.AgentOf(id)]
	}
	f.agent, f.talks, f.spawned = child, child == nil || child.Config != nil, true
	return f
}

// linePrefix returns the label of a frame whose own nodes are printed and cannot be
// identified by the indentation.
func (f frame) linePrefix() string {
	if f.branch || f.spawned {
		return f.label
	}
	return ""
}

// crewID returns the id of the spawned agent to which a path belongs, or "" if
// there is none.
func crewID(path string) string {
	for id := range strings.SplitSeq(path, "/") {
		if team.AgentOf(id) != "" {
			return id
		}
	}
	return ""
}

// who returns a spawned agent's id, with its purpose in a few words.
func (n *Narrator) who(id string) string {
	return team.AgentOf(id) + " (" + n.withPurpose(id, id) + ")"
}

// withPurpose adds the purpose of the agent to a name in brackets, as far as it
// is known.
func (n *Narrator) withPurpose(name, id string) string {
	if text := n.purposes[id]; text != "" {
		return name + ": " + text
	}
	return name
}

// labels is how many characters of a purpose each line of an agent shows.
const labels = 40

// label returns the start of each line about a path.
func (n *Narrator) label(name, path string) string {
	id := crewID(path)
	if text := n.purposes[id]; text != "" {
		name += ": " + wording.CutText(text, labels, "...")
	}
	return "[" + name + "] "
}

// countUsage adds up the cost of spawned agents.
func (n *Narrator) countUsage(e graph.Event) {
	b, ok := e.Body.(graph.ValueEmitted)
	if !ok {
		return
	}
	c := n.agentTallies[crewID(e.Path)]
	if c == nil {
		return
	}
	if v, ok := b.Value.(agent.ReplyDone); ok {
		c.calls, c.tokens = c.calls+1, c.tokens+v.Usage.Input+v.Usage.Output
	}
}

// narrateTeam prints an event of a team and reports whether the event is one.
func (n *Narrator) narrateTeam(f frame, e graph.Event, v any) bool {
	f.label = ""
	switch v := v.(type) {
	case team.AgentStarted:
		verb := "started"
		n.purposes[v.ID] = v.Purpose
		if n.agentTallies[v.ID] != nil {
			return true // it continues after an answer, which is not reported
		}
		if v.Resumed {
			verb = "continues"
		}
		if v.Parent != team.Lead {
			verb += ", spawned by " + v.Parent
		}
		if v.Task != "" {
			verb += ", for task " + v.Task
		}
		n.agentTallies[v.ID] = &agentTally{startedAt: n.watch.elapsedAt(e.Time)}
		n.printLine(f.indent, "%s %s", n.who(v.ID), verb)
	case team.AgentEnded:
		n.printLine(f.indent, "%s %s%s", n.who(v.ID), v.Status, n.describeCost(e, v))
		delete(n.agentTallies, v.ID)
		delete(n.purposes, v.ID)
	case team.AgentQueued:
		if _, told := n.purposes[v.ID]; told { // in an earlier drive
			return true
		}
		n.purposes[v.ID] = v.Purpose
		n.printLine(f.indent, "%s waits for a place", n.who(v.ID))
	case team.TaskWaiting:
		n.printLine(f.indent, "task %s waits for a place: %s (%s)", v.ID, v.Subject, v.Agent)
	default:
		return false
	}
	return true
}

// describeCost returns what an agent has used, and why it failed.
func (n *Narrator) describeCost(e graph.Event, v team.AgentEnded) string {
	text := ""
	if c := n.agentTallies[v.ID]; c != nil {
		calls := max(c.calls, v.Spent.Calls)
		tokens := max(c.tokens, v.Spent.Usage.Input+v.Spent.Usage.Output)
		text = fmt.Sprintf(" in %s (%s, %d tokens)", formatElapsed(n.watch.elapsedAt(e.Time)-c.startedAt), formatCount(calls, "model call"), tokens)
	}
	if v.Error != "" {
		text += ": " + wording.CutText(v.Error, mostArgs, "...")
	}
	return text
}

func formatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
