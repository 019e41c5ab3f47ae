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
	interrupted   bool                     // the lead's turn was interrupted: only the lead runs, until it has ended; guarded by mu
	relaunched    bool                     // the agents that an earlier drive left running are launched; guarded by mu
	failed        error                    // of the lead, or of the journal; guarded by mu
	broke         error                    // the shared budget is used up: an agent that calls a model or waits for others stops; guarded by mu
	result        graph.State              // of the lead, when it has ended

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
	s, ok := ctx.Value(agentHandleKey{}).(agentHandle)
	return s, ok
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
	x := &supervisor{log: l, team: c, before: s, runningAgents: map[string]*runningAgent{}, prompted: map[string]promptRecord{}, stuck: map[string]bool{}}
	x.childCtx, x.halt = context.WithCancel(c.leadBudget().Share(ctx, graph.TaskPath(ctx), agent.Spent.Get(s)))
	defer x.halt()
	if err := x.dropEndedFrames(fresh); err != nil {
		return graph.Update{}, err
	}
	x.mu.Lock()
	x.interrupted = agent.IsInterrupted(ctx)
	x.startAgent(*x.state.agents[lead])
	x.startPending()
	x.relaunched = true
	x.mu.Unlock()
	run, release := agent.Interruptible(ctx)
	defer context.AfterFunc(run, func() { x.stopMembers(run) })()
	x.work.Wait()
	release()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.failed != nil:
		return graph.Update{}, x.failed
	case x.broke != nil && x.state.agents[lead].status == running:
		return graph.Update{}, x.broke
	case x.runningAgents[lead].blocked:
		return graph.Update{}, graph.ErrWaiting // or it is paused: the engine knows which
	}
	return x.leadUpdate(s), nil
}

// dropEndedFrames removes the frames of agents that have ended. A team that has no log,
// after a fork or an edit, starts from scratch.
func (x *supervisor) dropEndedFrames(fresh bool) error {
	names, err := graph.ChildNames(x.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m := x.state.agents[name]
		if fresh || name != lead && (m == nil || m.status != running) { // the lead's messages are only in its frame
			if err := graph.DropChild(x.ctx, name); err != nil {
				return err
			}
		}
	}
	if fresh {
		_, err = x.addEntry(entry{Op: opBegin, Places: x.state.concurrencyLimits()})
	}
	return err
}

// stopMembers stops all agents but the lead if the lead's turn was interrupted. The end of the lead
// drops them.
func (x *supervisor) stopMembers(run context.Context) {
	if context.Cause(run) != agent.ErrInterrupted {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.interrupted = true
	for id, p := range x.runningAgents {
		if id != lead {
			p.cancel()
		}
	}
}

// startPending starts the agents that have a place and are not running yet. The
// caller must hold mu.
func (x *supervisor) startPending() {
	if x.interrupted {
		return
	}
	for _, m := range x.state.newlyStarted {
		if m.status == running && x.state.agents[m.id] == m { // otherwise an earlier drive has ended it
			x.startAgent(*m)
		}
	}
	x.state.newlyStarted = nil
	x.emitWaiting()
}

// startAgent starts an agent. m is a copy of its current state. The caller must hold
// mu.
func (x *supervisor) startAgent(m member) {
	ctx, cancel := context.WithCancel(x.childCtx)
	p := &runningAgent{cancel: cancel, called: make(chan struct{})}
	x.runningAgents[m.id] = p
	x.emitStarted(&m)
	if m.id != lead {
		ctx = agent.WithoutInterrupt(ctx)
	}
	x.work.Go(func() {
		child, err := x.callAgent(WithDepth(context.WithValue(ctx, agentHandleKey{}, agentHandle{x, m.id}), m.depth), &m)
		cancel()
		p.spent = spendOf(child.State)
		close(p.called)
		x.handleReturn(m.id, child, err)
	})
}

// callAgent runs an agent until it ends or stops: the lead on the conversation of its turn, all
// others with their prompt.
func (x *supervisor) callAgent(ctx context.Context, m *member) (graph.Child, error) {
	if m.id == lead {
		return graph.CallChild(ctx, lead, lead, x.overrideWrites(lead)...)
	}
	a, known := x.team.Agents[m.name]
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
		set = append(set, x.overrideWrites(kindOf(m.name))...)
	}
	return graph.CallChild(ctx, m.id, kindOf(m.name), set...)
}

// overrideWrites returns what the turn changes in an agent's configuration, by the
// path of the team's node and the agent's name. The lead also has the overrides
// of the turn itself.
func (x *supervisor) overrideWrites(kind string) []graph.Write {
	all := agent.Overrides.Get(x.before)
	below := slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(path string) bool { return path == Node || strings.HasPrefix(path, Node+"/") })
	if len(all) == 0 || kind == lead && !below {
		return nil
	}
	own := []graph.Write{agent.OverridesFor(x.before, Node+"/"+kind)}
	if kind == lead {
		own = append([]graph.Write{agent.Overrides.Set(all)}, own...)
	}
	return own
}

// handleReturn handles the end of an agent's call. An agent that waits for a person, is paused, or was
// interrupted together with the run has not ended: a later drive continues it.
func (x *supervisor) handleReturn(id string, child graph.Child, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.state.agents[id]
	switch {
	case errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused):
		if p := x.runningAgents[id]; p != nil { // otherwise it was cancelled in the meantime
			p.blocked = true
			x.notifyChange()
		}
	case x.childCtx.Err() != nil && err != nil: // the run is interrupted and will continue from here
		x.stopAll(context.Cause(x.childCtx))
	case err != nil && agent.IsBudgetExhausted(x.childCtx, err): // of all agents: no agent has failed, and each continues with a larger budget
		x.broke = cmp.Or(x.broke, err)
		x.notifyChange()
	case err != nil && id != lead && x.interrupted: // the end of the lead drops it
		if p := x.runningAgents[id]; p != nil {
			p.blocked = true
			x.notifyChange()
		}
	case err != nil && id == lead:
		x.stopAll(err)
	case id == lead:
		x.result = child.State
		x.recordEnd(id, child, nil)
	default:
		if m != nil && m.status == running { // otherwise it was cancelled
			x.recordEnd(id, child, err)
		}
	}
}

// recordEnd records how an agent has ended. The caller must hold mu.
func (x *supervisor) recordEnd(id string, child graph.Child, err error) {
	e := entry{Op: opEnd, ID: id, Key: "end " + id}
	m := x.state.agents[id]
	done := AgentEnded{ID: id, Agent: m.name, Status: completed}
	if id != lead {
		e.Spent = x.runningAgents[id].spent
		done.Spent = e.Spent
	}
	if err == nil && id != lead {
		e.Text, err = x.team.Agents[m.name].outputText(child)
	}
	if err != nil {
		err = x.team.Agents[m.name].explainError(err)
		e.Error, done.Status, done.Error = err.Error(), failed, err.Error()
	}
	stuck := x.state.queues[id].stuckTasks(false)
	out, err := x.addEntryLocked(e)
	if err != nil {
		x.stopAll(err)
		return
	}
	x.dropAgents(out.ended)
	if len(stuck) > 0 {
		of := ""
		if id != lead {
			of = " of " + id
		}
		graph.Emit(x.ctx, agent.Warning{Text: "In the queue" + of + ", " + describeStuck(stuck) + "."})
	}
	if id != lead {
		graph.Emit(x.ctx, done)
		x.discardAgent(id)
	}
	x.startPending()
}

// stopAll ends all agents because of a failure. The caller must hold mu.
func (x *supervisor) stopAll(err error) {
	x.failed = cmp.Or(x.failed, err)
	x.halt()
}

// dropAgents ends agents that were cancelled. The caller must hold mu, which is
// released while it waits for them.
func (x *supervisor) dropAgents(ids []string) {
	for _, id := range ids { // cancel all of them before waiting for the first
		if p := x.runningAgents[id]; p != nil {
			p.cancel()
		}
	}
	for _, id := range ids {
		p := x.runningAgents[id]
		if p == nil { // it never had a place
			graph.Emit(x.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled})
			continue
		}
		x.discardAgent(id)
		graph.Emit(x.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled, Spent: p.spent})
		if p.spent == (agent.Spend{}) {
			continue
		}
		if _, err := x.addEntryLocked(entry{Op: opSpent, ID: id, Spent: p.spent}); err != nil {
			x.stopAll(err)
		}
	}
}

// discardAgent removes an agent whose end is recorded. The caller must hold mu,
// which is released while it waits for the agent.
func (x *supervisor) discardAgent(id string) {
	p := x.runningAgents[id]
	x.mu.Unlock()
	if p != nil { // it may not have started: DropChild would not find it
		p.cancel()
		<-p.called
	}
	err := graph.DropChild(x.ctx, id)
	x.mu.Lock()
	if delete(x.runningAgents, id); err != nil {
		x.stopAll(err)
	}
}

// changeState makes a change for a tool, and does what follows from the change.
func (x *supervisor) changeState(e entry) (outcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	out, err := x.addEntryLocked(e)
	if err != nil {
		return out, err
	}
	x.dropAgents(out.ended)
	x.startPending()
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
func (m Member) explainError(err error) (told error) {
	if m.Explain == nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			told = err
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
	var said []string
	for _, m := range agent.History(s) {
		if text := m.Text(); m.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// leadUpdate returns what the lead has added to the conversation, and the cost of
// all agents.
func (x *supervisor) leadUpdate(s graph.State) graph.Update {
	r := x.result
	before := agent.Messages.Get(s)
	u := graph.Put(agent.Messages.Set(agent.Messages.Get(r)[len(before):]),
		agent.Spent.Reset(sumSpend(agent.Spent.Get(r), x.state.spent)),
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
