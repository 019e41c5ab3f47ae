package team

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Config is a team: an agent that is talked to, and those that can be spawned.
type Config struct {
	Name   string            // of the graph; empty: "team"
	Lead   Member            // the agent that is talked to
	Agents map[string]Member // the others by name, which has no '/', '#' or '['

	// Escalate has the user__* tools of spawned agents ask the agent that has
	// spawned them, where no person is there to be asked: see Member.Patience.
	Escalate bool
}

// A Member is an agent of a team.
type Member struct {
	Agent       agent.Config  // its Budget is its own; from the lead's spend all others, too
	Graph       *Graph        // in the place of Agent, for one that is no loop of a model and its tools; not for the lead
	Description string        // what the agent is for, told to those that may spawn it
	Spawn       *Spawn        // it may spawn others; nil: it may not
	Patience    time.Duration // how long it waits for a reply to an escalation; 0: five minutes
	Plain       bool          // its system prompt says nothing of the team
}

// A Graph is an agent that is a graph of its own. Whatever agents are inside of it
// cannot spawn others, nor be written to.
type Graph struct {
	Graph  *graph.Graph
	Input  func(prompt string) []graph.Write // its first writes; nil: those of agent.Turn
	Output func(graph.Child) string          // what it says in the end; nil: all that its models have said, which needs agent.Messages. Pure
}

// Spawn says what an agent may spawn. The zero value is a good choice.
type Spawn struct {
	Max       int       // agents of its own that run at once; 0: 4
	Depth     int       // how deep the agents that it spawns may be, with the lead at 0; 0: 3
	Only      []string  // the agents that it may spawn; nil: all
	Summary   llm.Model // sums up long outputs; nil: its own model
	Threshold int       // bytes from which on an output is summed up; 0: 4000
	Reminders int       // how often in a turn it is told of agents that still run, before they are cancelled; 0: 3
}

// Node is the name of the only node of a team's graph.
const Node = "team"

const (
	defaultMax       = 4
	defaultDepth     = 3
	defaultThreshold = 4000
	defaultPatience  = 5 * time.Minute
	defaultReminders = 3
)

func (m Member) patience() time.Duration { return cmp.Or(m.Patience, defaultPatience) }

// Compile makes the team's graph. It works on agent.Keys, like the graph of an
// agent.Config: a turn begins with agent.Turn or agent.Next.
func (c Config) Compile() (*graph.Graph, error) {
	d, err := c.Def()
	if err != nil {
		return nil, err
	}
	return graph.Compile(d)
}

// Def is the team as plain data, to be changed before it is compiled.
func (c Config) Def() (graph.Def, error) {
	c.Agents = maps.Clone(c.Agents)
	children := map[string]graph.Sub{}
	var faults []error
	add := func(name string, m Member, inherit bool) {
		g, err := c.member(name, m)
		if err != nil {
			faults = append(faults, fmt.Errorf("team %s: agent %s: %w", c.Name, name, err))
		}
		children[name] = graph.Sub{Graph: g, Inherit: inherit}
	}
	add(lead, c.Lead, true)
	for _, name := range sortedKeys(c.Agents) {
		if name == "" || name == lead || strings.ContainsAny(name, "/#[") {
			faults = append(faults, fmt.Errorf("team %s: an agent cannot be named %q: it is not empty, not %s, and has no '/', '#' or '['", c.Name, name, lead))
			continue
		}
		add(name, c.Agents[name], false)
	}
	if faults != nil {
		return graph.Def{}, errors.Join(faults...)
	}
	return graph.Def{Name: cmp.Or(c.Name, "team"), Keys: agent.Keys(), Start: []string{Node},
		Nodes: []graph.Node{{Name: Node, Kind: "team", Run: c.run, Children: children}},
		Edges: []graph.Edge{{From: []string{Node}, To: []string{graph.End}}}}, nil
}

// member compiles the graph of one agent.
func (c *Config) member(name string, m Member) (*graph.Graph, error) {
	switch {
	case m.Graph != nil && (name == lead || m.Spawn != nil || m.Graph.Graph == nil):
		return nil, errors.New("a Member.Graph has a Graph of its own, is not the lead, and spawns nobody")
	case m.Graph != nil:
		return m.Graph.Graph, nil
	}
	a := m.Agent
	a.Name = cmp.Or(a.Name, name)
	if c.Escalate && name != lead {
		a.Tools = userTools(a.Tools, m)
	}
	if c.Escalate && m.Spawn != nil {
		a.AroundTools = append([]agent.ToolMiddleware{notice}, a.AroundTools...)
	}
	a.Tools = slices.Concat(a.Tools, tools(m.Spawn != nil))
	if !m.Plain {
		a.System = c.system(m)
	}
	d, err := a.Def()
	if err != nil {
		return nil, err
	}
	if m.Spawn != nil {
		remind(&d, cmp.Or(m.Spawn.Reminders, defaultReminders))
	}
	return graph.Compile(d)
}

// system adds what the team's tools need to the system prompt.
func (c *Config) system(m Member) func(graph.State) (string, error) {
	text := mailText
	if m.Spawn != nil {
		text = spawnText + c.catalogue(m.Spawn) + "\n\n" + mailText
	}
	return func(s graph.State) (string, error) {
		base := m.Agent.Request.System
		if m.Agent.System != nil {
			var err error
			if base, err = m.Agent.System(s); err != nil {
				return "", err
			}
		}
		if base = strings.TrimRight(base, "\n"); base != "" {
			base += "\n\n"
		}
		return base + text, nil
	}
}

// catalogue lists the agents that can be spawned.
func (c *Config) catalogue(s *Spawn) string {
	var b strings.Builder
	names := s.Only
	if names == nil {
		names = sortedKeys(c.Agents)
	}
	for _, name := range names {
		b.WriteString("\n- " + name)
		if m := c.Agents[name]; m.Description != "" {
			b.WriteString(": " + m.Description)
		}
	}
	return b.String()
}

// budget is the lead's, from which all spend.
func (c *Config) budget() agent.Budget {
	b := c.Lead.Agent.Budget
	b.Of = cmp.Or(b.Of, c.Lead.Agent.Name, c.Name, lead)
	return b
}

// known is the agents that can be spawned.
func (c *Config) known() map[string]bool {
	known := map[string]bool{}
	for name := range c.Agents {
		known[name] = true
	}
	return known
}

// rules is what the agents may spawn, with every field set. The lead's name in a
// state is empty.
func (c *Config) rules() map[string]Spawn {
	rules := map[string]Spawn{}
	add := func(name string, m Member) {
		if m.Spawn == nil {
			return
		}
		r := *m.Spawn
		r.Max, r.Depth, r.Threshold = cmp.Or(r.Max, defaultMax), cmp.Or(r.Depth, defaultDepth), cmp.Or(r.Threshold, defaultThreshold)
		if r.Summary == nil {
			r.Summary = m.Agent.Model
		}
		if r.Summary != nil {
			r.Summary = m.Agent.Budget.Charged(r.Summary)
		}
		rules[name] = r
	}
	add("", c.Lead)
	for name, m := range c.Agents {
		add(name, m)
	}
	return rules
}

const spawnText = `## Agents of your own

You can start agents that work while you go on.
- agent__spawn starts one and gives its id at once. Start all that can work at the same time before you wait for the first.
- agent__collect waits for one and gives its output. agent__check looks without waiting, agent__list shows all, agent__cancel stops one.
- Work in stages goes into a queue: agent__task_create with blocked_by, an agent and a prompt starts each task when those before it are completed.
- An agent may need a decision: agent__collect then returns pending_escalations. Answer each with agent__reply_escalation at once; the agent stands still until then.
- Tell an agent everything it needs: it sees nothing of this conversation.
- Collect or cancel every agent before you give your final answer.

The agents are:`

const mailText = `## Messages

- agent__send_message writes to an agent that you have started, to one that works beside you, or to "parent", who has started you.
- agent__check_inbox takes what others have written to you. Look before you finish.
- Tell the others what you find out and they need to know.`
