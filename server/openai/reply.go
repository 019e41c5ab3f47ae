package openai

import (
	"strings"

	"raddle.dev/internal/report/updates"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// The reasons why a completion ends.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishFilter = "content_filter"
)

// A delta is a piece of a message.
type delta struct {
	Role      string `json:"role,omitempty"`
	Content   string `json:"content,omitempty"`
	Reasoning string `json:"reasoning_content,omitempty"`
}

// A reply collects what a run says for the user. An agent may reply several times, with calls of tools between the
// replies: the message has the texts of all replies as paragraphs. Of a graph, it has only the output.
type reply struct {
	talks bool
	send  func(delta)
	usage llm.Usage
	stop  llm.StopReason // of the last reply that is complete

	tracker updates.Tracker
	text    strings.Builder // all that was sent
	last    *updates.Reply  // the one whose text was sent last
}

// handleEvent sends what an event adds to the message.
func (r *reply) handleEvent(ev *server.Event) {
	for _, u := range r.tracker.HandleEvent(ev.Event) {
		r.handleUpdate(u)
	}
}

// handleUpdate sends what an update adds to the message. What was sent cannot be taken back: if a reply is now another
// one, all of it follows.
func (r *reply) handleUpdate(u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.TextAdded:
		if !r.isForUser(u.Reply) {
			return
		}
		if u.First {
			r.separate()
		}
		r.write(u.Text)
		r.last = u.Reply
	case updates.ReasoningAdded:
		if r.isForUser(u.Reply) {
			r.send(delta{Reasoning: u.Text})
		}
	case updates.ReplyWithdrawn:
		switch {
		case !r.isForUser(u.Reply):
		case u.Reasoning:
			r.send(delta{Reasoning: "\n\n"})
		case u.Why != "":
			r.sendBlock("[" + u.Why + "]")
		}
	case updates.ReplyEnded:
		r.usage = r.usage.Add(u.Done.Usage)
		if r.isForUser(u.Reply) {
			r.last = u.Reply
			r.stop = u.Done.Stop
		}
	}
}

// isForUser reports whether a reply is a part of the message: of a team, only those of the lead are.
func (r *reply) isForUser(said *updates.Reply) bool { return r.talks && said.Path == "" }

// sendOutput sends the output of the run, unless it was the last reply.
func (r *reply) sendOutput(output string) {
	if r.last == nil || strings.TrimSpace(output) != strings.TrimSpace(r.last.Text()) {
		r.sendBlock(output)
	}
}

// sendBlock sends a text as a paragraph.
func (r *reply) sendBlock(text string) {
	if text != "" {
		r.separate()
		r.write(text)
	}
}

// separate ends the paragraph that was sent.
func (r *reply) separate() {
	sent := r.text.String()
	switch {
	case sent == "" || strings.HasSuffix(sent, "\n\n"):
	case strings.HasSuffix(sent, "\n"):
		r.write("\n")
	default:
		r.write("\n\n")
	}
}

func (r *reply) write(text string) {
	r.text.WriteString(text)
	r.send(delta{Content: text})
}

// finishReason returns why the message ends.
func (r *reply) finishReason() string {
	switch r.stop {
	case llm.StopLength:
		return finishLength
	case llm.StopFilter:
		return finishFilter
	}
	return finishStop
}
