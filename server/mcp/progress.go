package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/flow/narrate"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/updates"
	"raddle.dev/server"
)

// progress notifies a client of what its call does: the lines of the command line, and the replies of an agent line by
// line.
type progress struct {
	session  *sdk.ServerSession
	token    any
	sent     float64 // increases with each notification
	ctx      context.Context
	narrator *narrate.Narrator
	replies  bool // the texts of replies are shown
	tracker  updates.Tracker
	pending  map[string]string // beginnings of lines, by the ids of their replies
}

// newProgress returns the progress of a call, or nil if the client does not want to know it.
func (b *bridge) newProgress(ctx context.Context, req *sdk.CallToolRequest, name string) (p *progress, end func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, func() {}
	}
	p = &progress{session: req.Session, token: token, ctx: ctx, pending: map[string]string{}}
	info, a, err := b.service.LoadAgent(name)
	if err != nil {
		return p, func() {} // the agent has gone: there are no lines
	}
	p.narrator = narrate.New(p, a, false)
	p.replies = !info.IsGraph()
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
	if p.replies {
		for _, u := range p.tracker.HandleEvent(ev.Event) {
			p.handleUpdate(u)
		}
	}
	if p.narrator != nil {
		p.narrator.Event(ev.Event)
	}
}

// handleUpdate sends the finished lines of replies.
func (p *progress) handleUpdate(u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.TextAdded:
		id := u.Reply.ID()
		text := p.pending[id] + u.Text
		end := strings.LastIndexByte(text, '\n') + 1
		_, _ = p.Write([]byte(text[:end]))
		p.pending[id] = text[end:]
	case updates.ReplyWithdrawn:
		if !u.Reasoning {
			delete(p.pending, u.Reply.ID())
		}
	case updates.ReplyEnded:
		_, _ = p.Write([]byte(p.pending[u.Reply.ID()]))
		delete(p.pending, u.Reply.ID())
	}
}
