package team

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// nodeRemind is the node after an agent's last reply: it checks for agents that
// still run.
const nodeRemind = "remind"

// reminded counts how often an agent was reminded of them.
var reminded = graph.Last[int]("reminded")

// addReminders adds a node that sends an agent a reminder when it ends its turn while
// its own agents still run. After most reminders they are cancelled.
func addReminders(d *graph.Def, most int) {
	for _, e := range d.Edges {
		for label, to := range e.Cases {
			if to == graph.End {
				e.Cases[label] = nodeRemind
			}
		}
	}
	d.Keys = append(d.Keys, reminded)
	d.Nodes = append(d.Nodes, graph.Node{Name: nodeRemind, Kind: "remind",
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return remindAgent(ctx, s, most) }})
	d.Edges = append(d.Edges, graph.Edge{From: []string{nodeRemind}, Cases: map[string]string{"reminded": agent.NodeThink, "over": graph.End},
		Pick: func(s graph.State) ([]string, error) {
			if said := agent.Messages.Get(s); len(said) > 0 && said[len(said)-1].By == nodeRemind {
				return []string{"reminded"}, nil
			}
			return []string{"over"}, nil
		}})
}

func remindAgent(ctx context.Context, s graph.State, most int) (graph.Update, error) {
	at, ok := handleOf(ctx)
	if !ok {
		return graph.Update{}, nil
	}
	at.mu.Lock()
	var ids []string
	for _, m := range at.state.childrenOf(at.id) {
		if m.status == running {
			ids = append(ids, m.id)
		}
	}
	open := at.state.pendingQuestions(at.id)
	count := reminded.Get(s)
	var stuck []stuckTask
	if count < most {
		stuck = at.newlyStuck()
	}
	at.mu.Unlock()
	if len(ids) == 0 && len(stuck) == 0 || count >= most { // running agents end with this agent, and no task starts after them
		return graph.Update{}, nil
	}
	return graph.Put(reminded.Set(count+1), agent.Messages.Set([]agent.Entry{{Message: llm.User(formatReminder(ids, open, stuck)), By: nodeRemind}})), nil
}

// formatReminder returns the text of the reminder.
func formatReminder(ids []string, open []*escalation, stuck []stuckTask) string {
	var b strings.Builder
	b.WriteString("[system reminder: ")
	if len(ids) > 0 {
		fmt.Fprintf(&b, "agents that you have started still run: %s]\nCollect each with agent__collect, or stop it with agent__cancel, before you end your turn.", joinIDs(ids))
	} else {
		b.WriteString("your queue holds tasks that cannot start]")
	}
	for _, x := range open {
		fmt.Fprintf(&b, "\n%s (%s) waits for your reply to %s: %s", x.From, x.Name, x.ID, x.Question)
	}
	if len(stuck) > 0 {
		fmt.Fprintf(&b, "\nIn your queue, %s. Create new tasks, do the work another way, or say in your answer what is missing.", describeStuck(stuck))
	}
	return b.String()
}
