package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Act makes the calls of a reply. Its node takes the newest message of its
// model node that has calls, makes the calls that have no outcome yet, in
// order, and appends the outcomes. It takes one step for each call, or for each
// group of adjacent calls whose tools are Parallel, so that an outcome becomes
// part of the conversation as soon as possible. Then it follows its edges.
type Act struct {
	// Of is the model node whose calls this node makes. If empty, ToolsEdge
	// determines the node; without ToolsEdge the calls of the newest reply are
	// made. A graph in which several model nodes call tools at the same time
	// needs one Act for each of them.
	Of        string
	Tools     []tool.Tool
	Agents    []AgentTool                                    // further tools
	ListTools func(ctx context.Context) ([]tool.Tool, error) // further tools, requested in every step; nil: none
	Sources   Sources                                        // see Think.Sources
	Kits      Kits                                           // of further tools, which calls take up and put away
	Gate      Gate                                           // nil: every call may be made
	Hooks     FindHooks                                      // around calls; nil: none
	// Headless says that there is no person to ask: a call that needs consent is refused.
	Headless bool
	Calls    Calls
	Serial   bool             // no calls run at the same time, whatever their tools allow
	Budget   Budget           // its ToolCalls
	Around   []ToolMiddleware // the first outermost
	// Redact removes secrets from the text of results before they are recorded; nil: nothing is removed.
	Redact func(string) string
}

// Calls says how tool calls are made. The zero value is a good choice.
type Calls struct {
	Concurrency int           // calls at once; 0: no limit
	Timeout     time.Duration // of one attempt; 0: none
	// Repeats is how often in a row a call with the same result is made before it counts as a loop; 0: 2; negative: no
	// limit.
	Repeats int
	Retry   ToolRetry
	// InDoubt says what happens to a call that was interrupted before its
	// outcome was known, if its tool does not say so itself. If unset, a person
	// is asked; if there is no person to ask, the call is not repeated.
	InDoubt tool.Doubt
	// InDoubtForAll says it for the calls of all tools, whatever a tool or
	// InDoubt says; unset: it has no effect.
	InDoubtForAll tool.Doubt
}

// actStep is one step of an act node.
type actStep struct {
	act    *Act
	tools  map[string]tool.Tool
	past   []pastCall
	round  round
	todo   *TodoList
	events bool
	known  func(path string) *tool.SeenFile // see tool.Call.Seen

	mu        sync.Mutex      // guards the fields below
	seen      []tool.SeenFile // by the calls of this step
	grants    []string        // what a person allowed for the run
	newGrants []string        // grants added in this step
	newKits   map[string]Kit
	spent     Spend // by agents and models that calls used
}

// Node returns the tools node of a graph.
func (a Act) Node(name string) graph.Node {
	a.Tools = withAgents(a.Tools, a.Agents)
	return graph.Node{
		Name: name, Kind: "tools", Routes: []string{name}, Children: childGraphs(a.Agents), CheckAnswer: a.checkAnswer,
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return a.run(ctx, name, s) },
	}
}

// These errors say why an act node cannot run.
var (
	errNoMessages = errors.New("no messages in state")
	errNoCalls    = errors.New("no assistant message with tool calls found")
	errPassed     = errors.New("no assistant message with tool calls found before user message")
)

// run makes the calls of one step. The node runs again, in a step of its own, while calls of the reply
// have no outcome.
func (a *Act) run(ctx context.Context, name string, s graph.State) (graph.Update, error) {
	entries := Messages.Get(s)
	of := cmp.Or(a.Of, servedBy(ctx))
	r := newestRound(entries, of)
	switch {
	case len(entries) == 0:
		return graph.Update{}, errNoMessages
	case len(r.pending) == 0 && endsWithSent(entries): // on the way back to the model
		return graph.Update{}, nil
	case len(r.calls) == 0 && r.passed:
		return graph.Update{}, errPassed
	case len(r.calls) == 0:
		return graph.Update{}, errNoCalls
	case len(r.pending) == 0:
		return graph.Update{}, nil
	case r.passed: // a new turn has started
		return graph.Put(appendCutOff(ctx, name, &r)), nil
	case of == "":
		if o := r.otherPendingNode(entries); o != "" {
			return graph.Update{}, fmt.Errorf("the model nodes %s and %s both have calls to make, and it is not set which of them %s belongs to: give each its own tools node with Act.Of, or connect them with ToolsEdge", o, r.by, name)
		}
	}
	st, err := a.newStep(ctx, s, r)
	if err != nil {
		return graph.Update{}, err
	}
	results, err := st.runCalls(withoutMailbox(ctx), s)
	if err != nil && (ctx.Err() == nil || len(results) == 0) {
		return graph.Update{}, err
	}
	entries = []Entry{stampEntry(ctx, Entry{Message: llm.Message{Role: llm.RoleTool, Parts: results}, By: name, For: r.by, Seen: st.listSeen()})}
	switch {
	case err != nil:
	case IsInterrupted(ctx):
		entries = append(entries, interruptedEntry(ctx, r.by, ""))
		graph.Emit(ctx, TurnInterrupted{})
	case len(results) == len(r.pending):
		taken, err := takeMessages(ctx, Messages.Get(s), false)
		if err != nil {
			return graph.Update{}, err
		}
		entries = append(entries, taken...)
	}
	u := graph.Put(Messages.Set(entries), Spent.Set(st.spent.add(Spend{ToolCalls: len(results)})))
	if len(st.newGrants) > 0 {
		u.Writes = append(u.Writes, Grants.Set(st.newGrants))
	}
	if len(st.newKits) > 0 {
		u.Writes = append(u.Writes, InUse.Set(st.newKits))
	}
	if st.todo.changed {
		u.Writes = append(u.Writes, Todo.Set(*st.todo))
	}
	if len(results) < len(r.pending) {
		u.Goto = []string{name}
	}
	return u, nil
}

// runCalls makes the next calls of the round and returns their outcomes. If the turn is interrupted, these
// are the outcomes of all calls.
func (st *actStep) runCalls(ctx context.Context, s graph.State) ([]llm.Part, error) {
	if IsInterrupted(ctx) {
		return st.interruptCalls(ctx, st.round.pending)
	}
	a := st.act
	batch := st.nextBatch(st.round.pending)
	if err := a.Budget.allowsTools(Spent.Get(s), len(batch)); err != nil {
		return nil, err
	}
	if len(a.Agents) > 0 {
		ctx = a.Budget.Share(ctx, graph.TaskPath(ctx), Spent.Get(s))
	}
	results, err := st.runBatch(ctx, batch)
	if err != nil || !IsInterrupted(ctx) {
		return results, err
	}
	rest, err := st.interruptCalls(ctx, st.round.pending[len(batch):])
	return append(results, rest...), err
}

// newStep collects what the calls of a step need: the tools, the earlier calls, the todo list and what
// a person allowed.
func (a *Act) newStep(ctx context.Context, s graph.State, r round) (*actStep, error) {
	st := &actStep{act: a, round: r, events: graph.IsEmitEnabled(ctx)}
	st.past = pastCalls(Messages.Get(s), &r, max(st.repeatLimit(), shownCalls))
	st.grants = slices.Clone(Grants.Get(s))
	todo := Todo.Get(s).clone()
	st.todo = &todo
	run, release := Interruptible(ctx)
	defer release()
	tools, err := listTools(run, a.Tools, a.Kits.joinTools(s, a.Kits.joinSources(a.Sources, s).listTools(Settled.Get(s), a.ListTools)))
	if err != nil && IsInterrupted(ctx) {
		tools = a.Tools
		err = nil // no call is made
	}
	if err != nil {
		return nil, err
	}
	tools = overrideOf(s, r.by).filterTools(tools)
	st.known = a.knownFiles(Messages.Get(s), tools)
	st.tools = make(map[string]tool.Tool, len(tools))
	for _, t := range tools {
		st.tools[t.Name] = t
	}
	return st, nil
}

// listTools returns the tools of a node. If two tools have the same name, the first
// one counts.
func listTools(ctx context.Context, tools []tool.Tool, more func(context.Context) ([]tool.Tool, error)) ([]tool.Tool, error) {
	if more == nil {
		return tools, nil
	}
	further, err := more(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	list := slices.Clone(tools)
	for _, t := range further {
		if !slices.ContainsFunc(list, func(o tool.Tool) bool { return o.Name == t.Name }) {
			list = append(list, t)
		}
	}
	return list, nil
}

// findTool returns the tool of a call.
func (st *actStep) findTool(name string) (tool.Tool, bool) {
	for _, n := range []string{name, aliases[name], trimToolName(name)} {
		if t, ok := st.tools[n]; ok {
			return t, true
		}
	}
	return tool.Tool{}, false
}

// trimToolName removes what models add to the name of a tool: a namespace from
// their training, a marker of their reply format, and the extension of the
// tool's file.
func trimToolName(name string) string {
	name, _, _ = strings.Cut(name, "<|")
	name = strings.TrimPrefix(strings.TrimSpace(name), "functions.")
	switch ending := path.Ext(name); ending {
	case ".sh", ".py", ".ts":
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// nextBatch returns the calls of the next step: the first pending call and, if
// their tools are all Parallel, the calls that follow it directly.
func (st *actStep) nextBatch(pending []llm.ToolCall) []llm.ToolCall {
	parallel := func(c llm.ToolCall) bool {
		t, ok := st.findTool(c.Name)
		return !ok || t.Parallel
	}
	n := 1
	for !st.act.Serial && parallel(pending[0]) && n < len(pending) && parallel(pending[n]) {
		n++
	}
	return pending[:n]
}

// runBatch makes the calls of a batch and waits for each of them. If the error is
// nil, there is a result for each call; otherwise the results that exist are
// returned.
func (st *actStep) runBatch(ctx context.Context, batch []llm.ToolCall) ([]llm.Part, error) {
	if len(batch) == 1 {
		r, err := st.resolveCall(ctx, batch[0])
		if err != nil {
			return nil, err
		}
		return []llm.Part{r.MessagePart(batch[0])}, nil
	}
	results := make([]llm.Part, len(batch))
	errs := make([]error, len(batch))
	var slots chan struct{}
	if n := st.act.Calls.Concurrency; n > 0 {
		slots = make(chan struct{}, n)
	}
	var wg sync.WaitGroup
	for i, c := range batch {
		if slots != nil {
			slots <- struct{}{}
		}
		wg.Go(func() {
			r, err := st.resolveCall(ctx, c)
			if errs[i] = err; err == nil {
				results[i] = r.MessagePart(c)
			}
			if slots != nil {
				<-slots
			}
		})
	}
	wg.Wait()
	results = slices.DeleteFunc(results, func(p llm.Part) bool { return p == nil })
	return results, primaryError(errs)
}

// primaryError chooses the error to return for several calls. An error that says that
// a person is asked has the lowest priority, because it would hide the others.
func primaryError(errs []error) (err error) {
	for _, e := range errs {
		if e != nil && (err == nil || errors.Is(err, graph.ErrWaiting)) {
			err = e
		}
	}
	return err
}

// resolveCall returns the outcome of one call. Its error is an error of the run,
// not of the tool: the run waits, is cancelled or cannot be saved.
func (st *actStep) resolveCall(ctx context.Context, c llm.ToolCall) (tool.Result, error) {
	args, ok := argsObject(c.Args)
	if st.isCutOff(c, ok) {
		return st.emitDone(ctx, c, tool.FailedResult("The arguments of the call '%s' are not complete: a token limit cut off your reply inside them. The tool was not called. "+
			"Call it again with shorter arguments, for example in several calls that each do a part.", c.Name)), nil
	}
	if !ok {
		return st.emitDone(ctx, c, tool.FailedResult("The call '%s' has invalid arguments: %s", c.Name, c.Args)), nil
	}
	t, ok := st.findTool(c.Name)
	if past := st.callsUpTo(c.ID); !t.Polls && isLooping(past, st.repeatLimit()) {
		return st.emitDone(ctx, c, newLoopAlert(past)), nil
	}
	if !ok {
		return st.emitDone(ctx, c, tool.FailedResult("Unexpected call: %s %s. This tool is not available or the call failed; use only tools listed in your catalog.%s",
			c.Name, args, st.describeTools())), nil
	}
	if do := todoActions[t.Name]; do != nil { // changes only the state
		return st.emitDone(ctx, c, do(st.todo, args)), nil
	}
	r, err := st.runOnce(ctx, t, tool.Call{ID: c.ID, Args: args, Seen: st.known})
	if isInterruption(err) && ctx.Err() == nil {
		markInterrupted(ctx)
		return st.interruptCall(ctx, c)
	}
	if err == nil {
		st.noteKits(t, tool.Call{Args: args}, &r)
	}
	return r, err
}

// emitDone reports the outcome of a call that was not made.
func (st *actStep) emitDone(ctx context.Context, c llm.ToolCall, r tool.Result) tool.Result {
	r = st.redactResult(r)
	if st.events {
		graph.Emit(ctx, ToolDone{ID: c.ID, Name: c.Name, Text: r.Text(), Error: r.Error})
	}
	return r
}

// describeTools lists the names of the available tools.
func (st *actStep) describeTools() string {
	const many = 50
	names := slices.Sorted(maps.Keys(st.tools))
	if len(names) == 0 || len(names) > many {
		return ""
	}
	return fmt.Sprintf(" Your tools: %s", names)
}

func (st *actStep) repeatLimit() int {
	return cmp.Or(st.act.Calls.Repeats, defaultRepeats)
}

// callsUpTo returns the calls of the turn, up to and including one call of this
// round.
func (st *actStep) callsUpTo(id string) []pastCall {
	first := len(st.past) - len(st.round.calls)
	return st.past[:first+1+slices.IndexFunc(st.round.calls, func(c llm.ToolCall) bool { return c.ID == id })]
}

// isCutOff reports whether a token limit cut off the arguments of a call, which
// can happen to the last call of a reply only. valid says whether they are an
// object nevertheless.
func (st *actStep) isCutOff(c llm.ToolCall, valid bool) bool {
	last := st.round.calls[len(st.round.calls)-1]
	return st.round.cut && c.ID == last.ID && (!valid || string(c.Args) == `""`)
}

// appendCutOff returns the outcome of calls that were interrupted and are not
// continued.
func appendCutOff(ctx context.Context, by string, r *round) graph.Write {
	return Messages.Set([]Entry{stampEntry(ctx, Entry{Message: cutOffMessage(r.pending), By: by, For: r.by})})
}

func cutOffMessage(calls []llm.ToolCall) llm.Message {
	if len(calls) == 0 { // the usual case: most replies have no calls
		return llm.Message{}
	}
	return outcomeOf(calls, tool.FailedResult("The call was cut off: the run was stopped before it had an outcome. It may or may not have happened; check before you repeat it."))
}

func placeholderMessage(calls []llm.ToolCall) llm.Message {
	return outcomeOf(calls, tool.TextResult("The call is still running."))
}

// outcomeOf returns a message with the same outcome for several calls.
func outcomeOf(calls []llm.ToolCall, r tool.Result) llm.Message {
	parts := make([]llm.Part, len(calls))
	for i, c := range calls {
		parts[i] = r.MessagePart(c)
	}
	return llm.Message{Role: llm.RoleTool, Parts: parts}
}

func (a *Act) redact(text string) string {
	if a.Redact == nil {
		return text
	}
	return a.Redact(text)
}
