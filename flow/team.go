package flow

import (
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// roster returns a team without a lead and without graphs. It is used to tell
// its agents about each other.
func (a *Agent) roster() *team.Config {
	t := &team.Config{Agents: map[string]team.Member{}, Escalate: a.escalates(), Depth: a.host.Depth}
	for name, child := range a.crew.agents {
		t.Agents[name] = team.Member{Description: child.description()}
	}
	for name, err := range a.crew.faults {
		t.Agents[name] = team.Member{Fault: err}
	}
	return t
}

// escalates reports whether the agents of its team ask the agent that has spawned them,
// and not the person.
func (a *Agent) escalates() bool {
	return a.host.Headless || a.asks || a.Config != nil && !a.member && a.Config.Team.Escalate
}

func (a *Agent) description() string {
	if a.Config != nil {
		return a.Config.Description
	}
	return a.File.Description
}

// team returns the team that an agent will lead. If another agent cannot be
// compiled, it cannot be spawned.
func (b *builder) team(a *Agent) *team.Config {
	shared := b.teams[a.crew]
	if shared == nil {
		shared = a.roster()
		b.teams[a.crew] = shared
		for name, child := range a.crew.agents {
			m, err := b.member(shared, child)
			if err != nil {
				m = team.Member{Fault: failf("Agent '%s' failed: %w", name, err)}
			}
			shared.Agents[name] = m
		}
	}
	t := *shared
	t.Name = a.Name
	return &t
}

// member returns an agent in the form of package team.
func (b *builder) member(t *team.Config, a *Agent) (team.Member, error) {
	m := team.Member{
		Description: a.description(), Open: a.start, Plain: true,
		Input:   a.initial,
		Output:  func(child graph.Child) string { return outcome(child.Value).Output },
		Explain: a.Explain,
	}
	if err := a.fit(); err != nil {
		return m, err
	}
	if a.Config == nil {
		g, err := b.agent(a)
		m.Graph = g
		return m, err
	}
	c := a.conversation(t)
	m.Agent, m.Shape, m.Spawn = c.loop(), c.shape, c.rule()
	m.Patience = a.patience()
	return m.Compiled(a.Name, t.Escalate)
}

// patience returns how long the agent waits for an answer of the agent that
// spawned it; 0 means the default.
func (a *Agent) patience() time.Duration {
	if a.Config == nil {
		return 0
	}
	return max(1, a.Config.Team.EscalationTimeout.Duration())
}

// rule returns what the agent may spawn; nil: nothing.
func (c *conversation) rule() *team.Spawn {
	if c.team == nil || c.toolless() || !c.agent.spawns() {
		return nil
	}
	t := c.agent.Config.Team
	s := &team.Spawn{Max: orNone(t.MaxConcurrent), Depth: orNone(t.MaxDepth), Threshold: orNone(t.SummaryThreshold)}
	if t.Spawnable != nil {
		s.Only = append([]string{}, *t.Spawnable...)
	}
	if t.SummaryModel != "" {
		id := c.agent.model(t.SummaryModel)
		s.Summary = agent.Budget{Price: c.agent.facts(id).Price}.Charged(&namedModel{cache: c.models, id: id})
	}
	return s
}

// orNone converts a setting in which zero means none to one in which zero means
// the default.
func orNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// led returns a turn of an agent under which others are spawned.
func (b *builder) led(c *conversation) (graph.Def, error) {
	c.team = b.team(c.agent)
	lead := c.loop()
	c.team.Lead = team.Member{Agent: lead, Spawn: c.rule(), Plain: true, Shape: asked}
	def, err := c.team.Def()
	def.Timeout = lead.Budget.Time
	return def, err
}

// under returns a turn of an llm node under which others are spawned.
func (b *builder) under(a *Agent, lead agent.Config) (graph.Def, error) {
	t := b.team(a)
	t.Lead = team.Member{Agent: lead, Spawn: &team.Spawn{Depth: a.deepest()}, Plain: true, Shape: asked}
	def, err := t.Def()
	def.Timeout = lead.Budget.Time
	return def, err
}

// asked changes the loop of a lead: its system prompt is created before the
// loop, and its timeout is that of the team.
func asked(d *graph.Def) {
	d.Keys = append(d.Keys, systemKey)
	d.Timeout = 0
}
