package team

import (
	"cmp"
	"context"
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
	Depth  int               // how deep the lead is, where its context says no more: see At

	// Escalate has the user__* tools of spawned agents ask the agent that has
	// spawned them, where no person is there to be asked: see Member.Patience.
	Escalate bool
}

// A Member is an agent of a team. It is a loop of a model and its tools, or, but for
// the lead, a graph of its own.
type Member struct {
	Agent agent.Config     // its Budget is its own; from the lead's spend all others, too
	Graph *graph.Graph     // in the place of Agent, with the tools of a team that it brings itself
	Shape func(*graph.Def) // changes the graph of Agent before it is compiled; nil: as it is
	Fault error            // why it cannot be spawned: who tries is told. nil: it can

	// These are not called for the lead. Each may be nil.
	Open    func(ctx context.Context) error   // before it runs in a process, for what it needs there; what fails is its failure
	Input   func(prompt string) []graph.Write // its first writes; nil: those of agent.Turn
	Output  func(graph.Child) string          // what it says in the end; nil: all that its models have said, which needs agent.Messages. Pure
	Explain func(error) error                 // its failure in other words

	Description string        // what the agent is for, told to those that may spawn it
	Spawn       *Spawn        // it may spawn others; nil: it may not
	Patience    time.Duration // how long it waits in one drive for a reply to an escalation; 0: five minutes
	Plain       bool          // nothing of the team is added to its tools and its system prompt: see Tools
}

// Spawn says what an agent may spawn. The zero value is a good choice.
type Spawn struct {
	Max       int       // agents of its own that run at once, as it was when the turn began; 0: 4, below: none
	Depth     int       // how deep the agents that it spawns may be, with a lead that nothing runs at 0; 0: 3, below: none
	Only      []string  // the agents that it may spawn; nil: all
	Summary   llm.Model // sums up long outputs; nil: its own model
	Threshold int       // characters from which on an output is summed up; 0: 4000, below: every output is
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
	add := func(name, kind string, m Member) {
		g, err := c.member(name, m, kind == lead)
		if err != nil {
			faults = append(faults, fmt.Errorf("team %s: agent %s: %w", c.Name, name, err))
		}
		children[kind] = graph.Sub{Graph: g, Inherit: kind == lead, Apart: kind != lead}
	}
	add(lead, lead, c.Lead)
	for _, name := range sortedKeys(c.Agents) {
		switch m := c.Agents[name]; {
		case name == "" || strings.ContainsAny(name, "/#["):
			faults = append(faults, fmt.Errorf("team %s: an agent cannot be named %q: a name is not empty, and has no '/', '#' or '['", c.Name, name))
		case m.Fault == nil:
			add(name, kindOf(name), m)
		}
	}
	if faults != nil {
		return graph.Def{}, errors.Join(faults...)
	}
	return graph.Def{Name: cmp.Or(c.Name, "team"), Keys: agent.Keys(), Start: []string{Node},
		Nodes: []graph.Node{{Name: Node, Kind: "team", Run: c.run, Children: children}},
		Edges: []graph.Edge{{From: []string{Node}, To: []string{graph.End}}}}, nil
}

// member compiles the graph of one agent.
func (c *Config) member(name string, m Member, leads bool) (*graph.Graph, error) {
	switch {
	case m.Graph != nil && leads:
		return nil, errors.New("the lead has no Graph of its own")
	case m.Graph != nil:
		return m.Graph, nil
	}
	if !m.Plain {
		m.Agent.Tools, m.Agent.System = slices.Concat(m.Agent.Tools, Tools(m.Spawn != nil)), c.system(m)
	}
	if c.Escalate && !leads {
		m.Agent.Tools = Escalating(m.Agent.Tools, m.Patience)
	}
	return m.compile(name, c.Escalate)
}

// Compiled is a Plain agent with its Graph made, for teams that have it in common:
// each would make one of its own. escalate is Config.Escalate of all of them.
func (m Member) Compiled(name string, escalate bool) (Member, error) {
	if m.Graph != nil || !m.Plain {
		return m, fmt.Errorf("agent %s: only a Plain Member without a Graph can be compiled alone", name)
	}
	if escalate {
		m.Agent.Tools = Escalating(m.Agent.Tools, m.Patience)
	}
	g, err := m.compile(name, escalate)
	m.Graph = g
	return m, err
}

func (m Member) compile(name string, escalate bool) (*graph.Graph, error) {
	a := m.Agent
	a.Name = cmp.Or(a.Name, name)
	if escalate && m.Spawn != nil {
		a.AroundTools = append([]agent.ToolMiddleware{notice}, a.AroundTools...)
	}
	d, err := a.Def()
	if err != nil {
		return nil, err
	}
	if m.Spawn != nil {
		remind(&d, cmp.Or(m.Spawn.Reminders, defaultReminders))
	}
	if m.Shape != nil {
		m.Shape(&d)
	}
	return graph.Compile(d)
}

// system adds what the team's tools need to the system prompt.
func (c *Config) system(m Member) func(graph.State) (string, error) {
	text := MailInstructions
	if m.Spawn != nil {
		text = SpawnInstructions + "\n\n" + c.Catalogue(*m.Spawn) + "\n\n" + MailInstructions
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

// Catalogue lists the agents that can be spawned under a rule, for a system prompt.
// It is empty where there are none.
func (c *Config) Catalogue(s Spawn) string {
	var b strings.Builder
	for _, a := range c.available(s) {
		b.WriteString("\n- " + a.Name)
		if a.Description != "" {
			b.WriteString(": " + a.Description)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "The agents are:" + b.String()
}

// budget is the lead's, from which all spend.
func (c *Config) budget() agent.Budget {
	b := c.Lead.Agent.Budget
	b.Of = cmp.Or(b.Of, c.Lead.Agent.Name, c.Name, lead)
	return b
}

// An offered is an agent that can be spawned.
type offered struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// available lists the agents that a rule lets spawn.
func (c *Config) available(s Spawn) (list []offered) {
	for _, name := range allowed(c.faults(), s) {
		list = append(list, offered{name, strings.Join(strings.Fields(c.Agents[name].Description), " ")})
	}
	return list
}

// faults is the agents that there are, each with why it cannot be spawned.
func (c *Config) faults() map[string]string {
	faults := map[string]string{}
	for name, m := range c.Agents {
		if faults[name] = ""; m.Fault != nil {
			faults[name] = cmp.Or(m.Fault.Error(), "it cannot be loaded")
		}
	}
	return faults
}

// of is an agent by the name that it has in a state, where the lead's is empty.
func (c *Config) of(name string) Member {
	if name == "" {
		return c.Lead
	}
	return c.Agents[name]
}

// rules is what the agents may spawn, with every field set, by the names of a state.
func (c *Config) rules() map[string]Spawn {
	rules := map[string]Spawn{}
	add := func(name string, m Member) {
		if m.Spawn == nil {
			return
		}
		r := *m.Spawn
		r.Max, r.Depth = max(0, cmp.Or(r.Max, defaultMax)), max(0, cmp.Or(r.Depth, defaultDepth))
		r.Threshold = max(0, cmp.Or(r.Threshold, defaultThreshold))
		if r.Summary == nil {
			r.Summary = m.Agent.Model
		}
		if r.Summary != nil {
			r.Summary = m.Agent.Retry.Model(m.Agent.Budget.Charged(r.Summary), false)
		}
		rules[name] = r
	}
	add("", c.Lead)
	for name, m := range c.Agents {
		add(name, m)
	}
	return rules
}

// SpawnInstructions is what the system prompt says of the tools of an agent that may
// spawn others.
const SpawnInstructions = `## Agents of your own

You can start agents that work while you go on.
- agent__spawn starts one and gives its id at once. Start all that can work at the same time before you wait for the first.
- agent__collect waits for one and gives its output. With several ids it waits for all of them, with any: true for the first that finishes. agent__check looks without waiting, agent__list shows all, agent__cancel stops one.
- Work in stages goes into a queue: agent__task_create with blocked_by, an agent and a prompt starts each task when those before it are completed.
- An agent may need a decision: agent__collect then returns pending_escalations. Answer each with agent__reply_escalation at once; the agent stands still until then.
- Tell an agent everything it needs: it sees nothing of this conversation.
- Collect or cancel every agent before you give your final answer.`

// MailInstructions is what the system prompt says of the tools that every agent of a
// team has.
const MailInstructions = `## Messages

- agent__send_message writes to an agent that you have started, to one that works beside you, or to "parent", who has started you.
- agent__check_inbox takes what others have written to you, with wait_seconds it waits for a message. Look before you finish.
- Tell the others what you find out and they need to know.`
