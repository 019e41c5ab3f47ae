package agent

import (
	"cmp"
	"context"
	"errors"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// unknownWindow is the number of tokens of a window whose size is not known, for the length of a summary.
const unknownWindow = 64_000

// CompactTurn returns writes for a turn that summarizes the conversation, whatever its size, and asks the model
// nothing else: put them after those of ResetTurn. Later requests begin with the summary, which the last reply
// follows. The conversation itself stays as it is. If there is nothing to summarize, or the summary fails, a Warning
// says so, and later requests stay as they were.
func CompactTurn() []graph.Write {
	return []graph.Write{Overrides.Set(map[string]Override{"": {Compact: true}})}
}

// IsCompaction reports whether the turn only summarizes the conversation.
func IsCompaction(s graph.State) bool { return Overrides.Get(s)[""].Compact }

// compactConversation summarizes all messages but the last ones.
func (t *Think) compactConversation(ctx context.Context, s graph.State, name string, o Override) (graph.Update, error) {
	own := *t
	model, err := o.selectModel(name, t.Model, t.Models)
	if err != nil {
		return graph.Update{}, err
	}
	if own.Window.Summary == nil {
		own.Window.Summary = model
	}
	entries := Messages.Get(s)
	f := newFitting(foldEntries(entries, t.Visibility.entryFilter(entries, newViewer(ctx, ""), true)), &t.Request, Views.Get(s)[name], tokenFactor(entries, name))
	f.limit = t.Window.requestLimit(&t.Request)
	f.limit = cmp.Or(f.limit, unknownWindow)
	at := f.findLastReply()
	if at <= f.from {
		graph.Emit(ctx, Warning{Text: "there is nothing to summarize yet"})
		return graph.Update{}, nil
	}
	st := &thinkStep{think: &own, name: name}
	from := f.from
	was := f.view.Summary
	f.moveViewTo(at)
	text, err := st.summariseLines(ctx, s, f, from, was)
	switch {
	case errors.Is(err, ErrInterrupted) && ctx.Err() == nil:
		return graph.Update{}, nil
	case errors.As(err, new(*llm.Error)) && ctx.Err() == nil: // the conversation can continue without
		graph.Emit(ctx, Warning{Text: "the conversation could not be summarized: " + err.Error()})
		return graph.Update{}, nil
	case err != nil:
		return graph.Update{}, err
	case text == was: // it could not be summarized: a warning says why
		return graph.Put(Spent.Set(st.spent)), nil
	}
	f.view.Summary = text
	graph.Emit(ctx, WindowShortened{Messages: f.view.Left, Tokens: f.scaleTokens(f.estimateTokens(f.from)), Limit: f.limit, Summary: true})
	return graph.Put(Spent.Set(st.spent), Views.Set(map[string]View{name: f.view})), nil
}

// findLastReply returns the index of the last message that is not an outcome, or -1.
func (f *requestFitter) findLastReply() int {
	at := len(f.lines) - 1
	for at >= 0 && (f.lines[at].message.Role == llm.RoleTool || len(f.lines[at].message.ToolCalls()) > 0) {
		at--
	}
	return at
}
