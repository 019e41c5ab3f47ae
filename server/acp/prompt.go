package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/server"
)

// Prompt makes a turn: a new run, or the answer to the question with which the last one ended.
func (e *editor) Prompt(ctx context.Context, req sdk.PromptRequest) (sdk.PromptResponse, error) {
	<-e.ready
	s, err := e.findSession(req.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	// The context of the request also ends when the connection is lost, which cancels nothing.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s.mu.Lock()
	s.cancel = cancel
	waiting := s.waiting
	s.waiting = ""
	s.mu.Unlock()
	go func() {
		select {
		case <-e.conn.Done():
			cancel(errGone)
		case <-ctx.Done():
		}
	}()
	t := &turn{editor: e, session: s, run: waiting, calls: map[string]*callState{}}
	p, err := readPrompt(req.Prompt)
	if err != nil {
		s.keepWaiting(waiting)
		return sdk.PromptResponse{}, newRequestError(s.service, err)
	}
	reason, err := t.work(ctx, p)
	if err != nil {
		return sdk.PromptResponse{}, newRequestError(s.service, err)
	}
	return sdk.PromptResponse{StopReason: reason}, nil
}

// A prompt is what the user of the editor has sent.
type prompt struct {
	text  string
	files []attach.File // pictures and documents
}

// readPrompt reads a prompt. Links become their addresses, and embedded files their text, or their bytes if they are
// pictures or documents.
func readPrompt(blocks []sdk.ContentBlock) (p prompt, err error) {
	var parts []string
	for _, b := range blocks {
		var f attach.File
		switch {
		case b.Text != nil:
			parts = append(parts, b.Text.Text)
		case b.ResourceLink != nil:
			parts = append(parts, "["+b.ResourceLink.Name+"]("+b.ResourceLink.Uri+")")
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			parts = append(parts, "\n"+r.Uri+":\n```\n"+strings.TrimRight(r.Text, "\n")+"\n```\n")
		case b.Image != nil:
			f, err = attach.NewBase64(p.nameFile(b.Image.Uri), b.Image.MimeType, b.Image.Data, attach.MaxText)
		case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
			r := b.Resource.Resource.BlobResourceContents
			mime := ""
			if r.MimeType != nil {
				mime = *r.MimeType
			}
			f, err = attach.NewBase64(p.nameFile(&r.Uri), mime, r.Blob, attach.MaxText)
		case b.Audio != nil:
			err = failure.NewUsage("send text or pictures", "raddle takes no audio")
		}
		if err != nil {
			return p, err
		}
		if f.Name != "" {
			p.files = append(p.files, f)
		}
	}
	p.text = strings.TrimSpace(strings.Join(parts, " "))
	return p, nil
}

// nameFile returns the name of the next file: the last part of its address, or a number. Nothing is read from that
// address.
func (p *prompt) nameFile(uri *string) string {
	if uri != nil {
		if u, err := url.Parse(*uri); err == nil && path.Base(u.Path) != "." && path.Base(u.Path) != "/" {
			return path.Base(u.Path)
		}
	}
	return fmt.Sprintf("attachment %d", len(p.files)+1)
}

// A turn is the work on one prompt.
type turn struct {
	editor  *editor
	session *session
	run     string
	seen    string // id of the last event that was sent
	tracker updates.Tracker
	calls   map[string]*callState
	todo    string // the plan that was sent, as JSON
}

// work makes the turn, and returns why it ended.
func (t *turn) work(ctx context.Context, p prompt) (sdk.StopReason, error) {
	if err := t.begin(ctx, p); err != nil {
		if refused, ok := errors.AsType[*graph.AnswerError](err); ok {
			t.session.keepWaiting(t.run)
			t.sendText(ctx, refused.Reason)
			return sdk.StopReasonEndTurn, nil
		}
		return "", err
	}
	for {
		st, err := t.follow(ctx)
		if err != nil {
			return t.stop(ctx, err)
		}
		if len(st.Questions) == 0 || st.Final {
			return t.end(ctx, st)
		}
		var answers []graph.Answer
		for _, q := range st.Questions {
			if q.Kind != agent.KindPermission {
				continue
			}
			a, err := t.requestPermission(ctx, &q)
			if err != nil {
				return t.stop(ctx, err)
			}
			answers = append(answers, a)
		}
		if len(answers) == 0 {
			return t.ask(ctx, &st.Questions[0])
		}
		if _, err := t.session.service.AnswerRun(context.WithoutCancel(ctx), server.AnswerRequest{Run: t.run, Answers: answers, Protocol: true}); err != nil {
			return "", err
		}
	}
}

// begin starts a run, or answers the question of the one that waits.
func (t *turn) begin(ctx context.Context, p prompt) error {
	s := t.session
	if t.run != "" {
		st, err := s.service.ReadState(ctx, t.run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(st.Questions, func(q graph.Question) bool { return q.Kind != agent.KindPermission })
		switch {
		case i >= 0 && len(p.files) > 0:
			s.keepWaiting(t.run)
			return failure.NewUsage("answer with a text", "the answer to a question is a text: nothing can be attached to it")
		case i >= 0:
			t.skip(ctx)
			_, err = s.service.AnswerRun(ctx, server.AnswerRequest{Run: t.run, Answers: []graph.Answer{readAnswer(&st.Questions[i], p.text)}, Protocol: true})
			return err
		case len(st.Questions) > 0 && !st.Final:
			t.skip(ctx)
			return nil // only permission is missing: it is requested again
		}
		t.run = ""
	}
	if err := t.closeOpenTurn(ctx); err != nil {
		return err
	}
	req := server.StartRequest{Via: "acp", Agent: t.editor.agent, Prompt: p.text, Files: p.files}
	if !s.graph {
		req.Session = s.name
	}
	run, err := s.service.StartRun(ctx, req)
	t.run = run
	return err
}

// closeOpenTurn ends a turn that a kill or a failure left open, permanently: a new prompt follows it.
func (t *turn) closeOpenTurn(ctx context.Context) error {
	if t.session.graph {
		return nil
	}
	c, err := conversation.Open(ctx, t.session.service.Process(), t.editor.agent, t.session.name)
	if err != nil {
		return err
	}
	run, _, err := c.OpenTurn(ctx)
	c.Close()
	if err != nil || run == "" {
		return err
	}
	return t.session.service.CancelRun(ctx, run)
}

// skip makes the turn send nothing of what the run has done so far.
func (t *turn) skip(ctx context.Context) {
	sub, err := t.session.service.Subscribe(ctx, t.run, server.SubscribeOptions{UntilQuestion: true})
	if err != nil {
		return
	}
	for ev, err := range sub.Events() {
		if err != nil {
			return
		}
		if ev.ID != "" {
			t.seen = ev.ID
		}
		t.tracker.HandleEvent(ev.Event)
	}
}

// follow sends what happens until the run ends or waits.
func (t *turn) follow(ctx context.Context) (*server.RunState, error) {
	sub, err := t.session.service.Subscribe(ctx, t.run, server.SubscribeOptions{After: t.seen, UntilQuestion: true})
	if err != nil {
		return nil, err
	}
	for ev, err := range sub.Events() {
		if err != nil {
			break // the context has ended, or the editor reads too slowly
		}
		if ev.ID != "" {
			t.seen = ev.ID
		}
		for _, u := range t.tracker.HandleEvent(ev.Event) {
			t.sendUpdate(ctx, u)
		}
	}
	return t.session.service.WaitRun(ctx, t.run)
}

// end says how the run ended.
func (t *turn) end(ctx context.Context, st *server.RunState) (sdk.StopReason, error) {
	switch {
	case st.Status == graph.Done.String() && t.session.graph:
		t.sendText(ctx, st.Output)
		return sdk.StopReasonEndTurn, nil
	case st.Status == graph.Done.String():
		return sdk.StopReasonEndTurn, nil
	case st.Status == graph.Paused.String() || st.Error == "":
		return "", failure.NewStale("to continue it: raddle resume "+st.Run, "run %s is %s", st.Run, st.Status)
	}
	return "", failure.NewStale("", "%s (run %s)", st.Error, st.Run)
}

// stopTimeout is the time that a run has to end after it was cancelled.
const stopTimeout = 30 * time.Second

// stop ends a turn whose context has ended. If the editor cancelled it, the reply so far is kept, and a run that waits
// ends.
func (t *turn) stop(ctx context.Context, err error) (sdk.StopReason, error) {
	if !errors.Is(context.Cause(ctx), errCancelled) {
		return "", err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	service := t.session.service
	if t.session.graph || service.InterruptRun(ending, t.run) != nil {
		_ = service.CancelRun(ending, t.run) // it may have ended by itself
	}
	if _, err := service.WaitRun(ending, t.run); err != nil {
		return "", err
	}
	return sdk.StopReasonCancelled, nil
}

// The options of a request for permission. There is none for longer: a protocol allows a call once.
const (
	optionAllow = "allow"
	optionDeny  = "deny"
)

// requestPermission asks the user of the editor about a call.
func (t *turn) requestPermission(ctx context.Context, q *graph.Question) (graph.Answer, error) {
	var data agent.CallData
	_ = json.Unmarshal(q.Data, &data) // without it, the prompt says everything
	path := ""
	if asked := t.tracker.FindQuestion(q.ID); asked != nil {
		path = asked.Path
	}
	call := t.announceCall(ctx, &updates.Call{ID: data.ID, Path: path, Name: data.Tool, Args: data.Args})
	res, err := t.editor.conn.RequestPermission(ctx, sdk.RequestPermissionRequest{
		SessionId: t.session.id,
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: call.id, Title: sdk.Ptr(call.title), Kind: sdk.Ptr(call.kind), Status: sdk.Ptr(sdk.ToolCallStatusPending),
			RawInput: data.Args, Content: []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(t.redact(q.Prompt)))},
		},
		Options: []sdk.PermissionOption{
			{OptionId: optionAllow, Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once"},
			{OptionId: optionDeny, Kind: sdk.PermissionOptionKindRejectOnce, Name: "Do not allow"},
		},
	})
	if ctx.Err() != nil {
		return graph.Answer{}, ctx.Err()
	}
	if err != nil {
		return graph.Answer{}, err
	}
	a := graph.Answer{ID: q.ID, Value: "no"}
	if res.Outcome.Selected != nil && res.Outcome.Selected.OptionId == optionAllow {
		a.Value = "once"
	}
	return a, nil
}

// ask ends the turn with a question.
func (t *turn) ask(ctx context.Context, q *graph.Question) (sdk.StopReason, error) {
	text := t.redact(q.Prompt)
	if q.Rejected != "" {
		text += "\n\n" + t.redact(q.Rejected)
	}
	if len(q.Options) > 0 {
		text += "\n"
		for _, o := range q.Options {
			text += "\n- " + o
		}
	}
	if q.Kind == flow.KindTrust {
		t.sendText(ctx, text+"\n\nThis can only be answered with raddle itself: raddle resume "+t.run)
		return sdk.StopReasonEndTurn, nil
	}
	t.session.keepWaiting(t.run)
	t.sendText(ctx, text)
	return sdk.StopReasonEndTurn, nil
}

// keepWaiting makes the next prompt of the session the answer to a question of a run.
func (s *session) keepWaiting(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = run
}

// readAnswer returns a prompt as the answer to a question: one of its options in any case, a value of its type, or the
// text.
func readAnswer(q *graph.Question, prompt string) graph.Answer {
	a := graph.Answer{ID: q.ID, Value: prompt}
	for _, o := range q.Options {
		if strings.EqualFold(strings.TrimSpace(prompt), o) {
			a.Value = o
			return a
		}
	}
	if q.Type != "" && q.Type != "string" && q.Kind != agent.KindCheckbox {
		var value any
		if json.Unmarshal([]byte(prompt), &value) == nil {
			a.Value = value
		}
	}
	return a
}
