package progress

import (
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/markdown"
	"raddle.dev/internal/report/updates"
)

// A ReplyStream shows the text of an agent's model while the model writes it, on a terminal.
type ReplyStream struct {
	// ShowPending says to show the end of a block that is not complete on the screen, which must be a terminal. It must
	// not change after the first event.
	ShowPending bool

	screen  *term.Screen
	out     *term.Output
	look    *markdown.Renderer // nil: the text is shown as it is
	blocks  *markdown.Stream
	replies updates.Replies
	said    strings.Builder // of the current reply, or the last one
	over    bool            // that reply is complete
}

// NewReplyStream returns a stream to out, which may be on the same terminal as the screen. If r is not nil, the text is
// Markdown: a block is written when it is complete, and until then the screen shows its last lines.
func NewReplyStream(screen *term.Screen, out *term.Output, r *markdown.Renderer) *ReplyStream {
	s := &ReplyStream{screen: screen, out: out, replies: updates.Replies{Replaces: true}}
	if r != nil {
		s.look, s.blocks = r, markdown.NewStream(r)
	}
	return s
}

// isReaderPath reports whether text at a path of an agent's run is addressed to the
// user: it is of the run's own conversation, or of the lead of its team. Conversations below are not.
func isReaderPath(path string) bool { return updates.PlainPath(path) == "" }

// HandleEvent shows what an event adds to the reply.
func (s *ReplyStream) HandleEvent(ev graph.Event) {
	if !isReaderPath(ev.Path) {
		return
	}
	for _, u := range s.replies.HandleEvent(ev) {
		switch u := u.(type) {
		case updates.TextAdded:
			if !u.AtEnd { // otherwise it is shown as the result, if it is one
				s.addText(u.Text)
			}
		case updates.ReplyEnded:
			s.endText()
			if s.over { // it has no text
				s.said.Reset()
			}
			s.over = true
		case updates.ReplyWithdrawn:
			if !u.AtEnd {
				s.resetReply(u.Why)
			}
		}
	}
	if _, ok := ev.Body.(graph.RunEnded); ok {
		s.resetReply("")
	}
}

// addText shows a piece of a reply.
func (s *ReplyStream) addText(text string) {
	if s.over {
		s.said.Reset()
		s.over = false
	}
	s.said.WriteString(text)
	s.showText(text)
}

func (s *ReplyStream) showText(text string) {
	if s.blocks == nil {
		s.screen.PassThrough(s.out, term.CleanText(text))
		return
	}
	s.look.Width = s.columns()
	lines := s.blocks.AddText(text)
	var pending []string
	if s.ShowPending {
		_, rows := s.screen.Size()
		pending = s.blocks.Pending(max(1, rows/2))
	}
	if lines != "" {
		s.screen.PassReply(s.out, lines, pending)
	} else {
		s.screen.SetReply(pending)
	}
}

// columns returns the width of the terminal without its last column, from which the cursor may already have moved to
// the next line.
func (s *ReplyStream) columns() int {
	cols, _ := s.out.Size()
	return cols - 1
}

// endText writes what is not complete.
func (s *ReplyStream) endText() {
	if s.blocks != nil {
		s.screen.PassReply(s.out, s.blocks.Close(), nil)
	}
	s.screen.EndLine(s.out)
}

// resetReply forgets the text of the current reply. If something of it was shown, note is a line below it that stays
// and says why the model will send it again; "" if it will not.
func (s *ReplyStream) resetReply(note string) {
	s.endText()
	if s.over {
		return
	}
	if s.said.Len() > 0 && note != "" {
		s.screen.PrintLine(s.screen.Paint(term.Dim, note))
	}
	s.said.Reset()
}

// IsShownInFull reports whether a result has been shown completely. A nil stream has shown nothing.
func (s *ReplyStream) IsShownInFull(result string) bool {
	return s != nil && s.over && s.said.String() == result
}
