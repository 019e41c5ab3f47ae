package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// Sources are sources of tools that need time to start, such as servers. Which of them are there is recorded when the
// model is asked, so that a run that is resumed or replayed sends the same tools. A source that is there later than the
// first request is announced to the model by a message.
type Sources struct {
	Names []string // in the order of their tools; empty: there are none
	// Start starts sources and returns which of them are there (true) and which cannot be used (false). It may wait a
	// moment, and leaves out those that are still starting.
	Start func(ctx context.Context, names []string) (map[string]bool, error)
	// Tools returns the tools of the sources that are there, in the order of Names, and what the model can call of
	// those that are still starting.
	Tools func(ctx context.Context, settled map[string]bool) ([]tool.Tool, error)
}

// settle returns which sources are there. It adds to the input what was found out.
func (o Sources) settle(ctx context.Context, s graph.State, name string, in *modelInput) (map[string]bool, error) {
	known := Settled.Get(s)
	begins := in.begins || countReplies(Messages.Get(s), name) == 0
	settled := map[string]bool{}
	var open []string
	for _, source := range o.Names {
		there, over := known[source]
		if over && (there || !begins) {
			settled[source] = there
			continue
		}
		open = append(open, source) // one that could not be used gets another chance in the next turn
	}
	if len(open) == 0 {
		return settled, nil
	}
	found, err := graph.Do(ctx, "sources", func(ctx context.Context) (map[string]bool, error) {
		run, release := Interruptible(ctx)
		defer release()
		return o.Start(run, open)
	})
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	var late []string
	news := map[string]bool{}
	for _, source := range open {
		there, over := found[source]
		if !over {
			continue
		}
		settled[source] = there
		if was, before := known[source]; !before || was != there {
			news[source] = there
		}
		if there {
			late = append(late, source)
		}
	}
	if len(news) > 0 {
		in.writes = append(in.writes, Settled.Set(news))
	}
	if len(late) > 0 && !in.once && hasReplied(Messages.Get(s), name) {
		in.announceTools(ctx, name, "[system note: these servers are ready now, and you can call their tools: "+strings.Join(late, ", ")+"]")
	}
	return settled, nil
}

// hasReplied reports whether a node has asked its model before.
func hasReplied(entries []Entry, name string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.By == name && e.Reply != nil })
}

// announceTools adds a message of a node to the conversation.
func (in *modelInput) announceTools(ctx context.Context, name, text string) {
	e := stampEntry(ctx, Entry{Message: llm.User(text), By: name})
	in.addEntry(e)
	in.lines = append(in.lines, foldedLine{message: e.Message, entry: in.next - 1, by: name})
}

// listTools returns a function that lists the tools of the sources and further tools; nil: there are none.
func (o Sources) listTools(settled map[string]bool, more func(context.Context) ([]tool.Tool, error)) func(context.Context) ([]tool.Tool, error) {
	if len(o.Names) == 0 {
		return more
	}
	return func(ctx context.Context) ([]tool.Tool, error) {
		tools, err := o.Tools(ctx, settled)
		if err != nil || more == nil {
			return tools, err
		}
		further, err := more(ctx)
		return append(tools, further...), err
	}
}
