package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A supervisor runs the agents of a team in one drive.
type supervisor struct {
	*log
	team     *Config
	before   graph.State    // the state at the start of the turn
	work     sync.WaitGroup // the running agents
	halt     context.CancelFunc
	childCtx context.Context // of all agents

	runningAgents map[string]*runningAgent // guarded by mu
	// the lead's turn was interrupted: only the lead runs, until it has ended; guarded by mu
	interrupted bool
	relaunched  bool  // the agents that an earlier drive left running are launched; guarded by mu
	failed      error // of the lead, or of the journal; guarded by mu
	// the shared budget is used up: an agent that calls a model or waits for others stops; guarded by mu
	broke  error
	result graph.State // of the lead, when it has ended

	prompted map[string]promptRecord // by escalation; guarded by mu
	stuck    map[string]bool         // tasks that a reminder has named, by agent and task; guarded by mu
}

// A runningAgent is an agent that was launched in this drive.
type runningAgent struct {
	blocked bool // it waits for a person or is paused: it makes no progress in this drive
	cancel  context.CancelFunc
	called  chan struct{} // closed when its call has returned
	spent   agent.Spend   // its cost, valid when called is closed
}

// An agentHandle is an agent's place in its team. The agent's tools find it in their
// context.
type agentHandle struct {
	*supervisor
	id string
}

type agentHandleKey struct{}

func handleOf(ctx context.Context) (agentHandle, bool) {
	h, ok := ctx.Value(agentHandleKey{}).(agentHandle)
	return h, ok
}

type depthKey struct{}

// Depth returns the number of agents above the agent that a context belongs to.
// The contexts of the agents of a team contain it; WithDepth sets it for others.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

// WithDepth returns a context for an agent that has depth agents above it. A team that
// runs in it continues the count.
func WithDepth(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// runTeam is the node. It returns when no agent is running any more.
func (c *Config) runTeam(ctx context.Context, s graph.State) (graph.Update, error) {
	st := newState(c.memberFaults(), c.spawnRules())
	st.agents[lead].depth = max(c.Depth, Depth(ctx))
	l, fresh, err := openLog(ctx, st)
	if err != nil {
		return graph.Update{}, err
	}
	sup := &supervisor{log: l, team: c, before: s, runningAgents: map[string]*runningAgent{}, prompted: map[string]promptRecord{}, stuck: map[string]bool{}}
	sup.childCtx, sup.halt = context.WithCancel(c.leadBudget().Share(ctx, graph.TaskPath(ctx), agent.Spent.Get(s)))
	defer sup.halt()
	if err := sup.dropEndedFrames(fresh); err != nil {
		return graph.Update{}, err
	}
	sup.mu.Lock()
	sup.interrupted = agent.IsInterrupted(ctx)
	sup.startAgent(*sup.state.agents[lead])
	sup.startPending()
	sup.relaunched = true
	sup.mu.Unlock()
	run, release := agent.Interruptible(ctx)
	defer context.AfterFunc(run, func() { sup.stopMembers(run) })()
	sup.work.Wait()
	release()
	sup.mu.Lock()
	defer sup.mu.Unlock()
	switch {
	case sup.failed != nil:
		return graph.Update{}, sup.failed
	case sup.broke != nil && sup.state.agents[lead].status == running:
		return graph.Update{}, sup.broke
	case sup.runningAgents[lead].blocked:
		return graph.Update{}, graph.ErrWaiting // or it is paused: the engine knows which
	}
	return sup.leadUpdate(s), nil
}

// dropEndedFrames removes the frames of agents that have ended. A team that has no log,
// after a fork or an edit, starts from scratch.
func (sup *supervisor) dropEndedFrames(fresh bool) error {
	names, err := graph.ChildNames(sup.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m := sup.state.agents[name]
		if fresh || name != lead && (m == nil || m.status != running) { // the lead's messages are only in its frame
			if err := graph.DropChild(sup.ctx, name); err != nil {
				return err
			}
		}
	}
	if fresh {
		_, err = sup.addEntry(entry{Op: opBegin, Places: sup.state.concurrencyLimits()})
	}
	return err
}

// stopMembers stops all agents but the lead if the lead's turn was interrupted. The end of the lead
// drops them.
func (sup *supervisor) stopMembers(run context.Context) {
	if context.Cause(run) != agent.ErrInterrupted {
		return
	}
	sup.mu.Lock()
	defer sup.mu.Unlock()
	sup.interrupted = true
	for id, p := range sup.runningAgents {
		if id != lead {
			p.cancel()
		}
	}
}

// startPending starts the agents that have a place and are not running yet. The
// caller must hold mu.
func (sup *supervisor) startPending() {
	if sup.interrupted {
		return
	}
	for _, m := range sup.state.newlyStarted {
		if m.status == running && sup.state.agents[m.id] == m { // otherwise an earlier drive has ended it
			sup.startAgent(*m)
		}
	}
	sup.state.newlyStarted = nil
	sup.emitWaiting()
}

// startAgent starts an agent. m is a copy of its current state. The caller must hold
// mu.
func (sup *supervisor) startAgent(m member) {
	ctx, cancel := context.WithCancel(sup.childCtx)
	p := &runningAgent{cancel: cancel, called: make(chan struct{})}
	sup.runningAgents[m.id] = p
	sup.emitStarted(&m)
	if m.id != lead {
		ctx = agent.WithMailbox(agent.WithoutInterrupt(ctx), nil)
	}
	sup.work.Go(func() {
		child, err := sup.callAgent(WithDepth(context.WithValue(ctx, agentHandleKey{}, agentHandle{sup, m.id}), m.depth), &m)
		cancel()
		p.spent = spendOf(child.State)
		close(p.called)
		sup.handleReturn(m.id, child, err)
	})
}

// callAgent runs an agent until it ends or stops: the lead on the conversation of its turn, all
// others with their prompt.
func (sup *supervisor) callAgent(ctx context.Context, m *member) (graph.Child, error) {
	if m.id == lead {
		return graph.CallChild(ctx, lead, lead, sup.overrideWrites(lead)...)
	}
	a, known := sup.team.Agents[m.name]
	switch {
	case !known: // it existed when it was spawned or when its task was created
		return graph.Child{}, fmt.Errorf("agent '%s' no longer exists", m.name)
	case a.Fault != nil:
		return graph.Child{}, a.Fault
	}
	if a.Open != nil {
		if err := a.Open(ctx); err != nil {
			return graph.Child{}, err
		}
	}
	set, err := a.inputWrites(m.prompt)
	if err != nil {
		return graph.Child{}, err
	}
	if a.Graph == nil {
		set = append(set, sup.overrideWrites(kindOf(m.name))...)
	}
	return graph.CallChild(ctx, m.id, kindOf(m.name), set...)
}

// overrideWrites returns what the turn changes in an agent's configuration, by the
// path of the team's node and the agent's name. The lead also has the overrides
// of the turn itself.
func (sup *supervisor) overrideWrites(kind string) []graph.Write {
	all := agent.Overrides.Get(sup.before)
	below := slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(path string) bool { return path == Node || strings.HasPrefix(path, Node+"/") })
	if len(all) == 0 || kind == lead && !below {
		return nil
	}
	own := []graph.Write{agent.OverridesFor(sup.before, Node+"/"+kind)}
	if kind == lead {
		own = append([]graph.Write{agent.Overrides.Set(all)}, own...)
	}
	return own
}

// handleReturn handles the end of an agent's call. An agent that waits for a person, is paused, or was
// interrupted together with the run has not ended: a later drive continues it.
func (sup *supervisor) handleReturn(id string, child graph.Child, err error) {
	sup.mu.Lock()
	defer sup.mu.Unlock()
	m := sup.state.agents[id]
	switch {
	case errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused):
		if p := sup.runningAgents[id]; p != nil { // otherwise it was cancelled in the meantime
			p.blocked = true
			sup.notifyChange()
		}
	case sup.childCtx.Err() != nil && err != nil: // the run is interrupted and will continue from here
		sup.stopAll(context.Cause(sup.childCtx))
	case err != nil && agent.IsBudgetExhausted(sup.childCtx, err): // of all agents: no agent has failed, and each continues with a larger budget
		sup.broke = cmp.Or(sup.broke, err)
		sup.notifyChange()
	case err != nil && id != lead && sup.interrupted: // the end of the lead drops it
		if p := sup.runningAgents[id]; p != nil {
			p.blocked = true
			sup.notifyChange()
		}
	case err != nil && id == lead:
		sup.stopAll(err)
	case id == lead:
		sup.result = child.State
		sup.recordEnd(id, child, nil)
	default:
		if m != nil && m.status == running { // otherwise it was cancelled
			sup.recordEnd(id, child, err)
		}
	}
}

// recordEnd records how an agent has ended. The caller must hold mu.
func (sup *supervisor) recordEnd(id string, child graph.Child, err error) {
	e := entry{Op: opEnd, ID: id, Key: "end " + id}
	m := sup.state.agents[id]
	done := AgentEnded{ID: id, Agent: m.name, Status: completed}
	if id != lead {
		e.Spent = sup.runningAgents[id].spent
		done.Spent = e.Spent
	}
	if err == nil && id != lead {
		e.Text, err = sup.team.Agents[m.name].outputText(child)
	}
	if err != nil {
		err = sup.team.Agents[m.name].explainError(err)
		e.Error, done.Status, done.Error = err.Error(), failed, err.Error()
	}
	stuck := sup.state.queues[id].stuckTasks(false)
	out, err := sup.addEntryLocked(e)
	if err != nil {
		sup.stopAll(err)
		return
	}
	sup.dropAgents(out.ended)
	if len(stuck) > 0 {
		of := ""
		if id != lead {
			of = " of " + id
		}
		graph.Emit(sup.ctx, agent.Warning{Text: "In the queue" + of + ", " + describeStuck(stuck) + "."})
	}
	if id != lead {
		graph.Emit(sup.ctx, done)
		sup.discardAgent(id)
	}
	sup.startPending()
}

// stopAll ends all agents because of a failure. The caller must hold mu.
func (sup *supervisor) stopAll(err error) {
	sup.failed = cmp.Or(sup.failed, err)
	sup.halt()
}

// dropAgents ends agents that were cancelled. The caller must hold mu, which is
// released while it waits for them.
func (sup *supervisor) dropAgents(ids []string) {
	for _, id := range ids { // cancel all of them before waiting for the first
		if p := sup.runningAgents[id]; p != nil {
			p.cancel()
		}
	}
	for _, id := range ids {
		p := sup.runningAgents[id]
		if p == nil { // it never had a place
			graph.Emit(sup.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled})
			continue
		}
		sup.discardAgent(id)
		graph.Emit(sup.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled, Spent: p.spent})
		if p.spent == (agent.Spend{}) {
			continue
		}
		if _, err := sup.addEntryLocked(entry{Op: opSpent, ID: id, Spent: p.spent}); err != nil {
			sup.stopAll(err)
		}
	}
}

// discardAgent removes an agent whose end is recorded. The caller must hold mu,
// which is released while it waits for the agent.
func (sup *supervisor) discardAgent(id string) {
	p := sup.runningAgents[id]
	sup.mu.Unlock()
	if p != nil { // it may not have started: DropChild would not find it
		p.cancel()
		<-p.called
	}
	err := graph.DropChild(sup.ctx, id)
	sup.mu.Lock()
	if delete(sup.runningAgents, id); err != nil {
		sup.stopAll(err)
	}
}

// changeState makes a change for a tool, and does what follows from the change.
func (sup *supervisor) changeState(e entry) (outcome, error) {
	sup.mu.Lock()
	defer sup.mu.Unlock()
	out, err := sup.addEntryLocked(e)
	if err != nil {
		return out, err
	}
	sup.dropAgents(out.ended)
	sup.startPending()
	return out, nil
}

// inputWrites returns the first writes of an agent.
func (m Member) inputWrites(prompt string) (set []graph.Write, err error) {
	if m.Input == nil {
		return agent.Turn(prompt), nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in Member.Input: %v", p)
		}
	}()
	return m.Input(prompt), nil
}

// outputText returns the output of an agent.
func (m Member) outputText(child graph.Child) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the output of the agent: %v", p)
		}
	}()
	if m.Output != nil {
		return m.Output(child), nil
	}
	return assistantText(child.State), nil
}

// explainError returns a failure in the words of the agent.
func (m Member) explainError(err error) (explained error) {
	if m.Explain == nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			explained = err
		}
	}()
	return m.Explain(err)
}

// spendOf returns the cost of an agent. It is zero if the graph does not keep the
// key Spent.
func spendOf(s graph.State) agent.Spend {
	v, _ := s.Value(agent.Spent.Name())
	cost, _ := v.(agent.Spend)
	return cost
}

// assistantText returns the texts of all replies of models in a conversation.
func assistantText(s graph.State) string {
	var texts []string
	for _, m := range agent.History(s) {
		if text := m.Text(); m.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// leadUpdate returns what the lead has added to the conversation, and the cost of
// all agents.
func (sup *supervisor) leadUpdate(s graph.State) graph.Update {
	r := sup.result
	before := agent.Messages.Get(s)
	u := graph.Put(agent.Messages.Set(agent.Messages.Get(r)[len(before):]),
		agent.Spent.Reset(sumSpend(agent.Spent.Get(r), sup.state.spent)),
		agent.Grants.Set(agent.Grants.Get(r)[len(agent.Grants.Get(s)):]),
		agent.Continued.Set(agent.Continued.Get(r)), agent.Views.Set(agent.Views.Get(r)),
		agent.UserInput.Reset(agent.UserInput.Get(r)), agent.OneShots.Reset(agent.OneShots.Get(r)))
	if list, kept := agent.Todo.Lookup(r); kept {
		u.Writes = append(u.Writes, agent.Todo.Set(list))
	}
	return u
}

func sumSpend(a, b agent.Spend) agent.Spend {
	return agent.Spend{Calls: a.Calls + b.Calls, ToolCalls: a.ToolCalls + b.ToolCalls, Usage: a.Usage.Add(b.Usage),
		Money: a.Money + b.Money, Unpriced: a.Unpriced + b.Unpriced}
}

func joinIDs(ids []string) string { return strings.Join(ids, ", ") }
