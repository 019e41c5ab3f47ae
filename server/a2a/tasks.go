package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// tasks are the runs of one agent, as the protocol sees them.
type tasks struct {
	service  *server.Service
	agent    *server.AgentInfo
	contexts contextNotes
}

// findState returns the state of the run of a task.
func (t *tasks) findState(ctx context.Context, id a2a.TaskID) (*server.RunState, error) {
	if id == "" {
		return nil, a2a.NewError(a2a.ErrInvalidParams, "the request names no task")
	}
	st, err := t.service.ReadState(ctx, string(id))
	if errors.As(err, new(*server.ScopeError)) || failure.IsUnavailable(err) {
		return nil, t.explainError(err)
	}
	if err != nil || st.Run != string(id) || st.Agent != t.agent.Name {
		return nil, a2a.NewError(a2a.ErrTaskNotFound, fmt.Sprintf("the agent %s has no task %q", t.agent.Name, id))
	}
	return st, nil
}

// explainError returns an error of the service as one of the protocol.
func (t *tasks) explainError(err error) error {
	var fail *failure.Error
	switch {
	case err == nil || errors.As(err, new(*a2a.Error)):
		return err
	}
	text := server.HidePaths(err.Error(), t.service)
	switch {
	case errors.As(err, new(*server.ScopeError)):
		return a2a.NewError(a2a.ErrUnauthorized, text)
	case errors.As(err, new(*server.QuotaError)):
		return a2a.NewError(a2a.ErrServerError, text)
	case errors.As(err, new(*graph.AnswerError)), errors.As(err, new(*server.ProtocolAnswerError)):
		return a2a.NewError(a2a.ErrInvalidParams, text)
	case errors.As(err, new(*server.DiskLowError)):
		return a2a.NewError(a2a.ErrInternalError, "disk-low: "+text+"; try again in "+server.RetryAfter+" seconds")
	case failure.IsUnavailable(err):
		return a2a.NewError(a2a.ErrInternalError, "store-unavailable: "+text+"; try again in "+server.RetryAfter+" seconds")
	case errors.As(err, &fail):
		if fail.Next != "" {
			text += ": " + server.HidePaths(fail.Next, t.service)
		}
		if fail.Kind == failure.Stale {
			return a2a.NewError(a2a.ErrUnsupportedOperation, text)
		}
		return a2a.NewError(a2a.ErrInvalidParams, text)
	}
	return a2a.NewError(a2a.ErrInternalError, text)
}

// GetTask implements the protocol's method.
func (t *tasks) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	st, err := t.findState(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	task, err := t.readTask(ctx, st, historyOf(req.HistoryLength, -1), true)
	return task, t.explainError(err)
}

// historyOf returns how many messages a request wants.
func historyOf(n *int, usual int) int {
	if n == nil {
		return usual
	}
	return max(*n, 0)
}

// The sizes of pages.
const (
	usualPage = 50
	maxTasks  = 100
)

// ListTasks implements the protocol's method. Tasks that changed last come first. Of the tasks of one context the
// newest is listed.
func (t *tasks) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	if err := t.service.RequireScope(ctx, server.ScopeRead); err != nil {
		return nil, t.explainError(err)
	}
	size := cmp.Or(req.PageSize, usualPage)
	if size < 1 || size > maxTasks {
		return nil, a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf("the page size %d must be from 1 to %d", size, maxTasks))
	}
	var all []runs.Info
	for i, err := range t.service.Process().Runs.EachRun(ctx, runs.RunRange{Agent: t.agent.Name}) {
		if err != nil {
			return nil, t.explainError(err)
		}
		listed, err := t.isListed(ctx, &i, req)
		if err != nil {
			return nil, t.explainError(err)
		}
		if listed {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b runs.Info) int { return cmp.Compare(positionOf(&b), positionOf(&a)) })
	page := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, TotalSize: len(all)}
	after, err := base64.RawURLEncoding.DecodeString(req.PageToken)
	if err != nil {
		return nil, a2a.NewError(a2a.ErrInvalidParams, "the page token is not one of this server")
	}
	for i := range all {
		if len(after) > 0 && positionOf(&all[i]) >= string(after) {
			continue
		}
		if len(page.Tasks) == size {
			page.NextPageToken = base64.RawURLEncoding.EncodeToString([]byte(positionOf(&all[i-1])))
			break
		}
		task, err := t.readListed(ctx, all[i].Run, req)
		if runs.IsDamage(err) { // the others can be listed
			continue
		}
		if err != nil {
			return nil, t.explainError(err)
		}
		page.Tasks = append(page.Tasks, task)
	}
	page.PageSize = len(page.Tasks)
	return page, nil
}

// readListed reads a task for a list.
func (t *tasks) readListed(ctx context.Context, run string, req *a2a.ListTasksRequest) (*a2a.Task, error) {
	st, err := t.service.ReadState(ctx, run)
	if err != nil {
		return nil, err
	}
	return t.readTask(ctx, st, historyOf(req.HistoryLength, 0), req.IncludeArtifacts)
}

// positionOf returns the place of a run among others: the time of its last change, then its id.
func positionOf(i *runs.Info) string {
	return i.Updated.UTC().Format("2006-01-02T15:04:05.000000000") + i.Run
}

// isListed reports whether a request is about a run.
func (t *tasks) isListed(ctx context.Context, i *runs.Info, req *a2a.ListTasksRequest) (bool, error) {
	switch {
	case i.Agent != t.agent.Name, i.Status == runs.Damaged:
		return false, nil
	case req.Status != "" && stateOf(i.Status) != req.Status:
		return false, nil
	case req.StatusTimestampAfter != nil && !i.Updated.After(*req.StatusTimestampAfter):
		return false, nil
	case req.ContextID == "":
		return true, nil
	}
	own, err := t.contexts.findContext(ctx, i.Run, i.Session)
	return own == req.ContextID, err
}

// CancelTask implements the protocol's method: the run ends permanently, also while it works.
func (t *tasks) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	st, err := t.findState(ctx, req.ID)
	if err != nil {
		return nil, err
	}
	if stateOf(st.Status).Terminal() {
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, fmt.Sprintf("the task has ended: %s", st.Status))
	}
	if err := t.service.CancelRun(ctx, st.Run); err != nil {
		return nil, t.explainError(err)
	}
	return t.GetTask(ctx, &a2a.GetTaskRequest{ID: req.ID})
}

// SendMessage implements the protocol's method: the message starts a run, or answers a question of one.
func (t *tasks) SendMessage(ctx context.Context, req *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	run, _, err := t.takeMessage(ctx, req)
	if err != nil {
		return nil, t.explainError(err)
	}
	history := -1
	read := t.service.WaitRun
	if req.Config != nil {
		history = historyOf(req.Config.HistoryLength, -1)
		if req.Config.ReturnImmediately {
			read = t.service.ReadState
		}
	}
	st, err := read(ctx, run)
	if err != nil {
		return nil, t.explainError(err)
	}
	task, err := t.readTask(ctx, st, history, true)
	return task, t.explainError(err)
}

// SendStreamingMessage implements the protocol's method.
func (t *tasks) SendStreamingMessage(ctx context.Context, req *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		run, after, err := t.takeMessage(ctx, req)
		if err != nil {
			yield(nil, t.explainError(err))
			return
		}
		t.streamRun(ctx, run, after, yield)
	}
}

// SubscribeToTask implements the protocol's method.
func (t *tasks) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		st, err := t.findState(ctx, req.ID)
		if err == nil && stateOf(st.Status).Terminal() {
			err = a2a.NewError(a2a.ErrUnsupportedOperation, fmt.Sprintf("the task has ended: %s", st.Status))
		}
		if err != nil {
			yield(nil, err)
			return
		}
		t.streamRun(ctx, st.Run, st.Position(), yield)
	}
}

// GetTaskPushConfig implements the protocol's method: there are no push notifications.
func (t *tasks) GetTaskPushConfig(context.Context, *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// ListTaskPushConfigs implements the protocol's method: there are no push notifications.
func (t *tasks) ListTaskPushConfigs(context.Context, *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// CreateTaskPushConfig implements the protocol's method: there are no push notifications.
func (t *tasks) CreateTaskPushConfig(context.Context, *a2a.PushConfig) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// DeleteTaskPushConfig implements the protocol's method: there are no push notifications.
func (t *tasks) DeleteTaskPushConfig(context.Context, *a2a.DeleteTaskPushConfigRequest) error {
	return a2a.ErrPushNotificationNotSupported
}

// GetExtendedAgentCard implements the protocol's method: the public card says everything.
func (t *tasks) GetExtendedAgentCard(context.Context, *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	return nil, a2a.ErrExtendedCardNotConfigured
}

// newContext returns a context for a task whose client names none.
func newContext() string { return strings.ToLower(a2a.NewContextID()) }
