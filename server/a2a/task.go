package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// stateOf returns the state of a task whose run has a status.
func stateOf(status string) a2a.TaskState {
	switch status {
	case runs.Queued:
		return a2a.TaskStateSubmitted
	case runs.Running:
		return a2a.TaskStateWorking
	case graph.Done.String():
		return a2a.TaskStateCompleted
	case graph.Canceled.String(), graph.Abandoned.String():
		return a2a.TaskStateCanceled
	case graph.Waiting.String(), graph.Paused.String(), runs.Crashed, runs.GivenUp:
		return a2a.TaskStateInputRequired
	}
	return a2a.TaskStateFailed
}

// readTask returns a run as a task. history is the number of messages; negative: all.
func (t *tasks) readTask(ctx context.Context, st *server.RunState, history int, artifacts bool) (*a2a.Task, error) {
	own, err := t.contexts.findContext(ctx, st.Run, st.Session)
	if err != nil {
		return nil, err
	}
	task := &a2a.Task{ID: a2a.TaskID(st.Run), ContextID: own, Status: t.statusOf(st, a2a.TaskInfo{TaskID: a2a.TaskID(st.Run), ContextID: own})}
	task.Metadata = map[string]any{"raddle": map[string]any{"agent": st.Agent, "status": st.Status}}
	if history == 0 && !artifacts {
		return task, nil
	}
	b := newBook(task)
	if st.Prompt != "" {
		b.addMessage(a2a.MessageRoleUser, "prompt", st.Prompt)
	}
	follower := t.service.Process().Runs.FollowRun(st.Run)
	for more := true; more; {
		var events []graph.Event
		var err error
		if events, more, err = follower.ReadEvents(ctx, false); err != nil {
			return nil, err
		}
		for i := range events {
			b.readEvent(events[i])
		}
	}
	b.finish(st)
	task.History = b.history
	task.Artifacts = b.artifacts
	if history >= 0 && len(task.History) > history {
		task.History = task.History[len(task.History)-history:]
	}
	if !artifacts {
		task.Artifacts = nil
	}
	return task, nil
}

// statusOf returns the state of the run of a task with the message that explains it.
func (t *tasks) statusOf(st *server.RunState, info a2a.TaskInfo) a2a.TaskStatus {
	updated := st.Updated
	status := a2a.TaskStatus{State: stateOf(st.Status), Timestamp: &updated}
	var parts []*a2a.Part
	switch status.State {
	case a2a.TaskStateInputRequired:
		for i := range st.Questions {
			parts = append(parts, describeQuestion(&st.Questions[i])...)
		}
		if len(st.Questions) == 0 {
			parts = append(parts, a2a.NewTextPart("The run is paused. Any message continues it."))
		}
	case a2a.TaskStateFailed:
		reason := cmp.Or(st.Error, "the run ended: "+st.Status)
		parts = append(parts, a2a.NewTextPart(reason))
	}
	if parts != nil {
		status.Message = a2a.NewMessageForTask(a2a.MessageRoleAgent, info, parts...)
		status.Message.ID = st.Run + "/status"
	}
	return status
}

// describeQuestion returns a question as text, and as data for programs.
func describeQuestion(q *graph.Question) []*a2a.Part {
	text := q.Prompt
	if q.Rejected != "" {
		text += "\n(" + q.Rejected + ")"
	}
	data := map[string]any{"id": q.ID, "kind": q.Kind, "options": q.Options, "free": q.Free, "default": q.Default, "type": q.Type}
	var call agent.CallData
	if q.Kind == agent.KindPermission && json.Unmarshal(q.Data, &call) == nil {
		data["options"] = []string{"once", "no"} // what an answer over a protocol can allow
		data["call"] = map[string]any{"id": call.ID, "tool": call.Tool, "args": call.Args}
	}
	return []*a2a.Part{a2a.NewTextPart(text), a2a.NewDataPart(map[string]any{"question": data})}
}

// A book collects the messages and the artifacts of a task from the events of its run.
type book struct {
	task      *a2a.Task
	tracker   updates.Tracker
	history   []*a2a.Message
	artifacts []*a2a.Artifact
	last      string // text of the last reply
}

func newBook(task *a2a.Task) *book {
	return &book{task: task, tracker: updates.Tracker{Calls: updates.Calls{Replies: updates.Replies{Replaces: true}}}}
}

// addMessage appends a message to the history.
func (b *book) addMessage(role a2a.MessageRole, id, text string) {
	m := a2a.NewMessageForTask(role, b.task, a2a.NewTextPart(text))
	m.ID = string(b.task.ID) + "/" + id
	b.history = append(b.history, m)
}

// readEvent takes one event of the run, and returns what it adds.
func (b *book) readEvent(ev graph.Event) []updates.RunUpdate {
	list := b.tracker.HandleEvent(ev)
	for _, u := range list {
		switch u := u.(type) {
		case updates.QuestionAsked:
			b.addMessage(a2a.MessageRoleAgent, "question/"+strconv.FormatInt(u.Question.Record, 10), u.Question.Prompt)
		case updates.ReplyEnded:
			text := u.Reply.Text()
			if text == "" {
				continue
			}
			b.last = text
			b.artifacts = append(b.artifacts, &a2a.Artifact{ID: a2a.ArtifactID(u.Reply.ID()), Name: "reply", Parts: a2a.ContentParts{a2a.NewTextPart(text)}})
			b.addMessage(a2a.MessageRoleAgent, u.Reply.ID(), text)
		}
	}
	return list
}

// outputID is the id of the artifact with the output of a graph.
const outputID = a2a.ArtifactID("output")

// finish adds the output of a run that is done, unless its last reply says the same.
func (b *book) finish(st *server.RunState) {
	if a := outputOf(st, b.last); a != nil {
		b.artifacts = append(b.artifacts, a)
	}
}

// outputOf returns the output of a run that is done as an artifact, or nil if the last reply says the same.
func outputOf(st *server.RunState, last string) *a2a.Artifact {
	if strings.TrimSpace(st.Output) == "" || strings.TrimSpace(st.Output) == strings.TrimSpace(last) {
		return nil
	}
	a := &a2a.Artifact{ID: outputID, Name: "output", Parts: a2a.ContentParts{a2a.NewTextPart(st.Output)}}
	if st.ExitCode != 0 {
		a.Metadata = map[string]any{"raddle": map[string]any{"exit_code": st.ExitCode}}
	}
	return a
}
