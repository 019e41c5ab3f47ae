package term

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// RedrawInterval is the shortest time between two updates of the live lines.
const RedrawInterval = 100 * time.Millisecond

// Screen draws on standard error: finished lines, which are never changed again, and
// below them, if it is a terminal, live lines. Everything that a person sees while
// a command works goes through it. It is safe for concurrent use.
type Screen struct {
	*Writer
	Colors
	Clean RedactFunc // removes known secrets from finished lines; nil removes nothing

	mu     sync.Mutex
	reply  []string  // the end of a text that is being written, above the live lines; none is wider than the terminal
	status []string  // the live lines; none is wider than the terminal
	shown  []string  // those that are on the screen, with the cursor after the last
	drawn  time.Time // when they were updated last
	open   bool      // a result on the same screen has not ended its line
	held   []string  // lines to write after that line
	asleep bool      // the process is about to stop: the screen belongs to the shell
}

// NewScreen returns a screen on a stream, without colours.
func NewScreen(f *os.File) *Screen { return &Screen{Writer: NewWriter(f)} }

// Write writes finished lines: at once, or after the result that is being written
// to the same screen has ended its line. It never fails: what it writes only
// accompanies the result.
func (s *Screen) Write(p []byte) (int, error) {
	text := string(s.Clean.apply(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.held = append(s.held, text)
		return len(p), nil
	}
	s.writeRaw(s.eraseSequence() + text + s.drawSequence())
	return len(p), nil
}

// PrintLine writes a finished line.
func (s *Screen) PrintLine(line string) { _, _ = s.Write([]byte(line + "\n")) }

// PassThrough writes a piece of a result to another stream, which may be shown on the same
// screen: it removes the live lines, and the next line starts below.
func (s *Screen) PassThrough(out *Output, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passThrough(out, text)
}

// PassReply is like PassThrough and SetReply: text is the part of a text that is final, and pending the end that is not.
func (s *Screen) PassReply(out *Output, text string, pending []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = pending
	s.passThrough(out, text)
}

func (s *Screen) passThrough(out *Output, text string) {
	if text == "" {
		s.redraw(true)
		return
	}
	s.writeRaw(s.eraseSequence())
	_, _ = out.Write([]byte(text))
	s.open = !out.ends && s.IsTerminal()
	if !s.open {
		s.writeRaw(s.takeHeld() + s.drawSequence())
	}
}

// EndLine ends the line of a result that was passed through.
func (s *Screen) EndLine(out *Output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !out.ends && (s.open || !s.IsTerminal()) {
		_, _ = out.Write([]byte("\n"))
	}
	s.open = false
	s.writeRaw(s.eraseSequence() + s.takeHeld() + s.drawSequence())
}

// takeHeld returns the lines that were held.
func (s *Screen) takeHeld() string {
	text := strings.Join(s.held, "")
	s.held = nil
	return text
}

// SetLive changes the live lines, none of which may be wider than the terminal. It draws them if
// that is due; otherwise a later call does. Without lines it removes the old ones at once.
func (s *Screen) SetLive(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = lines
	s.redraw(len(lines) == 0)
}

// SetReply changes the end of a text that is being written, which is shown above the live lines. No line
// may be wider than the terminal; they may be painted. It draws them if that is due; otherwise a later call does.
func (s *Screen) SetReply(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = lines
	s.redraw(false)
}

// redraw draws the lines at the bottom if they have changed, and if that is due or now is true. It
// keeps the first lines that are the same.
func (s *Screen) redraw(now bool) {
	lines := slices.Concat(s.reply, s.status)
	if s.open || s.asleep || slices.Equal(lines, s.shown) {
		return
	}
	if !now && time.Since(s.drawn) < RedrawInterval {
		return
	}
	s.drawn = time.Now()
	same := 0
	for same < min(len(lines), len(s.shown))-1 && lines[same] == s.shown[same] {
		same++
	}
	s.shown = s.shown[same:]
	text := s.eraseSequence()
	s.shown = lines
	s.writeRaw(text + s.paintLines(same))
}

// ClearLive removes the live lines.
func (s *Screen) ClearLive() { s.SetLive(nil) }

// SuspendLive removes the live lines until ResumeLive is called.
func (s *Screen) SuspendLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asleep = true
	s.writeRaw(s.eraseSequence())
}

// ResumeLive shows the live lines again.
func (s *Screen) ResumeLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asleep = false
	s.writeRaw(s.drawSequence())
}

// eraseSequence returns the text that removes the live lines. A terminal that has become narrower
// may show each of them on several lines.
func (s *Screen) eraseSequence() string {
	if len(s.shown) == 0 {
		return ""
	}
	cols, _ := s.Size()
	rows := 0
	for _, line := range s.shown {
		rows += max(1, (TextWidth(StripMarks(line))+cols-1)/cols)
	}
	s.shown = nil
	return RewindRows(rows)
}

// drawSequence returns the text that draws the live lines.
func (s *Screen) drawSequence() string {
	if s.open || s.asleep {
		return ""
	}
	s.shown = slices.Concat(s.reply, s.status)
	return s.paintLines(0)
}

// paintLines returns the lines at the bottom from a line on.
func (s *Screen) paintLines(from int) string {
	var lines []string
	for i, line := range s.shown[from:] {
		if from+i >= len(s.reply) {
			line = s.Paint(Dim, line)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// writeRaw writes text in one piece, so that no partial update is visible.
func (s *Screen) writeRaw(text string) {
	if text != "" {
		_, _ = s.Writer.Write([]byte(text))
	}
}
