package agent

import (
	"cmp"
	"context"
	"errors"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Think calls a model. Its node sends the conversation, appends the reply and
// follows its edges. It makes no tool calls: Act does that.
type Think struct {
	Model llm.Model
	// Request is what every request contains in addition to messages: the system prompt, the temperature, a schema.
	Request llm.Request
	// System returns the system prompt; nil: Request.System. It must be pure.
	System     func(s graph.State) (string, error)
	Models     map[string]llm.Model // further models, by the names that an Override uses
	Visibility Visibility           // the part of the conversation that the node sees; the zero value: FullContext
	Input      graph.Key[string]    // what the user says; the zero value: UserInput
	// MaxIterations is how many replies the node may request in one turn,
	// including those after a reminder; 0: no limit. One more is an
	// *IterationError.
	MaxIterations int

	Tools     []tool.Tool                                    // the tools that the model may call
	ListTools func(ctx context.Context) ([]tool.Tool, error) // further tools, requested in every step; nil: none
	Sources   Sources                                        // of further tools, which need time to start
	Kits      Kits                                           // see Act.Kits
	Window    Window
	Budget    Budget
	Around    []ModelMiddleware   // the first outermost
	Redact    func(string) string // removes secrets from requests and replies; nil: nothing is removed
	Hold      func(string) int    // see Config.Hold
	Retry     Retry               // of failed requests; the zero value: for two minutes

	continues int // see Continue.Max
}

// shorterTries is how often a request that the provider rejects as too long is
// made shorter, each time to shorterPercent of its length.
const (
	shorterTries   = 2
	shorterPercent = 70
)

// thinkStep is one step of a think node.
type thinkStep struct {
	think  *Think
	name   string
	model  llm.Model
	spent  Spend // in this step
	writes []graph.Write
}

// Node returns the model node of a graph.
func (t Think) Node(name string) graph.Node {
	return graph.Node{
		Name: name, Kind: "llm",
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return t.run(ctx, name, s) },
	}
}

func (t *Think) run(ctx context.Context, name string, s graph.State) (graph.Update, error) {
	entries := Messages.Get(s)
	in := t.buildInput(ctx, s, name)
	if len(in.lines) == 0 && !overrideOf(s, name).Compact {
		return graph.Update{}, errNoMessages
	}
	o := overrideOf(s, name)
	switch {
	case o.Compact:
		return t.compactConversation(ctx, s, name, o)
	case !in.begins && EndsInterrupted(entries):
		return graph.Update{}, nil
	case IsInterrupted(ctx):
		return t.interruptTurn(ctx, name, in.writes)
	}
	if n := countReplies(entries, name); t.MaxIterations > 0 && n >= t.MaxIterations && !in.begins {
		return graph.Update{}, &IterationError{Node: name, Limit: t.MaxIterations}
	}
	model, err := o.selectModel(name, t.Model, t.Models)
	if err != nil {
		return graph.Update{}, err
	}
	st := &thinkStep{think: t, name: name, model: t.Retry.WrapModel(t.redactModel(wrapModel(t.Budget.MeterModel(model), t.Around)), countReplies(entries, name) == 0), writes: in.writes}
	req, err := t.buildRequest(ctx, s, o, name, &in)
	st.writes = in.writes
	if err != nil && IsInterrupted(ctx) {
		return t.interruptTurn(ctx, name, in.writes)
	}
	if err != nil {
		return graph.Update{}, err
	}
	view := Views.Get(s)[name]
	if in.once {
		view = View{}
	}
	f := newFitting(in.lines, &req, view, tokenFactor(entries, name))
	f.limit = t.Window.requestLimit(&req)
	f.soft = t.Window.Soft
	f.keep = t.Window.Keep
	f.format = t.Window.Format
	reply, tokens, err := st.askModel(ctx, s, req, f)
	if errors.Is(err, ErrInterrupted) && ctx.Err() == nil {
		return t.interruptTurn(ctx, name, append(st.writes, Spent.Set(st.spent)))
	}
	if err != nil {
		return graph.Update{}, err
	}
	if reply.Stop == StopInterrupted {
		graph.Emit(ctx, TurnInterrupted{})
	}
	info := &ReplyInfo{ID: reply.ID, Model: reply.Model, Usage: reply.Usage, Stop: reply.Stop, Estimate: tokens}
	said := []Entry{stampEntry(ctx, Entry{Message: reply.Message, By: name, Reply: info})}
	if len(reply.Message.ToolCalls()) == 0 && reply.Stop != StopInterrupted && !in.once {
		reminder := Continue{Max: t.continues}
		taken, err := takeMessages(ctx, entries, !reminder.shouldContinue(s))
		if err != nil {
			return graph.Update{}, err
		}
		said = append(said, taken...)
	}
	st.writes = append(st.writes, Messages.Set(said), Spent.Set(st.spent))
	st.warnIncomplete(ctx, s, reply)
	if f.view != view && !in.once {
		st.writes = append(st.writes, Views.Set(map[string]View{name: f.view}))
	}
	return graph.Put(st.writes...), nil
}

// interruptTurn returns the update that ends a turn without a further request.
func (t *Think) interruptTurn(ctx context.Context, name string, writes []graph.Write) (graph.Update, error) {
	graph.Emit(ctx, TurnInterrupted{})
	return graph.Put(append(writes, Messages.Set([]Entry{interruptedEntry(ctx, name, "")}))...), nil
}

// warnIncomplete reports a reply that ends the turn without an answer.
func (st *thinkStep) warnIncomplete(ctx context.Context, s graph.State, reply llm.Reply) {
	if flaw, _ := reply.DescribeFlaw(); flaw != "" {
		graph.Emit(ctx, Warning{Text: "the reply of " + cmp.Or(reply.Model, "the model") + " " + flaw})
	}
	most := st.think.continues
	open := Todo.Get(s).Open()
	if most > 0 && open > 0 && Continued.Get(s) >= most && len(reply.Message.ToolCalls()) == 0 {
		graph.Emit(ctx, Warning{Text: OpenItems(open, most)})
	}
}

// buildRequest returns the request without its messages. It adds to the input what it finds out about the sources of
// tools.
func (t *Think) buildRequest(ctx context.Context, s graph.State, o Override, name string, in *modelInput) (llm.Request, error) {
	req := o.applyTo(t.Request)
	if t.System != nil && o.System == nil {
		var err error
		if req.System, err = t.System(s); err != nil {
			return req, err
		}
	}
	sources := t.Kits.joinSources(t.Sources, s)
	settled, err := sources.settle(ctx, s, name, in)
	if err != nil {
		return req, err
	}
	run, release := Interruptible(ctx)
	defer release()
	tools, err := listTools(run, t.Tools, t.Kits.joinTools(s, sources.listTools(settled, t.ListTools)))
	if err != nil {
		return req, err
	}
	req.Tools = append([]llm.ToolSpec(nil), t.Request.Tools...)
	for _, tl := range o.filterTools(tools) {
		req.Tools = append(req.Tools, tl.Spec())
	}
	return req, nil
}

// askModel returns a reply. If the provider says that the request is too long, it
// sends a shorter one. All requests are one effect, which records the reply.
func (st *thinkStep) askModel(ctx context.Context, s graph.State, req llm.Request, f *requestFitter) (llm.Reply, int, error) {
	for try := 0; ; try++ {
		if err := st.fitRequest(ctx, s, f); err != nil {
			return llm.Reply{}, 0, err
		}
		messages, tokens, err := f.buildMessages()
		if err != nil {
			return llm.Reply{}, 0, err
		}
		req.Messages = messages
		if err := st.think.Budget.checkSpend(Spent.Get(s).add(st.spent)); err != nil {
			return llm.Reply{}, 0, err
		}
		reply, err := graph.Do(ctx, "model", func(ctx context.Context) (llm.Reply, error) { return streamReply(ctx, st.model, st.think.Budget, req) })
		if err == nil {
			st.spent = st.spent.add(st.think.Budget.replySpend(&reply))
			if graph.IsEmitEnabled(ctx) {
				graph.Emit(ctx, SpendReport{Spent.Get(s).add(st.spent)})
			}
			return reply, tokens, nil
		}
		var failure *llm.Error
		if !errors.As(err, &failure) || failure.Class != llm.ContextLength || try == shorterTries {
			return reply, tokens, err
		}
		f.limit = f.scaleTokens(tokens) * shorterPercent / percent
	}
}

// AskModel sends one request to a model and returns the reply. It repeats a request that
// failed, checks and charges the budget, and emits what arrives, as the nodes of an
// agent do. It records nothing: call it inside of an effect.
func AskModel(ctx context.Context, m llm.Model, req llm.Request, r Retry, b Budget) (llm.Reply, error) {
	return streamReply(ctx, r.WrapModel(b.MeterModel(m), true), b, req)
}

// streamReply makes a call to a model that retries, and emits what arrives.
func streamReply(ctx context.Context, m llm.Model, b Budget, req llm.Request) (llm.Reply, error) {
	emits := graph.IsEmitEnabled(ctx)
	run, release := Interruptible(ctx)
	defer release()
	part := &partialText{}
	for d, err := range m.Stream(context.WithValue(run, partialTextKey{}, part), req) {
		switch {
		case context.Cause(run) == ErrInterrupted && (err != nil || d.Done == nil):
			markInterrupted(ctx)
			reply := interruptedReply(part.String())
			if emits && part.Len() > 0 {
				graph.Emit(ctx, ReplyDone{Message: reply.Message, Stop: reply.Stop})
			}
			return reply, nil
		case err != nil:
			return llm.Reply{}, err
		case d.Done != nil:
			reply := *d.Done
			reply.Message = withDistinctCalls(reply.Message)
			if emits {
				cost, priced := b.replyCost(reply.Model, reply.Usage)
				graph.Emit(ctx, ReplyDone{Message: reply.Message, Model: reply.Model, Usage: reply.Usage, Stop: reply.Stop, Cost: cost, Priced: priced})
			}
			return reply, nil
		case d.Text != "":
			part.WriteString(d.Text)
			if emits {
				graph.Emit(ctx, TextDelta{d.Text})
			}
		case !emits:
		case d.Reasoning != "":
			graph.Emit(ctx, ReasoningDelta{d.Reasoning})
		}
	}
	return llm.Reply{}, errors.New("agent: a model that retries gave no reply") // it returns an error instead
}

// countReplies counts what a node has said since the last message of the caller.
func countReplies(entries []Entry, name string) (n int) {
	for i := len(entries) - 1; i >= 0; i-- {
		switch e := &entries[i]; {
		case e.By == "" && e.Message.Role == llm.RoleUser:
			return n
		case e.By == name && e.Reply != nil:
			n++
		}
	}
	return n
}

// tokenFactor returns the tokens that the provider counted for the node's last
// request, in per cent of the estimate.
func tokenFactor(entries []Entry, name string) int {
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.By == name && e.Reply != nil && e.Reply.Usage.Input > 0 && e.Reply.Estimate > 0 {
			return min(max(e.Reply.Usage.Input*percent/e.Reply.Estimate, leastFactor), maxFactor)
		}
	}
	return percent
}

// redactModel returns a model that removes secrets from requests and replies.
func (t *Think) redactModel(m llm.Model) llm.Model { return llm.RedactModel(m, t.Redact, t.Hold) }
