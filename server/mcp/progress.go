package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/wording"
	"raddle.dev/server"
)

// progress notifies a client of what its call does: the lines of the command line, and the replies of an agent line by line.
type progress struct {
	session  *sdk.ServerSession
	token    any
	sent     float64 // increases with each notification
	ctx      context.Context
	narrator *flow.Narrator
	replies  map[string]*reply // by the tasks that write them; nil: replies are not shown
}

// A reply is what a model has written so far.
type reply struct {
	text strings.Builder
	sent int // bytes that were notified
}

// newProgress returns the progress of a call, or nil if the client does not want to know it.
func (b *bridge) newProgress(ctx context.Context, req *sdk.CallToolRequest, name string) (p *progress, end func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, func() {}
	}
	p = &progress{session: req.Session, token: token, ctx: ctx}
	info, a, err := b.service.LoadAgent(name)
	if err != nil {
		return p, func() {} // the agent has gone: there are no lines
	}
	p.narrator = flow.NewNarrator(p, a, false)
	if !info.IsGraph() {
		p.replies = map[string]*reply{}
	}
	return p, func() { _ = a.Close() }
}

// maxMessage is how much of a line is notified, in bytes.
const maxMessage = 2000

// Write notifies the client of lines.
func (p *progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		p.notify(strings.TrimPrefix(strings.TrimRight(line, "\n"), "▸ "))
	}
	return len(text), nil
}

func (p *progress) notify(line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	p.sent++
	_ = p.session.NotifyProgress(p.ctx, &sdk.ProgressNotificationParams{ // a client that has gone needs no progress
		ProgressToken: p.token, Progress: p.sent, Message: wording.CutText(line, maxMessage, "…"),
	})
}

// handleEvent notifies the client of an event.
func (p *progress) handleEvent(ev *server.Event) {
	if emitted, ok := ev.Body.(graph.ValueEmitted); ok && p.replies != nil {
		p.handleReply(ev.Path+ev.Task, emitted.Value)
	}
	if p.narrator != nil {
		p.narrator.Event(ev.Event)
	}
}

// handleReply sends the finished lines of replies.
func (p *progress) handleReply(task string, v any) {
	r := p.replies[task]
	if r == nil {
		r = &reply{}
		p.replies[task] = r
	}
	switch v := v.(type) {
	case agent.TextDelta:
		r.text.WriteString(v.Text)
		if end := strings.LastIndexByte(r.text.String(), '\n'); end >= r.sent {
			_, _ = p.Write([]byte(r.text.String()[r.sent : end+1]))
			r.sent = end + 1
		}
	case agent.ReplyDone:
		whole := v.Message.Text()
		_, _ = p.Write([]byte(whole[min(r.sent, len(whole)):]))
		delete(p.replies, task)
	case agent.RetryScheduled:
		delete(p.replies, task)
	}
}
