package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// A Follower reads the journal of a run while another process writes it. It is not safe for
// concurrent use.
type Follower struct {
	archive *Archive
	id      string
	store   *Store                  // nil until the run was located
	place   runRef                  // of the run in the store; last is set when a later turn of its session has started
	last    int64                   // number of the newest record that was read
	next    map[string][]string     // nodes that run next, by the path of their frame
	waiting []graph.Event           // starts of nodes, which happen only if the drive does not end first
	front   frontier                // what has not ended
	ended   bool                    // the last drive has ended
	again   []graph.Event           // starts of nodes by the next drive, if the last one has ended
	calls   map[string]llm.ToolCall // requested calls by their path and id, until they start
	asked   map[string]string       // ids of questions, by their path and what the journal calls them
}

// FollowRun returns a follower of a run, from its start.
func (a *Archive) FollowRun(id string) *Follower {
	return &Follower{archive: a, id: id, next: map[string][]string{}, front: frontier{}, calls: map[string]llm.ToolCall{}, asked: map[string]string{}}
}

// Last returns the number of the newest record that was read.
func (f *Follower) Last() int64 { return f.last }

// followBatch is the largest number of records whose events one call returns.
const followBatch = 500

// followBytes is the size of the records after which a call returns what it has, in bytes: a reader that is slow keeps
// that much, and one record, in memory.
const followBytes = 256 << 10

// ReadEvents returns what the run has recorded since the last call, oldest first, as events: drives, nodes, steps,
// replies, calls of tools and questions. Each has the number of its record. There are none of what the journal does not
// hold, such as the text of a reply as it comes. A call reads at most a few hundred records; more says that there are
// others, which the next call returns. live reports whether the run may record more soon: then the nodes that run next
// count as started.
func (f *Follower) ReadEvents(ctx context.Context, live bool) (events []graph.Event, more bool, err error) {
	if err := f.locateRun(ctx); err != nil {
		return nil, false, err
	}
	at := &f.place
	size := 0
	count := 0
	span := journal.Range{After: max(f.last, at.first-1), UpTo: at.last, Limit: followBatch}
	for r, err := range journal.Records(ctx, f.store, at.thread, span) {
		if err != nil {
			return nil, false, err
		}
		e, err := history.DecodeEntry(r)
		if err != nil {
			return nil, false, &journal.DamagedError{Thread: at.thread, Seq: r.Seq, Kind: r.Kind, Err: err}
		}
		starts := e.Kind == journal.KindStart || e.Kind == journal.KindFork
		if starts && at.first > 0 && e.Seq > at.first { // the next turn of the session
			at.last = e.Seq - 1
			break
		}
		read, err := f.readEntry(ctx, &e, r)
		if err != nil {
			return nil, false, err
		}
		events = append(events, read...)
		f.last = e.Seq
		size += len(r.Data)
		count++
		if more = count == followBatch || size > followBytes; more {
			break
		}
	}
	if live && !more {
		events = append(events, f.takeStarts()...)
	}
	return events, more, nil
}

// locateRun finds the run, once.
func (f *Follower) locateRun(ctx context.Context) error {
	if f.store != nil {
		return nil
	}
	st, at, err := f.archive.locateRun(ctx, f.id)
	if err == nil {
		f.store = st
		f.place = at
	}
	return err
}

// takeStarts returns the starts of nodes that have not been returned yet.
func (f *Follower) takeStarts() []graph.Event {
	events := f.waiting
	f.waiting = nil
	return events
}

// readEntry returns the events of one record.
func (f *Follower) readEntry(ctx context.Context, e *history.Entry, r journal.Record) (events []graph.Event, err error) {
	path := publicPath(e.Path)
	event := func(body graph.Body) graph.Event {
		return graph.Event{Time: e.Time, Path: path, Step: e.Step, Record: e.Seq, Body: body}
	}
	if e.Kind != journal.KindEnd || e.What == graph.Failed.String() { // with the nodes that ran
		events = f.takeStarts()
	}
	switch e.Kind {
	case journal.KindStart, journal.KindFork, journal.KindClaim:
		events = append(events, event(graph.RunStarted{Resumed: e.Kind != journal.KindStart}))
	case journal.KindStep:
		if from := f.next[path]; len(from) > 0 {
			content, err := history.DecodeContent(r)
			if err != nil {
				return nil, err
			}
			events = append(events, event(graph.StepCommitted{Nodes: from, Keys: content.Keys, Next: e.Next, Moves: []graph.Move{{From: strings.Join(from, ", "), To: e.Next}}, Seq: e.Seq}))
		}
	case journal.KindIntent, journal.KindEffect:
		events = append(events, f.readEffect(e, r.Data, event)...)
	case journal.KindQuestion, journal.KindAnswer:
		content, err := history.DecodeContent(r)
		if err != nil {
			return nil, err
		}
		key := e.Path + "\x00" + content.Asked
		if content.Question != nil {
			f.asked[key] = content.Question.ID
			events = append(events, event(graph.QuestionAsked{Question: *content.Question}))
		} else if id := f.asked[key]; id != "" {
			events = append(events, event(graph.QuestionAnswered{ID: id, Ahead: content.Ahead, Refused: content.Refused, By: e.By}))
		}
	case journal.KindEnd:
		f.ended = true
		f.again = f.waiting // nodes that wait continue
		f.waiting = nil
		if e.What != graph.Waiting.String() {
			f.again = f.listUnfinished(event)
		}
		res, err := readEnd(ctx, f.store, f.place.thread, e, r)
		if err != nil {
			return nil, err
		}
		events = append(events, event(graph.RunEnded{Result: res}))
	}
	f.front.addEntry(*e)
	switch e.Kind {
	case journal.KindClaim:
		f.ended = false
		for _, start := range f.again {
			start.Time = e.Time
			start.Record = e.Seq
			f.waiting = append(f.waiting, start)
		}
		f.again = nil
	case journal.KindStart, journal.KindFork, journal.KindCall, journal.KindStep, journal.KindEdit:
		f.next[path] = e.Next
		if f.ended && e.Kind == journal.KindEdit {
			f.again = f.listUnfinished(event)
			break
		}
		for _, node := range e.Next {
			start := event(graph.TaskStarted{})
			start.Node = node
			f.waiting = append(f.waiting, start)
		}
	}
	return events, nil
}

// listUnfinished returns the starts of the nodes that have not ended, of all frames: a drive that continues a run starts
// them again.
func (f *Follower) listUnfinished(event func(graph.Body) graph.Event) (starts []graph.Event) {
	for _, path := range slices.Sorted(maps.Keys(f.front)) {
		step := f.front[path]
		for _, node := range step.nodes {
			if step.done[fmt.Sprintf("%d.%s.0", step.number, node)] {
				continue
			}
			start := event(graph.TaskStarted{})
			start.Path = publicPath(path)
			start.Step = step.number
			start.Node = node
			starts = append(starts, start)
		}
	}
	return starts
}

// readEnd returns how a drive has ended.
func readEnd(ctx context.Context, st *Store, thread string, e *history.Entry, r journal.Record) (res graph.Result, err error) {
	content, err := history.DecodeContent(r)
	if err != nil {
		return res, err
	}
	for s := graph.Running; s.String() != "unknown"; s++ {
		if s.String() == e.What {
			res.Status = s
		}
	}
	if content.Reason != "" {
		res.Err = errors.New(flow.PlainReason(content.Reason))
	}
	if res.Status == graph.Done || res.Status == graph.Waiting {
		snap, err := history.Inspect(ctx, st.Store, thread, e.Seq)
		if err != nil {
			return res, err
		}
		res.Value = snap.Result
		res.Questions = snap.Questions
		res.Steps = snap.Steps
	}
	return res, nil
}

// readEffect returns the events of an effect: a reply, a node's failure, or a call of a tool that starts or ends. A reply
// contains the calls that it requests.
func (f *Follower) readEffect(e *history.Entry, data []byte, event func(graph.Body) graph.Event) (events []graph.Event) {
	id := toolKey(e.ID)
	if e.Kind == journal.KindEffect && flow.IsFailure(e.ID) {
		failed := event(graph.ValueEmitted{Value: flow.NodeFailed{Reason: flow.ReadFailure(data)}})
		failed.Node = taskName(taskOf(*e))
		return []graph.Event{failed}
	}
	if id == "" {
		if e.Kind != journal.KindEffect || !flow.IsReply(e.ID) {
			return nil
		}
		reply, calls := readReplyEvent(data)
		for _, c := range calls {
			f.calls[e.Path+c.ID] = c
		}
		done := event(graph.ValueEmitted{Value: reply})
		done.Task = taskOf(*e)
		done.Node = taskName(done.Task)
		return []graph.Event{done}
	}
	name := effectTool(e.ID)
	if c, ok := f.calls[e.Path+id]; ok {
		delete(f.calls, e.Path+id)
		name = c.Name
		events = append(events, event(graph.ValueEmitted{Value: agent.ToolStarted{ID: c.ID, Name: c.Name, Args: c.Args}}))
	}
	if e.Kind != journal.KindEffect {
		return events
	}
	if result, err := readResult(data); err == nil && result != nil {
		events = append(events, event(graph.ValueEmitted{Value: agent.ToolDone{ID: id, Name: name, Error: result.Error, Text: result.Text(), Changes: result.Changes}}))
	}
	return events
}

// readReplyEvent returns a recorded reply as the event that its node emitted, and the calls that it requests.
func readReplyEvent(data []byte) (done agent.ReplyDone, calls []llm.ToolCall) {
	var talk struct {
		Message llm.Message    `json:"message"`
		Stop    llm.StopReason `json:"stop"`
		Cost    float64        `json:"cost"`
		Priced  bool           `json:"priced"`
	}
	r, err := flow.ReadReply(data)
	if err != nil || json.Unmarshal(data, &talk) != nil {
		return done, nil
	}
	done = agent.ReplyDone{Message: talk.Message, Model: r.Model, Usage: r.Usage, Stop: talk.Stop, Cost: talk.Cost, Priced: talk.Priced}
	if done.Message.Role == "" {
		done.Message = llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: r.Text}}}
	}
	return done, talk.Message.ToolCalls()
}
