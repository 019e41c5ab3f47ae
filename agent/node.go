package agent

import (
	"context"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Agent runs an agent as a node of another graph: one turn in a child graph,
// whose steps, questions and events are part of the parent's run, under the
// path of the node. Both graphs need Keys. If the child fails, the node fails,
// unless Failed handles it.
type Agent struct {
	Graph *graph.Graph // of a Config, or any other graph that works on Messages
	// Input returns the message for the agent. If nil, it is what the user
	// says: UserInput, or else the user's last message. It must be pure.
	Input func(s graph.State) (llm.Message, error)
	// Visibility is the part of the conversation that the agent sees in addition to
	// its input. With IsolatedInvocation it sees only its own calls and their
	// outcomes.
	Visibility Visibility
	Share      bool // add all its messages to the conversation, not only its last reply

	// In returns further first writes of the child; nil: none. It is pure.
	In func(s graph.State) ([]graph.Write, error)
	// Out returns the update of the node, instead of the last reply; nil: the last reply. It is pure.
	Out func(s graph.State, child graph.Child) (graph.Update, error)
	// Failed returns the update of the node if the child failed; nil: the node fails. It is not called if the run
	// waits, is cancelled, or has used up a shared budget.
	Failed func(s graph.State, failure error) (graph.Update, error)
}

// Node returns the agent's node.
func (a Agent) Node(name string) graph.Node {
	return graph.Node{
		Name: name, Kind: "agent", Graph: a.Graph,
		Run: func(ctx context.Context, s graph.State) (graph.Update, error) { return a.run(ctx, name, s) },
	}
}

// FromLastResponse is an Agent.Input: the newest reply of any node, as a user
// message. If there is none, it is what the user says.
func FromLastResponse(s graph.State) (llm.Message, error) {
	if text := LastResponse(s); text != "" {
		return llm.User(text), nil
	}
	return fromUser(s)
}

// FromResponse is FromLastResponse for the newest reply of one node.
func FromResponse(node string) func(graph.State) (llm.Message, error) {
	return func(s graph.State) (llm.Message, error) {
		if text := Response(s, node); text != "" {
			return llm.User(text), nil
		}
		return fromUser(s)
	}
}

func fromUser(s graph.State) (llm.Message, error) {
	if text := UserInput.Get(s); text != "" {
		return llm.User(text), nil
	}
	entries := Messages.Get(s)
	lines := foldEntries(entries, nil)
	for i := len(lines) - 1; i >= 0; i-- {
		if l := &lines[i]; l.by == "" && l.message.Role == llm.RoleUser {
			return l.message, nil
		}
	}
	return llm.Message{}, errNoMessages
}

func (a *Agent) run(ctx context.Context, name string, s graph.State) (graph.Update, error) {
	input := a.Input
	if input == nil {
		input = fromUser
	}
	message, err := input(s)
	if err != nil {
		return graph.Update{}, err
	}
	entries := Messages.Get(s)
	at := newViewer(ctx, name)
	seed := filterEntries(entries, a.Visibility.entryFilter(entries, at, false))
	seed = append(seed, inputEntries(at, seed, message)...)
	set := []graph.Write{Messages.Set(seed), OverridesFor(s, name)}
	if a.In != nil {
		further, err := a.In(s)
		if err != nil {
			return graph.Update{}, err
		}
		set = append(set, further...)
	}
	child, err := graph.Call(ctx, set...)
	u := graph.Update{}
	switch {
	case err == nil && a.Out != nil:
		u, err = a.Out(s, child)
	case err == nil:
		u = a.replyUpdate(ctx, name, child.State, len(seed))
	case a.Failed != nil && !isWaiting(err) && !IsBudgetExhausted(ctx, err) && ctx.Err() == nil:
		u, err = a.Failed(s, err)
	}
	if err != nil {
		return graph.Update{}, err
	}
	u.Writes = append(a.inputWrites(ctx, s, child.State), u.Writes...)
	return u, nil
}

// inputEntries returns the entries that give an agent its input, after the entries that it sees.
// The input replaces a user message that was not answered yet. If it is equal to that message, no
// entry is needed.
func inputEntries(at Viewer, seen []Entry, m llm.Message) []Entry {
	e := Entry{Message: m, Run: at.Run}
	if lines := foldEntries(seen, nil); len(lines) > 0 && m.Role == llm.RoleUser {
		last := &lines[len(lines)-1].message
		switch {
		case last.Role != llm.RoleUser:
		case last.Text() == m.Text() && len(last.Parts) == len(m.Parts):
			return nil
		default:
			e.Op = OpReplace
		}
	}
	return []Entry{e}
}

// inputWrites returns what the node writes in every case: what the user said, and
// what the agent spent.
func (a *Agent) inputWrites(ctx context.Context, s, child graph.State) []graph.Write {
	entries := Messages.Get(s)
	in := modelInput{lines: foldEntries(entries, nil), next: len(entries)}
	if text := UserInput.Get(s); text != "" {
		in.addUserText(ctx, text)
		in.writes = append(in.writes, UserInput.Set(""))
	}
	if v, ok := child.Value(Spent.Name()); ok {
		if spent, ok := v.(Spend); ok {
			in.writes = append(in.writes, Spent.Set(spent))
		}
	}
	return in.writes
}

// replyUpdate adds what the agent said after its first entries.
func (a *Agent) replyUpdate(ctx context.Context, name string, child graph.State, from int) graph.Update {
	entries := Messages.Get(child)
	own := entries[min(from, len(entries)):]
	var said []Entry
	for i := len(own) - 1; i >= 0; i-- {
		e := own[i]
		switch {
		case e.Message.Role == llm.RoleAssistant && !a.Share:
			last := Entry{By: name, Reply: e.Reply, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: e.Message.Text()}}}}
			return graph.Put(Messages.Set([]Entry{stampEntry(ctx, last)}))
		case e.Message.Role == llm.RoleAssistant || e.Message.Role == llm.RoleTool:
			e.By = name + "/" + e.By
			if e.For != "" {
				e.For = name + "/" + e.For
			}
			said = append(said, e)
		}
	}
	if said == nil {
		return graph.Update{}
	}
	slices.Reverse(said)
	return graph.Put(Messages.Set(said))
}
