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
	before graph.State    // what the turn began with
	work   sync.WaitGroup // the agents that run
	halt   context.CancelFunc
	kids   context.Context // of all agents

	posts  map[string]*post // guarded by mu
	begun  bool             // the agents that an earlier drive has left are launched; guarded by mu
	failed error            // of the lead, or of the journal; guarded by mu
	broke  error            // the budget of all is used up: who asks a model stops, and so does who waits for others; guarded by mu
	result graph.State      // of the lead, when it has ended

	prompted map[string]prompting // by escalation; guarded by mu
	stuck    map[string]bool      // tasks that a reminder has named, by agent and task; guarded by mu
}

// A post is an agent that was launched in this drive.
type post struct {
	still  bool // it waits for a person or is paused: nothing comes of it in this drive
	cancel context.CancelFunc
	called chan struct{} // closed when its call has returned
	spent  agent.Spend   // what it has cost, when that is closed
}

// A seat is an agent's place in its team: its tools find it in their context.
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

// Depth is how many agents are above the one that a context belongs to. The agents
// of a team know it; At tells it to others.
func Depth(ctx context.Context) int {
	depth, _ := ctx.Value(depthKey{}).(int)
	return depth
}

// At is a context for an agent that has a number of others above it: a team that
// works in it counts on from there.
func At(ctx context.Context, depth int) context.Context {
	return context.WithValue(ctx, depthKey{}, depth)
}

// run is the node: it returns when no agent runs any more.
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
		return graph.Update{}, graph.ErrWaiting // or paused: the engine knows
	}
	return x.update(s), nil
}

// tidy drops the frames of agents that have ended. A team whose log is gone, after
// a fork or an edit, begins anew.
func (x *supervisor) tidy(fresh bool) error {
	names, err := graph.Named(x.ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m := x.state.agents[name]
		if fresh || name != lead && (m == nil || m.status != running) { // what the lead has said is in its frame alone
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

// launch starts the agents that have been begun and not been started; the caller
// holds mu.
func (x *supervisor) launch() {
	for _, m := range x.state.begun {
		if m.status == running && x.state.agents[m.id] == m { // else an earlier drive has ended it
			x.start(*m)
		}
	}
	x.state.begun = nil
	x.emitWaiting()
}

// start starts an agent, which is given as it is now; the caller holds mu.
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
	case !known: // it was there when it was spawned, or its task was made
		return graph.Child{}, fmt.Errorf("there is no agent '%s' any more", m.name)
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

// overrides is what the turn changes of an agent's configuration, by the path of the
// team's node and the agent's name. The lead has the turn's own too.
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

// returned is what follows when an agent has stopped.
func (x *supervisor) returned(id string, child graph.Child, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.state.agents[id]
	switch {
	case errors.Is(err, graph.ErrWaiting) || errors.Is(err, graph.ErrPaused):
		if p := x.posts[id]; p != nil { // else it was cancelled meanwhile
			p.still = true
			x.tell()
		}
	case x.kids.Err() != nil && err != nil: // the run is cut off; it goes on from here
		x.stop(context.Cause(x.kids))
	case err != nil && agent.UsedUp(x.kids, err): // of all: no agent has failed, and each goes on when there is more
		x.broke = cmp.Or(x.broke, err)
		x.tell()
	case err != nil && id == lead:
		x.stop(err)
	case id == lead:
		x.result = child.State
		x.ended(id, child, nil)
	default:
		if m != nil && m.status == running { // else it was cancelled
			x.ended(id, child, err)
		}
	}
}

// ended records how an agent has ended; the caller holds mu.
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

// stop ends all agents because of a failure; the caller holds mu.
func (x *supervisor) stop(err error) {
	if x.failed == nil {
		x.failed = err
	}
	x.halt()
}

// drop ends agents that were cancelled; the caller holds mu, which is free while
// they are waited for.
func (x *supervisor) drop(ids []string) {
	for _, id := range ids { // all of them before the first is waited for
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

// discard removes an agent whose end is recorded. The caller must hold mu, which is
// free while the agent is waited for.
func (x *supervisor) discard(id string) {
	p := x.posts[id]
	x.mu.Unlock()
	if p != nil { // it may not have begun: Drop would not find it
		p.cancel()
		<-p.called
	}
	err := graph.Drop(x.ctx, id)
	x.mu.Lock()
	if delete(x.posts, id); err != nil {
		x.stop(err)
	}
}

// change makes a change for a tool, and does what follows from it.
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

// input is what an agent begins with.
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

// output is what an agent has said.
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

// explain puts a failure into the words of the agent.
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

// spent is what an agent has cost. A graph may not know.
func spent(s graph.State) agent.Spend {
	v, _ := s.Value(agent.Spent.Name())
	cost, _ := v.(agent.Spend)
	return cost
}

// spoken is all that models have said in a conversation.
func spoken(s graph.State) string {
	var said []string
	for _, m := range agent.History(s) {
		if text := m.Text(); m.Role == llm.RoleAssistant && strings.TrimSpace(text) != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// update is what the lead has added to the conversation, and what all have cost.
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
