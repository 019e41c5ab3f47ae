package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A Follower reads the journal of a run while another process writes it. It is not safe for
// concurrent use.
type Follower struct {
	archive *Archive
	id      string
	last    int64                   // number of the newest record that was read
	next    map[string][]string     // nodes that run next, by the path of their frame
	waiting []graph.Event           // starts of nodes, which happen only if the drive does not end first
	calls   map[string]llm.ToolCall // requested calls by their path and id, until they start
}

// FollowRun returns a follower of a run, from its start.
func (a *Archive) FollowRun(id string) *Follower {
	return &Follower{archive: a, id: id, next: map[string][]string{}, calls: map[string]llm.ToolCall{}}
}

// ReadEvents returns what the run has recorded since the last call, as events: drives, nodes, steps
// and calls of tools. There are none of what the journal does not hold, such as the text of a reply
// as it comes. live reports whether the run may record more soon: then the nodes that run next count
// as started.
func (f *Follower) ReadEvents(ctx context.Context, live bool) ([]graph.Event, error) {
	st, at, err := f.archive.locateRun(ctx, f.id)
	if err != nil {
		return nil, err
	}
	var entries []graph.Entry
	for e, err := range graph.History(ctx, st, at.thread) {
		if err != nil {
			return nil, err
		}
		if e.Seq <= f.last {
			break
		}
		if at.containsRecord(e.Seq) {
			entries = append(entries, e)
		}
	}
	slices.Reverse(entries)
	var events []graph.Event
	for _, e := range entries {
		var data []byte
		if e.Kind == graph.KindEffect && (flow.IsReply(e.ID) || toolKey(e.ID) != "") {
			for r, err := range graph.Records(ctx, st, at.thread, graph.Range{After: e.Seq - 1, UpTo: e.Seq}) {
				if err != nil {
					return nil, err
				}
				data = r.Data
			}
		}
		events = append(events, f.readEntry(&e, data)...)
		f.last = e.Seq
	}
	if live {
		events = append(events, f.takeStarts()...)
	}
	return events, nil
}

// takeStarts returns the starts of nodes that have not been returned yet.
func (f *Follower) takeStarts() []graph.Event {
	events := f.waiting
	f.waiting = nil
	return events
}

// readEntry returns the events of one record.
func (f *Follower) readEntry(e *graph.Entry, data []byte) (events []graph.Event) {
	path := publicPath(e.Path)
	event := func(body graph.Body) graph.Event { return graph.Event{Time: e.Time, Path: path, Body: body} }
	if e.Kind != graph.KindEnd {
		events = f.takeStarts()
	}
	switch e.Kind {
	case graph.KindStart, graph.KindFork, graph.KindClaim:
		events = append(events, event(graph.RunStarted{Resumed: e.Kind != graph.KindStart}))
	case graph.KindStep:
		if from := f.next[path]; len(from) > 0 {
			events = append(events, event(graph.StepCommitted{Nodes: from, Next: e.Next, Moves: []graph.Move{{From: strings.Join(from, ", "), To: e.Next}}}))
		}
	case graph.KindIntent, graph.KindEffect:
		events = append(events, f.readEffect(e, data, event)...)
	case graph.KindEnd:
		status := graph.Failed
		if e.What == graph.Done.String() {
			status = graph.Done
		}
		f.waiting = nil
		events = append(events, event(graph.RunEnded{Result: graph.Result{Status: status}}))
	}
	switch e.Kind {
	case graph.KindStart, graph.KindFork, graph.KindCall, graph.KindStep, graph.KindEdit:
		f.next[path] = e.Next
		for _, node := range e.Next {
			start := event(graph.TaskStarted{})
			start.Node = node
			f.waiting = append(f.waiting, start)
		}
	}
	return events
}

// readEffect returns the events of an effect: a call of a tool that starts or ends. A reply
// contains the calls that it requests.
func (f *Follower) readEffect(e *graph.Entry, data []byte, event func(graph.Body) graph.Event) (events []graph.Event) {
	id := toolKey(e.ID)
	if id == "" {
		var r struct {
			Message llm.Message `json:"message"`
		}
		if flow.IsReply(e.ID) && json.Unmarshal(data, &r) == nil {
			for _, c := range r.Message.ToolCalls() {
				f.calls[e.Path+c.ID] = c
			}
		}
		return nil
	}
	name := strings.TrimPrefix(strings.Split(e.ID, "\x00")[1], toolEffect)
	if c, ok := f.calls[e.Path+id]; ok {
		delete(f.calls, e.Path+id)
		name = c.Name
		events = append(events, event(graph.ValueEmitted{Value: agent.ToolStarted{ID: c.ID, Name: c.Name, Args: c.Args}}))
	}
	var made struct {
		Result *tool.Result `json:"result"`
	}
	if e.Kind == graph.KindEffect && json.Unmarshal(data, &made) == nil && made.Result != nil {
		events = append(events, event(graph.ValueEmitted{Value: agent.ToolDone{ID: id, Name: name, Error: made.Result.Error, Text: made.Result.Text(), Changes: made.Result.Changes}}))
	}
	return events
}
