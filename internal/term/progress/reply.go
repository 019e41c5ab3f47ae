package progress

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/term"
	"raddle.dev/team"
)

// A ReplyStream shows the text of an agent's model while the model writes it, on a terminal.
type ReplyStream struct {
	screen *term.Screen
	out    *term.Output
	said   strings.Builder // of the current reply, or the last one
	over   bool            // that reply is complete
}

// NewReplyStream returns a stream to out, which may be on the same terminal as the screen.
func NewReplyStream(screen *term.Screen, out *term.Output) *ReplyStream {
	return &ReplyStream{screen: screen, out: out}
}

// isReaderPath reports whether text at a path of an agent's run is addressed to the
// user: it is of the run's own conversation, or of the lead of its team. Conversations below are not.
func isReaderPath(path string) bool { return path == "" || path == team.Node+"/"+team.Lead+"/" }

// HandleEvent shows what an event adds to the reply.
func (s *ReplyStream) HandleEvent(ev graph.Event) {
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
			s.screen.PassThrough(s.out, term.CleanText(v.Text))
		case agent.ReplyDone:
			s.screen.EndLine(s.out)
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
func (s *ReplyStream) resetReply() {
	s.screen.EndLine(s.out)
	if !s.over {
		s.said.Reset()
	}
}

// IsShownInFull reports whether a result has been shown completely. A nil stream has shown nothing.
func (s *ReplyStream) IsShownInFull(result string) bool {
	return s != nil && s.over && s.said.String() == result
}
