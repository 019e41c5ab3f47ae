package a2a

import (
	"context"
	"strconv"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// A streamer sends the events of a run as those of its task.
type streamer struct {
	book   *book
	info   a2a.TaskInfo
	redact func(string) string
	yield  func(a2a.Event, error) bool
	left   bool // the client has left
}

// streamRun sends a task, and what happens after a position until the run ends, stops or asks. The client's leaving
// changes nothing for the run.
func (t *tasks) streamRun(ctx context.Context, run, after string, yield func(a2a.Event, error) bool) {
	st, err := t.service.ReadState(ctx, run)
	if err != nil {
		yield(nil, t.explainError(err))
		return
	}
	task, err := t.readTask(ctx, st, -1, after != "")
	if err != nil {
		yield(nil, t.explainError(err))
		return
	}
	if !task.Status.State.Terminal() || after == "" { // the stream says how the run ends
		task.Status = a2a.TaskStatus{State: a2a.TaskStateWorking, Timestamp: task.Status.Timestamp}
		if st.Status == runs.Queued {
			task.Status.State = a2a.TaskStateSubmitted
		}
	}
	if !yield(task, nil) {
		return
	}
	s := &streamer{book: newBook(task), info: task.TaskInfo(), yield: yield, redact: t.service.Process().Tools.SecretSet().Text}
	if after != "" { // replies are counted from the start of the run
		if err := t.countReplies(ctx, s, run, after); err != nil {
			yield(nil, t.explainError(err))
			return
		}
	}
	for {
		sub, err := t.service.Subscribe(ctx, run, server.SubscribeOptions{After: after, UntilQuestion: true})
		if err != nil {
			yield(nil, t.explainError(err))
			return
		}
		for ev, err := range sub.Events() {
			if err != nil {
				yield(nil, t.explainError(err))
				return
			}
			if ev.ID != "" {
				after = ev.ID
			}
			if s.translate(&ev); s.left {
				return
			}
		}
		if st, err = t.service.ReadState(ctx, run); err != nil {
			yield(nil, t.explainError(err))
			return
		}
		status := t.statusOf(st, s.info)
		if status.State == a2a.TaskStateWorking || status.State == a2a.TaskStateSubmitted {
			continue
		}
		if a := outputOf(st, s.book.last); a != nil {
			s.send(&a2a.TaskArtifactUpdateEvent{TaskID: s.info.TaskID, ContextID: s.info.ContextID, Artifact: a, LastChunk: true})
		}
		s.send(&a2a.TaskStatusUpdateEvent{TaskID: s.info.TaskID, ContextID: s.info.ContextID, Status: status})
		return
	}
}

// countReplies notes the replies of a run up to a record.
func (t *tasks) countReplies(ctx context.Context, s *streamer, run, record string) error {
	head, err := strconv.ParseInt(record, 10, 64)
	if err != nil {
		return err
	}
	follower := t.service.Process().Runs.FollowRun(run)
	for more := true; more; {
		var events []graph.Event
		var err error
		if events, more, err = follower.ReadEvents(ctx, false); err != nil {
			return err
		}
		for i := range events {
			if events[i].Record <= head {
				s.book.readEvent(events[i])
			}
		}
	}
	return nil
}

// send passes an event to the client.
func (s *streamer) send(e a2a.Event) {
	if !s.left && !s.yield(e, nil) {
		s.left = true
	}
}

// translate sends what an event means to a client.
func (s *streamer) translate(ev *server.Event) {
	node := ev.Path + ev.Node
	for _, u := range s.book.readEvent(ev.Event) {
		switch u := u.(type) {
		case updates.StepStarted:
			s.sendStatus(map[string]any{"node": node}, nil)
		case updates.TextAdded: // the first piece replaces what the artifact has
			s.sendText(u.Reply, u.Text, !u.First, u.Reply.Done)
		case updates.ReplyEnded:
			if !u.Missing && u.Reply.Text() != "" {
				s.sendText(u.Reply, "", true, true)
			}
		case updates.CallStarted:
			s.sendStatus(map[string]any{"node": node, "tool": u.Call.Name, "call": u.Call.ID}, a2a.NewTextPart("Calls "+u.Call.Name+"."))
		case updates.CallEnded:
			s.sendStatus(map[string]any{"node": node, "tool": u.Call.Name, "call": u.Call.ID, "done": true, "error": u.Done.Error}, nil)
		case updates.ValueAdded:
			if v, ok := u.Value.(graph.Progress); ok {
				s.sendStatus(map[string]any{"node": node, "part": v.Part}, a2a.NewTextPart(s.redact(v.Note)))
			}
		}
	}
}

// sendText sends a piece of a reply. more says that it follows what the artifact has.
func (s *streamer) sendText(reply *updates.Reply, text string, more, last bool) {
	s.send(&a2a.TaskArtifactUpdateEvent{TaskID: s.info.TaskID, ContextID: s.info.ContextID, Append: more, LastChunk: last,
		Artifact: &a2a.Artifact{ID: a2a.ArtifactID(reply.ID()), Name: "reply", Parts: a2a.ContentParts{a2a.NewTextPart(s.redact(text))}}})
}

// sendStatus sends that the run works, on what, and a note if there is one.
func (s *streamer) sendStatus(what map[string]any, note *a2a.Part) {
	var m *a2a.Message
	if note != nil && note.Text() != "" {
		m = a2a.NewMessageForTask(a2a.MessageRoleAgent, s.info, note)
	}
	e := a2a.NewStatusUpdateEvent(s.info, a2a.TaskStateWorking, m)
	e.Metadata = map[string]any{"raddle": what}
	s.send(e)
}
