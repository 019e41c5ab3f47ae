package flow

import (
	"context"
	"errors"
	"maps"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// newRoster returns a team without a lead and without graphs. It is used to tell
// its agents about each other.
func newRoster(a *Agent) *team.Config {
	t := &team.Config{Agents: map[string]team.Member{}, Escalate: a.escalates(), Depth: a.host.Depth}
	for name, child := range a.spawnSet.agents {
		t.Agents[name] = team.Member{Description: agentDescription(child)}
	}
	for name, err := range a.spawnSet.faults {
		t.Agents[name] = team.Member{Fault: err}
	}
	return t
}

// escalates reports whether the agents of its team ask the agent that has spawned them,
// and not the person.
func (a *Agent) escalates() bool {
	return a.host.Headless || a.asks || a.Config != nil && !a.member && a.Config.Team.Escalate
}

func agentDescription(a *Agent) string {
	if a.Config != nil {
		return a.Config.Description
	}
	return a.File.Description
}

// compileTeam returns the team that an agent will lead. If another agent cannot be
// compiled, it cannot be spawned.
func (b *builder) compileTeam(a *Agent) *team.Config {
	shared := b.teams[a.spawnSet]
	if shared == nil {
		shared = newRoster(a)
		b.teams[a.spawnSet] = shared
		for name, child := range a.spawnSet.agents {
			m, err := b.compileMember(shared, child)
			if err != nil {
				m = team.Member{Fault: spec.Errorf("Agent '%s' failed: %w", name, err)}
			}
			shared.Agents[name] = m
		}
	}
	t := *shared
	t.Name = a.Name
	return &t
}

// compileMember returns an agent in the form of package team.
func (b *builder) compileMember(t *team.Config, a *Agent) (team.Member, error) {
	m := team.Member{
		Description: agentDescription(a), Open: a.prepareSpawn, Plain: true,
		Input:   func(prompt string) []graph.Write { return a.initialWrites(prompt, nil) },
		Output:  func(child graph.Child) string { return newOutcome(child.Value).Output },
		Explain: a.Explain,
	}
	if err := a.checkRunnable(); err != nil {
		return m, err
	}
	if a.Config == nil {
		g, err := b.compileAgent(a)
		m.Graph = g
		return m, err
	}
	c := newConversation(a, t)
	m.Agent, m.Shape, m.Spawn = c.loopConfig(), c.wrapTurn, c.spawnRule()
	m.Patience = escalationPatience(a)
	return m.WithGraph(a.Name, t.Escalate)
}

// escalationPatience returns how long the agent waits for an answer of the agent that
// spawned it; 0 means the default.
func escalationPatience(a *Agent) time.Duration {
	if a.Config == nil {
		return 0
	}
	return max(1, a.Config.Team.EscalationTimeout.Duration())
}

// spawnRule returns what the agent may spawn; nil: nothing.
func (c *conversation) spawnRule() *team.Spawn {
	if c.team == nil || c.hasNoTools() || !c.agent.canSpawn() {
		return nil
	}
	t := c.agent.Config.Team
	s := &team.Spawn{Max: orNone(t.MaxConcurrent), Depth: orNone(t.MaxDepth), Threshold: orNone(t.SummaryThreshold)}
	if t.Spawnable != nil {
		s.Only = append([]string{}, *t.Spawnable...)
	}
	if t.SummaryModel != "" {
		id := c.agent.modelID(t.SummaryModel)
		s.Summary = agent.Budget{Price: c.agent.modelFacts(id).Price}.MeterModel(&namedModel{cache: c.models, id: id})
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

// buildTeam returns a turn of an agent under which others are spawned.
func (b *builder) buildTeam(c *conversation) (graph.Def, error) {
	c.team = b.compileTeam(c.agent)
	lead := c.loopConfig()
	c.team.Lead = team.Member{Agent: lead, Spawn: c.spawnRule(), Plain: true, Shape: adaptLeadLoop}
	def, err := c.team.Def()
	def.Timeout = lead.Budget.Time
	return def, err
}

// buildNodeTeam returns a turn of an llm node under which others are spawned.
func (b *builder) buildNodeTeam(a *Agent, lead agent.Config) (graph.Def, error) {
	t := b.compileTeam(a)
	t.Lead = team.Member{Agent: lead, Spawn: &team.Spawn{Depth: maxSpawnDepth(a)}, Plain: true, Shape: adaptLeadLoop}
	def, err := t.Def()
	def.Timeout = lead.Budget.Time
	return def, err
}

// adaptLeadLoop changes the loop of a lead: its system prompt is created before the
// loop, and its timeout is that of the team.
func adaptLeadLoop(d *graph.Def) {
	d.Keys = append(d.Keys, systemKey)
	d.Timeout = 0
}

// prepareSpawn opens the knowledge bases of a spawned agent in this process, and
// builds missing ones without questions.
func (a *Agent) prepareSpawn(ctx context.Context) error {
	if len(a.knowledgeBases()) == 0 && len(a.children) == 0 {
		return nil
	}
	o := a.spawnBases
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := maps.Clone(o.done)
	err := a.prepareBases(ctx, now)
	if err == nil && a.Config != nil && a.bases[ownBase] == nil {
		err = spec.Errorf("its documents have no knowledge base, and raddle does not ask how to build one for a spawned agent. Set `embedding_model` (`keyword` needs no model: it searches by words alone), or build it with `raddle rag build`.")
	}
	if err == nil {
		o.done = now
		return nil
	}
	for opened := range now {
		if !o.done[opened] {
			err = errors.Join(err, errors.Join(closeOwnBases(opened)...))
		}
	}
	return err
}
