package cli

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// replyStream shows the text of an agent's model while the model writes it, on a terminal.
type replyStream struct {
	env  *environment
	said strings.Builder // of the current reply, or the last one
	over bool            // that reply is complete
}

// newReplyStream returns how a run's result is shown before its end: nil for results that go to
// a program, and for graphs, whose result is not the text of a model.
func (d *drive) newReplyStream() *replyStream {
	if d.still || d.format != formatText || !d.env.out.IsTerminal() || d.run.Agent.Config == nil {
		return nil
	}
	return &replyStream{env: d.env}
}

// leadPath is the path of the agent that the user talks to, if it can spawn others.
const leadPath = leadOf + "/"

// isReaderPath reports whether text at a path of an agent's run is addressed to the
// user. Conversations below the run's own are not.
func isReaderPath(path string) bool { return path == "" || path == leadPath }

// handleEvent handles an event.
func (s *replyStream) handleEvent(ev graph.Event) {
	if !isReaderPath(ev.Path) {
		return
	}
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		switch v := b.Value.(type) {
		case agent.TextDelta:
			if s.over {
				s.said.Reset()
				s.over = false
			}
			s.said.WriteString(v.Text)
			s.env.err.passThrough(s.env.out, plainText(v.Text))
		case agent.ReplyDone:
			s.env.err.endLine(s.env.out)
			if s.over { // it has no text
				s.said.Reset()
			}
			s.over = true
		case agent.RetryScheduled:
			s.resetReply()
		}
	case graph.TaskRetry, graph.RunEnded:
		s.resetReply()
	}
}

// resetReply forgets the text of the current reply: the model will send it again.
func (s *replyStream) resetReply() {
	s.env.err.endLine(s.env.out)
	if !s.over {
		s.said.Reset()
	}
}

// isShownInFull reports whether a result has been shown completely.
func (s *replyStream) isShownInFull(result string) bool {
	return s != nil && s.over && s.said.String() == result
}
