package team

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// The node behind an agent's last reply: it looks for agents that still run.
const nodeRemind = "remind"

// reminded counts how often an agent was told of them.
var reminded = graph.Last[int]("reminded")

// remind sends an agent on that ends its turn while agents of its own run. After
// most times they are cancelled.
func remind(d *graph.Def, most int) {
	d.Keys = append(d.Keys, reminded)
	d.Nodes = append(d.Nodes, graph.Node{Name: nodeRemind, Kind: "remind", Routes: []string{agent.NodeThink, graph.End},
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return left(ctx, s, most) }})
	for i := range d.Edges {
		for label, to := range d.Edges[i].Cases {
			if to == graph.End {
				d.Edges[i].Cases[label] = nodeRemind
			}
		}
	}
}

func left(ctx context.Context, s graph.State, most int) (graph.Update, error) {
	at, ok := seatOf(ctx)
	if !ok {
		return graph.Update{Goto: []string{graph.End}}, nil
	}
	at.mu.Lock()
	var ids []string
	for _, m := range at.state.children(at.id) {
		if m.status == running {
			ids = append(ids, m.id)
		}
	}
	open := at.state.pending(at.id)
	at.mu.Unlock()
	count := reminded.Get(s)
	switch {
	case len(ids) == 0:
		return graph.Update{Goto: []string{graph.End}}, nil
	case count < most:
		u := graph.Put(reminded.Set(count+1), agent.Messages.Set([]agent.Entry{{Message: llm.User(reminder(ids, open)), By: nodeRemind}}))
		u.Goto = []string{agent.NodeThink}
		return u, nil
	}
	for _, id := range ids {
		if _, err := at.change(entry{Op: opCancel, By: at.id, ID: id}); err != nil {
			return graph.Update{}, err
		}
	}
	return graph.Update{Goto: []string{graph.End}}, nil
}

// reminder is what the agent is told.
func reminder(ids []string, open []*escalation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[system reminder: agents that you have started still run: %s]\nCollect each with agent__collect, or stop it with agent__cancel, before you end your turn.", joined(ids))
	for _, x := range open {
		fmt.Fprintf(&b, "\n%s (%s) waits for your reply to %s: %s", x.From, x.Name, x.ID, x.Question)
	}
	return b.String()
}
