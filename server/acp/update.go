package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"raddle.dev/agent"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/report/updates"
	"raddle.dev/tool"
)

// A callState is a call that the editor knows.
type callState struct {
	id     sdk.ToolCallId
	title  string
	kind   sdk.ToolKind
	output string // what it has printed
}

// send sends an update. A connection that was lost is seen elsewhere.
func (e *editor) send(ctx context.Context, s *session, u sdk.SessionUpdate) {
	_ = e.conn.SessionUpdate(context.WithoutCancel(ctx), sdk.SessionNotification{SessionId: s.id, Update: u})
}

func (t *turn) send(ctx context.Context, u sdk.SessionUpdate) { t.editor.send(ctx, t.session, u) }

func (t *turn) sendText(ctx context.Context, text string) {
	if text != "" {
		t.send(ctx, sdk.UpdateAgentMessageText(t.redact(text)))
	}
}

// redact removes the secrets that the process knows from a text.
func (t *turn) redact(text string) string {
	return t.session.service.Process().Tools.SecretSet().Text(text)
}

// sendUpdate sends what an event of the run adds. The replies inside of a graph are not its output.
func (t *turn) sendUpdate(ctx context.Context, u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.StateChanged:
		if !u.Start {
			t.sendPlan(ctx)
		}
	case updates.StepStarted:
		if t.session.graph && u.Step.Path == "" {
			t.send(ctx, sdk.UpdateAgentThoughtText(u.Step.Node+"\n"))
		}
	case updates.TextAdded:
		if !t.session.graph {
			t.sendText(ctx, u.Text)
		}
	case updates.ReasoningAdded:
		t.send(ctx, sdk.UpdateAgentThoughtText(t.redact(u.Text)))
	case updates.ReplyWithdrawn:
		t.sendWithdrawn(ctx, u)
	case updates.CallStarted:
		call := t.announceCall(ctx, u.Call)
		t.send(ctx, sdk.UpdateToolCall(call.id, sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case updates.CallOutput:
		t.sendOutput(ctx, t.announceCall(ctx, u.Call), u.Text)
	case updates.CallEnded:
		t.sendDone(ctx, t.announceCall(ctx, u.Call), u.Done)
	}
}

// sendWithdrawn says that a reply starts again: what was sent of it cannot be taken back.
func (t *turn) sendWithdrawn(ctx context.Context, u updates.ReplyWithdrawn) {
	switch {
	case u.Reasoning:
		t.send(ctx, sdk.UpdateAgentThoughtText("\n\n"))
	case t.session.graph:
	case u.Why == "":
		t.sendText(ctx, "\n\n")
	default:
		t.sendText(ctx, "\n\n["+u.Why+"]\n\n")
	}
}

// announceCall makes a call known to the editor.
func (t *turn) announceCall(ctx context.Context, call *updates.Call) *callState {
	key := call.Key()
	args := call.Args
	if c := t.calls[key]; c != nil {
		return c
	}
	c := &callState{id: sdk.ToolCallId(t.run + "/" + key), title: describeCall(call.Name, args), kind: kindOfTool(call.Name)}
	c.title = t.redact(c.title)
	t.calls[key] = c
	options := []sdk.ToolCallStartOpt{sdk.WithStartKind(c.kind), sdk.WithStartStatus(sdk.ToolCallStatusPending)}
	if len(args) > 0 {
		options = append(options, sdk.WithStartRawInput(json.RawMessage(t.redact(string(args)))))
	}
	t.send(ctx, sdk.StartToolCall(c.id, c.title, options...))
	return c
}

// maxTitle is the length of the title of a call, in characters.
const maxTitle = 100

// describeCall returns a call on one line: its command if it has one, otherwise its tool and arguments.
func describeCall(name string, args json.RawMessage) string {
	var command struct{ Command string }
	if json.Unmarshal(args, &command) == nil && command.Command != "" {
		return wording.CutText(strings.Join(strings.Fields(command.Command), " "), maxTitle, "…")
	}
	return wording.CutText(strings.TrimSpace(name+" "+strings.Join(strings.Fields(string(args)), " ")), maxTitle, "…")
}

// toolKinds are the kinds of tools by patterns of their names.
var toolKinds = []struct {
	pattern string
	kind    sdk.ToolKind
}{
	{"fs_cat", sdk.ToolKindRead}, {"fs_ls", sdk.ToolKindRead}, {"fs_read*", sdk.ToolKindRead}, {"fs_rm", sdk.ToolKindDelete}, {"fs_g*", sdk.ToolKindSearch},
	{"fs_*", sdk.ToolKindEdit}, {"apply_patch", sdk.ToolKindEdit}, {"execute_command", sdk.ToolKindExecute}, {"fetch_*", sdk.ToolKindFetch}, {"web_*", sdk.ToolKindSearch}, {"search_*", sdk.ToolKindSearch},
	{"todo__*", sdk.ToolKindThink},
}

func kindOfTool(name string) sdk.ToolKind {
	for _, k := range toolKinds {
		if ok, _ := path.Match(k.pattern, name); ok {
			return k.kind
		}
	}
	return sdk.ToolKindOther
}

// maxOutput is how much of the output of a call is sent while it runs, in bytes.
const maxOutput = 16 << 10

// sendOutput sends what a call has printed, the end of it if it is long.
func (t *turn) sendOutput(ctx context.Context, c *callState, text string) {
	c.output += text
	if cut := len(c.output) - maxOutput; cut > 0 {
		c.output = strings.ToValidUTF8(c.output[cut:], "")
	}
	t.send(ctx, sdk.UpdateToolCall(c.id, sdk.WithUpdateContent([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(t.redact(c.output)))})))
}

// sendDone sends the outcome of a call, with the files that it has changed.
func (t *turn) sendDone(ctx context.Context, c *callState, v agent.ToolDone) {
	status := sdk.ToolCallStatusCompleted
	if v.Error {
		status = sdk.ToolCallStatusFailed
	}
	content := []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(t.redact(v.Text)))}
	var places []sdk.ToolCallLocation
	for _, change := range v.Changes {
		places = append(places, sdk.ToolCallLocation{Path: change.Path})
		if diff, ok := t.newDiff(change); ok {
			content = append(content, diff)
		}
	}
	t.send(ctx, sdk.UpdateToolCall(c.id, sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content), sdk.WithUpdateLocations(places)))
}

// newDiff returns the change of a file. ok is false if its text is withheld.
func (t *turn) newDiff(change tool.FileChange) (diff sdk.ToolCallContent, ok bool) {
	change = change.Redact(t.redact)
	if change.Withheld != "" || change.Before == nil && change.After == nil {
		return diff, false
	}
	after := ""
	if change.After != nil {
		after = change.After.Text
	}
	if change.Before == nil {
		return sdk.ToolDiffContent(change.Path, after), true
	}
	return sdk.ToolDiffContent(change.Path, after, change.Before.Text), true
}

// sendPlan sends the todo list of the agent if it has changed.
func (t *turn) sendPlan(ctx context.Context) {
	d, err := t.session.service.Process().Runs.ReadRunDetail(ctx, t.run)
	if err != nil {
		return
	}
	var list agent.TodoList
	for _, v := range d.Snapshot.Values {
		if v.Key == agent.Todo.Name() && json.Unmarshal(bytes.Join(v.Parts, nil), &list) != nil {
			return
		}
	}
	text, err := json.Marshal(list)
	if err != nil || string(text) == t.todo || t.todo == "" && len(list.Items) == 0 {
		return
	}
	t.todo = string(text)
	entries := []sdk.PlanEntry{}
	for _, item := range list.Items {
		status := sdk.PlanEntryStatusPending
		if item.Done {
			status = sdk.PlanEntryStatusCompleted
		}
		entries = append(entries, sdk.PlanEntry{Content: t.redact(item.Desc), Priority: sdk.PlanEntryPriorityMedium, Status: status})
	}
	t.send(ctx, sdk.UpdatePlan(entries...))
}

// replayTurns sends earlier turns.
func (e *editor) replayTurns(ctx context.Context, s *session, turns []conversation.Turn) error {
	<-e.ready
	for _, done := range turns {
		t := &turn{editor: e, session: s, run: done.Run, calls: map[string]*callState{}}
		e.send(ctx, s, sdk.UpdateUserMessageText(t.redact(done.Prompt)))
		for _, call := range done.Calls {
			c := t.announceCall(ctx, &updates.Call{ID: call.ID, Name: call.Name, Args: call.Args})
			if status := sdk.ToolCallStatusCompleted; call.Done {
				if !call.OK {
					status = sdk.ToolCallStatusFailed
				}
				e.send(ctx, s, sdk.UpdateToolCall(c.id, sdk.WithUpdateStatus(status)))
			}
		}
		t.sendText(ctx, done.Reply)
	}
	return ctx.Err()
}
