package openai

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/server"
	"raddle.dev/team"
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

// A reply collects what a run says for the user. An agent may reply several times, with calls of tools between the replies: the message has
// the texts of all replies as paragraphs. Of a graph, it has only the output.
type reply struct {
	talks bool
	send  func(delta)
	usage llm.Usage
	stop  llm.StopReason // of the last reply that is complete

	record   int64           // of that reply, in the journal
	text     strings.Builder // all that was sent
	current  string          // what was sent of the current reply, or the whole last one
	thought  bool            // the current reply has sent its reasoning
	complete bool            // the current reply is complete
	withdrew string          // not empty if the model writes the current reply again and something of it was sent: what says so
}

// handleEvent sends what an event adds to the message.
func (r *reply) handleEvent(ev *server.Event) {
	emitted, ok := ev.Body.(graph.ValueEmitted)
	if !ok {
		return
	}
	done, isReply := emitted.Value.(agent.ReplyDone)
	if isReply {
		r.usage = r.usage.Add(done.Usage)
	}
	if !r.talks || ev.Path != "" && ev.Path != leadPath {
		return
	}
	if !isReply && ev.Record < r.record {
		return // the reply that it belongs to has come from the journal
	}
	switch v := emitted.Value.(type) {
	case agent.TextDelta:
		r.sendText(v.Text)
	case agent.ReasoningDelta:
		r.sendReasoning(v.Text)
	case agent.RetryScheduled:
		if !r.complete && (r.current != "" || r.thought) {
			r.withdrew = v.Restart()
		}
	case agent.ReplyDone:
		r.endReply(v.Message)
		r.stop, r.record = v.Stop, ev.Record
	}
}

// leadPath is that of the events of a team's lead, which speaks to the user.
const leadPath = team.Node + "/" + team.Lead + "/"

// begin begins a new reply after a complete one.
func (r *reply) begin() {
	if r.complete {
		r.current, r.thought, r.complete, r.withdrew = "", false, false, ""
	}
}

// sendText sends a piece of the current reply.
func (r *reply) sendText(text string) {
	r.begin()
	if text == "" || r.withdrew != "" {
		return
	}
	if r.current == "" {
		r.separate()
	}
	r.current += text
	r.write(text)
}

// sendReasoning sends a piece of the reasoning before the current reply.
func (r *reply) sendReasoning(text string) {
	r.begin()
	if text != "" && r.withdrew == "" {
		r.thought = true
		r.send(delta{Reasoning: text})
	}
}

// endReply sends what has not been sent of a reply. What was sent cannot be taken back: if the reply is now another one, all of it follows.
func (r *reply) endReply(m llm.Message) {
	r.begin()
	whole := m.Text()
	if !r.thought {
		for _, p := range m.Parts {
			if thought, ok := p.(llm.Reasoning); ok && thought.Text != "" {
				r.send(delta{Reasoning: thought.Text})
			}
		}
	}
	rest, same := strings.CutPrefix(whole, r.current)
	switch {
	case !same && r.withdrew != "":
		r.sendBlock("[" + r.withdrew + "]")
		r.sendBlock(whole)
	case !same:
		r.sendBlock(whole)
	case rest != "":
		r.withdrew = ""
		r.sendText(rest)
	}
	r.current, r.complete = whole, true
}

// sendOutput sends the output of the run, unless it was the last reply.
func (r *reply) sendOutput(output string) {
	if strings.TrimSpace(output) != strings.TrimSpace(r.current) {
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
