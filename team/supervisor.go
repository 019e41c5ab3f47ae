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
	team   *Config
	before graph.State    // the state at the start of the turn
	work   sync.WaitGroup // the running agents
	halt   context.CancelFunc
	kids   context.Context // of all agents

	posts  map[string]*post // guarded by mu
	begun  bool             // the agents that an earlier drive left running are launched; guarded by mu
	failed error            // of the lead, or of the journal; guarded by mu
	broke  error            // the shared budget is used up: an agent that calls a model or waits for others stops; guarded by mu
	result graph.State      // of the lead, when it has ended

	prompted map[string]prompting // by escalation; guarded by mu
	stuck    map[string]bool      // tasks that a reminder has named, by agent and task; guarded by mu
}

// A post is an agent that was launched in this drive.
type post struct {
	still  bool // it waits for a person or is paused: it makes no progress in this drive
	cancel context.CancelFunc
	called chan struct{} // closed when its call has returned
	spent  agent.Spend   // its cost, valid when called is closed
}

// A seat is an agent's place in its team. The agent's tools find it in their
// context.
type seat struct {
	*supervisor
	id string
}

type seatKey struct{}

func seatOf(ctx context.Context) (seat, bool) {
	s, ok := ctx.Value(seatKey{}).(seat)
	return s, ok
}

type depthKey struct{}

// Depth returns the number of agents above the agent that a context belongs to.
// The contexts of the agents of a team contain it; At sets it for others.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

// At returns a context for an agent that has depth agents above it. A team that
// runs in it continues the count.
func At(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// run is the node. It returns when no agent is running any more.
func (c *Config) run(ctx context.Context, s graph.State) (graph.Update, error) {
	st := newState(c.faults(), c.rules())
	st.agents[lead].depth = max(c.Depth, Depth(ctx))
	l, fresh, err := open(ctx, st)
	if err != nil {
		return graph.Update{}, err
	}
	x := &supervisor{log: l, team: c, before: s, posts: map[string]*post{}, prompted: map[string]prompting{}, stuck: map[string]bool{}}
	x.kids, x.halt = context.WithCancel(c.budget().Share(ctx, graph.TaskPath(ctx), agent.Spent.Get(s)))
	defer x.halt()
	if err := x.tidy(fresh); err != nil {
		return graph.Update{}, err
	}
	x.mu.Lock()
	x.start(*x.state.agents[lead])
	x.launch()
	x.begun = true
	x.mu.Unlock()
	x.work.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.failed != nil:
		return graph.Update{}, x.failed
	case x.broke != nil && x.state.agents[lead].status == running:
		return graph.Update{}, x.broke
	case x.posts[lead].still:
		return graph.Update{}, graph.ErrWaiting // or it is paused: the engine knows which
	}
	return x.update(s), nil
}

// tidy removes the frames of agents that have ended. A team that has no log,
// after a fork or an edit, starts from scratch.
func (x *supervisor) tidy(fresh bool) error {
	names, err := graph.Named(x.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m := x.state.agents[name]
		if fresh || name != lead && (m == nil || m.status != running) { // the lead's messages are only in its frame
			if err := graph.Drop(x.ctx, name); err != nil {
				return err
			}
		}
	}
	if fresh {
		_, err = x.add(entry{Op: opBegin, Places: x.state.offers()})
	}
	return err
}

// launch starts the agents that have a place and are not running yet. The
// caller must hold mu.
func (x *supervisor) launch() {
	for _, m := range x.state.begun {
		if m.status == running && x.state.agents[m.id] == m { // otherwise an earlier drive has ended it
			x.start(*m)
		}
	}
	x.state.begun = nil
	x.emitWaiting()
}

// start starts an agent. m is a copy of its current state. The caller must hold
// mu.
func (x *supervisor) start(m member) {
	ctx, cancel := context.WithCancel(x.kids)
	p := &post{cancel: cancel, called: make(chan struct{})}
	x.posts[m.id] = p
	x.started(&m)
	x.work.Go(func() {
		child, err := x.call(At(context.WithValue(ctx, seatKey{}, seat{x, m.id}), m.depth), &m)
		cancel()
		p.spent = spent(child.State)
		close(p.called)
		x.returned(m.id, child, err)
	})
}

// call runs an agent.
func (x *supervisor) call(ctx context.Context, m *member) (graph.Child, error) {
	if m.id == lead {
		return graph.CallNamed(ctx, lead, lead, x.overrides(lead)...)
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
	set, err := a.input(m.prompt)
	if err != nil {
		return graph.Child{}, err
	}
	if a.Graph == nil {
		set = append(set, x.overrides(kindOf(m.name))...)
	}
	return graph.CallNamed(ctx, m.id, kindOf(m.name), set...)
}

// overrides returns what the turn changes in an agent's configuration, by the
// path of the team's node and the agent's name. The lead also has the overrides
// of the turn itself.
func (x *supervisor) overrides(kind string) []graph.Write {
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

// returned handles the end of an agent's call.
func (x *supervisor) returned(id string, child graph.Child, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.state.agents[id]
	switch {
	case errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused):
		if p := x.posts[id]; p != nil { // otherwise it was cancelled in the meantime
			p.still = true
			x.tell()
		}
	case x.kids.Err() != nil && err != nil: // the run is interrupted and will continue from here
		x.stop(context.Cause(x.kids))
	case err != nil && agent.UsedUp(x.kids, err): // of all agents: no agent has failed, and each continues with a larger budget
		x.broke = cmp.Or(x.broke, err)
		x.tell()
	case err != nil && id == lead:
		x.stop(err)
	case id == lead:
		x.result = child.State
		x.ended(id, child, nil)
	default:
		if m != nil && m.status == running { // otherwise it was cancelled
			x.ended(id, child, err)
		}
	}
}

// ended records how an agent has ended. The caller must hold mu.
func (x *supervisor) ended(id string, child graph.Child, err error) {
	e := entry{Op: opEnd, ID: id, Key: "end " + id}
	m := x.state.agents[id]
	done := AgentEnded{ID: id, Agent: m.name, Status: completed}
	if id != lead {
		e.Spent = x.posts[id].spent
		done.Spent = e.Spent
	}
	if err == nil && id != lead {
		e.Text, err = x.team.Agents[m.name].output(child)
	}
	if err != nil {
		err = x.team.Agents[m.name].explain(err)
		e.Error, done.Status, done.Error = err.Error(), failed, err.Error()
	}
	stuck := x.state.queues[id].stuck(false)
	out, err := x.addLocked(e)
	if err != nil {
		x.stop(err)
		return
	}
	x.drop(out.ended)
	if len(stuck) > 0 {
		of := ""
		if id != lead {
			of = " of " + id
		}
		graph.Emit(x.ctx, agent.Warning{Text: "In the queue" + of + ", " + describeStuck(stuck) + "."})
	}
	if id != lead {
		graph.Emit(x.ctx, done)
		x.discard(id)
	}
	x.launch()
}

// stop ends all agents because of a failure. The caller must hold mu.
func (x *supervisor) stop(err error) {
	if x.failed == nil {
		x.failed = err
	}
	x.halt()
}

// drop ends agents that were cancelled. The caller must hold mu, which is
// released while drop waits for them.
func (x *supervisor) drop(ids []string) {
	for _, id := range ids { // cancel all of them before waiting for the first
		if p := x.posts[id]; p != nil {
			p.cancel()
		}
	}
	for _, id := range ids {
		p := x.posts[id]
		if p == nil { // it never had a place
			graph.Emit(x.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled})
			continue
		}
		x.discard(id)
		graph.Emit(x.ctx, AgentEnded{ID: id, Agent: AgentOf(id), Status: cancelled, Spent: p.spent})
		if p.spent == (agent.Spend{}) {
			continue
		}
		if _, err := x.addLocked(entry{Op: opSpent, ID: id, Spent: p.spent}); err != nil {
			x.stop(err)
		}
	}
}

// discard removes an agent whose end is recorded. The caller must hold mu,
// which is released while discard waits for the agent.
func (x *supervisor) discard(id string) {
	p := x.posts[id]
	x.mu.Unlock()
	if p != nil { // it may not have started: Drop would not find it
		p.cancel()
		<-p.called
	}
	err := graph.Drop(x.ctx, id)
	x.mu.Lock()
	if delete(x.posts, id); err != nil {
		x.stop(err)
	}
}

// change makes a change for a tool, and does what follows from the change.
func (x *supervisor) change(e entry) (outcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	out, err := x.addLocked(e)
	if err != nil {
		return out, err
	}
	x.drop(out.ended)
	x.launch()
	return out, nil
}

// input returns the first writes of an agent.
func (m Member) input(prompt string) (set []graph.Write, err error) {
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

// output returns the output of an agent.
func (m Member) output(child graph.Child) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the output of the agent: %v", p)
		}
	}()
	if m.Output != nil {
		return m.Output(child), nil
	}
	return spoken(child.State), nil
}

// explain returns a failure in the words of the agent.
func (m Member) explain(err error) (told error) {
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

// spent returns the cost of an agent. It is zero if the graph does not keep the
// key Spent.
func spent(s graph.State) agent.Spend {
	v, _ := s.Value(agent.Spent.Name())
	cost, _ := v.(agent.Spend)
	return cost
}

// spoken returns the texts of all replies of models in a conversation.
func spoken(s graph.State) string {
	var said []string
	for _, m := range agent.History(s) {
		if text := m.Text(); m.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// update returns what the lead has added to the conversation, and the cost of
// all agents.
func (x *supervisor) update(s graph.State) graph.Update {
	r := x.result
	before := agent.Messages.Get(s)
	u := graph.Put(agent.Messages.Set(agent.Messages.Get(r)[len(before):]),
		agent.Spent.Reset(total(agent.Spent.Get(r), x.state.spent)),
		agent.Grants.Set(agent.Grants.Get(r)[len(agent.Grants.Get(s)):]),
		agent.Continued.Set(agent.Continued.Get(r)), agent.Views.Set(agent.Views.Get(r)),
		agent.UserInput.Reset(agent.UserInput.Get(r)), agent.OneShots.Reset(agent.OneShots.Get(r)))
	if list, kept := agent.Todo.Lookup(r); kept {
		u.Writes = append(u.Writes, agent.Todo.Set(list))
	}
	return u
}

func total(a, b agent.Spend) agent.Spend {
	return agent.Spend{Calls: a.Calls + b.Calls, ToolCalls: a.ToolCalls + b.ToolCalls, Usage: a.Usage.Add(b.Usage),
		Money: a.Money + b.Money, Unpriced: a.Unpriced + b.Unpriced}
}

func joined(ids []string) string { return strings.Join(ids, ", ") }
