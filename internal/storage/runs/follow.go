package runs

import (
	"context"
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
)

// A Follower reads the journal of a run while another process writes it. It is not safe for
// concurrent use.
type Follower struct {
	archive *Archive
	id      string
	store   *Store           // nil until the run was located
	place   runRef           // of the run in the store; last is set when a later turn of its session has started
	reading *history.Reading // of the thread, from its first record; nil until the run was located
	last    int64            // number of the newest record of the run that was read
	course  *course
	waiting []graph.Event // starts of nodes, which happen only if the drive does not end first
	ended   bool          // the last drive has ended
	again   []graph.Event // starts of nodes by the next drive, if the last one has ended
}

// FollowRun returns a follower of a run, from its start.
func (a *Archive) FollowRun(id string) *Follower {
	return &Follower{archive: a, id: id, course: newCourse()}
}

// Last returns the number of the newest record of the run that was read; 0: there is none.
func (f *Follower) Last() int64 { return f.last }

// Head returns the number of the newest record that was read; 0: there is none. It may be one before the run or after it
// in the same thread.
func (f *Follower) Head() int64 {
	if f.reading == nil {
		return 0
	}
	return f.reading.Head()
}

// Waits reports whether the last drive that was read has stopped because only answers, or a time, can continue the run.
func (f *Follower) Waits() bool {
	return f.Head() > 0 && f.reading.Status() == graph.Waiting
}

// IsDriven reports whether a process drives the run, by the lock and the lease of its thread, and whether a server of the
// store is to drive it: it reads no journal. A turn of a session is not driven any more once the start of the next one
// was read.
func (f *Follower) IsDriven(ctx context.Context) (driven, queued bool, err error) {
	if err := f.locateRun(ctx); err != nil || f.place.last > 0 {
		return false, false, err
	}
	driven, err = f.store.isDriven(f.place.thread)
	if q := QueueOf(f.store); err == nil && !driven && q != nil {
		job, ok, readErr := q.ReadJob(ctx, f.place.thread)
		queued = ok && !job.GivenUp && (f.Head() == 0 || !waitsUntil(&job, f.reading.Due()))
		err = explainStoreError(ctx, readErr)
	}
	return driven, queued, err
}

// followBatch is the largest number of records whose events one call returns.
const followBatch = 500

// followBytes is the size of the records after which a call returns what it has, in bytes: a reader that is slow keeps
// that much, and one record, in memory.
const followBytes = 256 << 10

// ReadEvents returns what the run has recorded since the last call, oldest first, as events: drives, nodes, steps,
// replies, calls of tools and questions. Each has the number of its record and the path that the event of the drive had.
// There are none of what the journal does not hold, such as the text of a reply as it comes. A call reads at most a few
// hundred records, also those before a turn of a session; more says that there are others, which the next call reads.
// live reports whether the run may record more soon: then the nodes that run next count as started.
func (f *Follower) ReadEvents(ctx context.Context, live bool) (events []graph.Event, more bool, err error) {
	if err := f.locateRun(ctx); err != nil {
		return nil, false, err
	}
	at := &f.place
	size := 0
	count := 0
	span := journal.Range{After: f.reading.Head(), UpTo: at.last, Limit: followBatch}
	for r, err := range f.store.Read(ctx, at.thread, span) {
		if err != nil {
			return nil, false, fmt.Errorf("read thread %s: %w", at.thread, err)
		}
		e, c, err := f.reading.Add(r)
		if err != nil {
			return nil, false, err
		}
		starts := e.Kind == journal.KindStart || e.Kind == journal.KindFork
		if starts && at.first > 0 && e.Seq > at.first { // the next turn of the session
			at.last = e.Seq - 1
			break
		}
		if e.Seq >= at.first {
			fact, _ := newFact(e, c, r.Data) // what cannot be decoded is left out of its events
			read, err := f.readFact(ctx, fact)
			if err != nil {
				return nil, false, err
			}
			events = append(events, read...)
			f.last = e.Seq
		}
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
		f.reading = history.NewReading(at.thread)
	}
	return err
}

// takeStarts returns the starts of nodes that have not been returned yet.
func (f *Follower) takeStarts() []graph.Event {
	events := f.waiting
	f.waiting = nil
	return events
}

// readFact returns the events of the record that was read last.
func (f *Follower) readFact(ctx context.Context, e *fact) (events []graph.Event, err error) {
	f.course.beginFact(e)
	defer f.course.endFact(e)
	path := drivePath(e.Path)
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
		if from := f.course.next[e.Path]; len(from) > 0 {
			events = append(events, event(graph.StepCommitted{
				Nodes: from,
				Keys:  e.Keys,
				Next:  e.Next,
				Moves: []graph.Move{{From: strings.Join(from, ", "), To: e.Next}},
				Seq:   e.Seq,
			}))
		}
	case journal.KindIntent, journal.KindEffect:
		events = append(events, f.readEffect(e, event)...)
	case journal.KindQuestion:
		if e.Question != nil && e.Question.Kind != graph.KindTimer {
			events = append(events, event(graph.QuestionAsked{Question: *e.Question}))
		}
	case journal.KindAnswer:
		if q := f.course.findQuestion(e); q != nil && q.Kind != graph.KindTimer {
			events = append(events, event(graph.QuestionAnswered{ID: q.ID, Ahead: e.Ahead, Refused: e.Refused, By: e.By}))
		}
	case journal.KindEnd:
		f.ended = true
		f.again = f.waiting // nodes that wait continue
		f.waiting = nil
		if e.What != graph.Waiting.String() {
			f.again = f.listUnfinished(event)
		}
		res, err := f.readEnd(ctx, &e.Content)
		if err != nil {
			return nil, err
		}
		events = append(events, event(graph.RunEnded{Result: res}))
	}
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
	for _, path := range slices.Sorted(maps.Keys(f.course.front)) {
		step := f.course.front[path]
		for _, node := range step.nodes {
			if step.done[fmt.Sprintf("%d.%s.0", step.number, node)] {
				continue
			}
			start := event(graph.TaskStarted{})
			start.Path = drivePath(path)
			start.Step = step.number
			start.Node = node
			starts = append(starts, start)
		}
	}
	return starts
}

// readEnd returns how a drive has ended, of whose end the record was read last.
func (f *Follower) readEnd(ctx context.Context, c *history.Content) (res graph.Result, err error) {
	snap, err := f.reading.Snapshot(ctx, nil)
	if err != nil {
		return res, err
	}
	res.Status = snap.Status
	if c.Reason != "" {
		res.Err = errors.New(flow.PlainReason(c.Reason))
	}
	if res.Status == graph.Done || res.Status == graph.Waiting {
		res.Value = snap.Result
		res.Questions = snap.Questions
		res.Steps = snap.Steps
	}
	return res, nil
}

// readEffect returns the events of an effect: a reply, a node's failure, messages to the agent, or a call of a tool that
// starts or ends. A reply contains the calls that it requests.
func (f *Follower) readEffect(e *fact, event func(graph.Body) graph.Event) (events []graph.Event) {
	if e.Kind == journal.KindEffect && flow.IsFailure(e.ID) {
		failed := event(graph.ValueEmitted{Value: flow.NodeFailed{Reason: flow.ReadFailure(e.data)}})
		failed.Node = taskName(e.effect.Task)
		return []graph.Event{failed}
	}
	for _, m := range e.sent {
		taken := event(graph.ValueEmitted{Value: agent.MessageTaken{SentMessage: m}})
		taken.Task = e.effect.Task
		taken.Node = taskName(taken.Task)
		events = append(events, taken)
	}
	if e.reply != nil {
		done := event(graph.ValueEmitted{Value: e.done})
		done.Task = e.effect.Task
		done.Node = taskName(done.Task)
		return []graph.Event{done}
	}
	if e.call == "" {
		return events
	}
	name := e.tool()
	if c := f.course.calls.findCall(e); c != nil && c.Status == callOpen && !c.Reached {
		name = c.Tool
		events = append(events, event(graph.ValueEmitted{Value: agent.ToolStarted{ID: c.ID, Name: c.Tool, Args: c.Args}}))
	}
	if e.made != nil && e.made.Result != nil {
		result := e.made.Result
		done := agent.ToolDone{ID: e.call, Name: name, Error: result.Error, Text: result.Text(), Changes: result.Changes}
		events = append(events, event(graph.ValueEmitted{Value: done}))
	}
	return events
}
