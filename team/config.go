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

// Config is a team: a lead, which receives the user's messages, and the agents
// that can be spawned.
type Config struct {
	Name   string            // of the graph; empty: "team"
	Lead   Member            // the agent that receives the user's messages
	Agents map[string]Member // the other agents by name; a name must not contain '/', '#' or '['
	Depth  int               // the depth of the lead if its context does not say it: see WithDepth

	// Escalate makes the user__* tools of spawned agents ask the agent that
	// spawned them, if there is no person to ask: see Member.Patience.
	Escalate bool
}

// A Member is an agent of a team: a loop of a model and its tools or, except
// for the lead, its own graph.
type Member struct {
	Agent agent.Config     // its Budget applies to this agent only; the lead's Budget is shared by all agents
	Graph *graph.Graph     // used instead of Agent, with its own team tools
	Shape func(*graph.Def) // changes the graph of Agent before it is compiled; nil: no change
	Fault error            // why it cannot be spawned; an agent that tries gets this error. nil: it can be spawned

	// The following functions are not called for the lead. Each may be nil.

	// Open opens what the agent needs in this process, before it runs; an error is a failure of the agent.
	Open  func(ctx context.Context) error
	Input func(prompt string) []graph.Write // its first writes; nil: those of agent.Turn
	// Output returns its output; nil: all replies of its models, which requires agent.Messages. It is pure.
	Output  func(graph.Child) string
	Explain func(error) error // returns its failure in other words

	Description string        // the purpose of the agent, shown to the agents that may spawn it
	Spawn       *Spawn        // the agent may spawn others; nil: it may not
	Patience    time.Duration // how long it waits in one drive for a reply to an escalation; 0: five minutes
	Plain       bool          // nothing for the team is added to its tools and its system prompt: see Tools
}

// Spawn says what an agent may spawn. The zero value is a good choice.
type Spawn struct {
	Max int // its own agents that may run at once, as set when the turn started; 0: 4; negative: none
	// Depth is how deep the agents that it spawns may be, where a lead without agents above it has depth 0. 0: 3;
	// negative: none.
	Depth     int
	Only      []string  // the agents that it may spawn; nil: all
	Summary   llm.Model // summarizes long outputs; nil: the agent's own model
	Threshold int       // number of characters from which an output is summarized; 0: 4000; negative: every output
	Reminders int       // how often in a turn it is reminded of agents that still run, before they are cancelled; 0: 3
}

// Node is the name of the only node of a team's graph.
const Node = "team"

// LeadNode returns the path of a node of the lead's graph.
func LeadNode(name string) string { return Node + "/" + lead + "/" + name }

const (
	defaultMax       = 4
	defaultDepth     = 3
	defaultThreshold = 4000
	defaultPatience  = 5 * time.Minute
	defaultReminders = 3
)

// Compile returns the team's graph. The graph works on agent.Keys, like the
// graph of an agent.Config: start a turn with agent.Turn or agent.Next. Compile
// fails if the configuration is invalid.
func (c Config) Compile() (*graph.Graph, error) {
	d, err := c.Def()
	if err != nil {
		return nil, err
	}
	return graph.Compile(d)
}

// Def returns the team as plain data, which can be changed before it is
// compiled.
func (c Config) Def() (graph.Def, error) {
	c.Agents = maps.Clone(c.Agents)
	children := map[string]graph.ChildGraph{}
	var faults []error
	add := func(name, kind string, m Member) {
		g, err := c.compileMember(name, m, kind == lead)
		if err != nil {
			faults = append(faults, fmt.Errorf("team %s: agent %s: %w", c.Name, name, err))
		}
		children[kind] = graph.ChildGraph{Graph: g, Inherit: kind == lead, OutsideDigest: kind != lead}
	}
	add(lead, lead, c.Lead)
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		switch m := c.Agents[name]; {
		case name == "" || strings.ContainsAny(name, "/#["):
			faults = append(faults, fmt.Errorf("team %s: invalid agent name %q: a name must not be empty or contain '/', '#' or '['", c.Name, name))
		case m.Fault == nil:
			add(name, kindOf(name), m)
		}
	}
	if faults != nil {
		return graph.Def{}, errors.Join(faults...)
	}
	return graph.Def{Name: cmp.Or(c.Name, "team"), Keys: agent.Keys(), Start: []string{Node},
		Nodes: []graph.Node{{Name: Node, Kind: "team", Run: c.runTeam, Children: children}},
		Edges: []graph.Edge{{From: []string{Node}, To: []string{graph.End}}}}, nil
}

// compileMember compiles the graph of one agent.
func (c *Config) compileMember(name string, m Member, leads bool) (*graph.Graph, error) {
	switch {
	case m.Graph != nil && leads:
		return nil, errors.New("the lead has no Graph of its own")
	case m.Graph != nil:
		return m.Graph, nil
	}
	if !m.Plain {
		m.Agent.Tools, m.Agent.System = slices.Concat(m.Agent.Tools, Tools(m.Spawn != nil)), c.systemFunc(m)
	}
	if c.Escalate && !leads {
		m.Agent.Tools = WithEscalation(m.Agent.Tools, m.Patience)
	}
	return m.compileGraph(name, c.Escalate)
}

// WithGraph returns a Plain member with its Graph compiled, so that several
// teams can share it instead of compiling it again. escalate is Config.Escalate
// of these teams.
func (m Member) WithGraph(name string, escalate bool) (Member, error) {
	if m.Graph != nil || !m.Plain {
		return m, fmt.Errorf("agent %s: only a Plain Member without a Graph can be compiled alone", name)
	}
	if escalate {
		m.Agent.Tools = WithEscalation(m.Agent.Tools, m.Patience)
	}
	g, err := m.compileGraph(name, escalate)
	m.Graph = g
	return m, err
}

func (m Member) compileGraph(name string, escalate bool) (*graph.Graph, error) {
	a := m.Agent
	a.Name = cmp.Or(a.Name, name)
	if escalate && m.Spawn != nil {
		a.AroundTools = append([]agent.ToolMiddleware{noticeMiddleware}, a.AroundTools...)
	}
	d, err := a.Def()
	if err != nil {
		return nil, err
	}
	if m.Spawn != nil {
		addReminders(&d, cmp.Or(m.Spawn.Reminders, defaultReminders))
	}
	if m.Shape != nil {
		m.Shape(&d)
	}
	return graph.Compile(d)
}

// systemFunc returns a function that adds what the team's tools need to the system
// prompt.
func (c *Config) systemFunc(m Member) func(graph.State) (string, error) {
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

// Catalogue returns a list of the agents that can be spawned under a rule, for
// a system prompt. It is empty if there are none.
func (c *Config) Catalogue(s Spawn) string {
	var b strings.Builder
	for _, a := range c.spawnableAgents(s) {
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

// leadBudget returns the lead's budget, which all agents share.
func (c *Config) leadBudget() agent.Budget {
	b := c.Lead.Agent.Budget
	b.Of = cmp.Or(b.Of, c.Lead.Agent.Name, c.Name, lead)
	return b
}

// A spawnableAgent is an agent that can be spawned.
type spawnableAgent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// spawnableAgents returns the agents that can be spawned under a rule.
func (c *Config) spawnableAgents(s Spawn) (list []spawnableAgent) {
	for _, name := range spawnableNames(c.memberFaults(), s) {
		list = append(list, spawnableAgent{name, strings.Join(strings.Fields(c.Agents[name].Description), " ")})
	}
	return list
}

// memberFaults returns, for each agent, why it cannot be spawned; "" if it can.
func (c *Config) memberFaults() map[string]string {
	faults := map[string]string{}
	for name, m := range c.Agents {
		if faults[name] = ""; m.Fault != nil {
			faults[name] = cmp.Or(m.Fault.Error(), "it cannot be loaded")
		}
	}
	return faults
}

// memberByName returns an agent by the name that it has in a state. The lead's name is
// empty there.
func (c *Config) memberByName(name string) Member {
	if name == "" {
		return c.Lead
	}
	return c.Agents[name]
}

// spawnRules returns the spawn rules of the agents with all defaults set, by the
// names of a state.
func (c *Config) spawnRules() map[string]Spawn {
	rules := map[string]Spawn{}
	add := func(name string, m Member) {
		if m.Spawn == nil {
			return
		}
		r := *m.Spawn
		r.Max = max(0, cmp.Or(r.Max, defaultMax))
		r.Depth = max(0, cmp.Or(r.Depth, defaultDepth))
		r.Threshold = max(0, cmp.Or(r.Threshold, defaultThreshold))
		r.Summary = cmp.Or(r.Summary, m.Agent.Model)
		if r.Summary != nil {
			r.Summary = m.Agent.Retry.WrapModel(m.Agent.Budget.MeterModel(r.Summary), false)
		}
		rules[name] = r
	}
	add("", c.Lead)
	for name, m := range c.Agents {
		add(name, m)
	}
	return rules
}

// SpawnInstructions is the part of the system prompt about the tools of an
// agent that may spawn others.
const SpawnInstructions = `## Agents of your own

You can start agents that work while you continue.
- agent__spawn starts one and gives its id at once. Start all that can work at the same time before you wait for the first.
- agent__collect waits for one and gives its output. With several ids it waits for all of them, with any: true for the first that finishes. agent__check looks without waiting, agent__list shows all, agent__cancel stops one.
- Work in stages goes into a queue: agent__task_create with blocked_by, an agent and a prompt starts each task when those before it are completed.
- An agent may need a decision: agent__collect then returns pending_escalations. Answer each with agent__reply_escalation at once; the agent waits until then.
- Tell an agent everything it needs: it sees nothing of this conversation.
- Collect or cancel every agent before you give your final answer.`

// MailInstructions is the part of the system prompt about the tools that every
// agent of a team has.
const MailInstructions = `## Messages

- agent__send_message writes to an agent that you have started, to one that works at the same time, or to "parent", who has started you.
- agent__check_inbox takes what others have written to you, with wait_seconds it waits for a message. Look before you finish.
- Tell the others what you find out and they need to know.`

// maxPurpose is the number of characters of a prompt or a subject that describe
// the purpose of an agent.
const maxPurpose = 60

// firstWords returns the beginning of a text in one line. It is cut at the end
// of a word if that keeps at least half of the allowed length.
func firstWords(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= maxPurpose {
		return string(runes)
	}
	short := string(runes[:maxPurpose-3])
	if at := strings.LastIndexByte(short, ' '); at >= len(short)/2 {
		short = short[:at]
	}
	return short + "..."
}
