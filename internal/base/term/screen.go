package term

import (
	"encoding/base64"
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

	mu sync.Mutex
	// the end of a text that is being written, above the live lines; none is wider than the terminal
	reply     []string
	status    []string  // the live lines; none is wider than the terminal
	input     []string  // what the person types, below the live lines; none is wider than the terminal
	cursor    Cursor    // in the input
	below     int       // rows of the input below the cursor
	shown     []string  // those that are on the screen, painted; the cursor is after the last, or in the input
	placed    Cursor    // where it was put in the input
	cols      int       // width of the terminal when they were drawn
	drawn     time.Time // when they were updated last
	final     string    // complete lines of the reply that are not written yet, for out
	out       *Output   // a stream of results on the same terminal, as far as known
	open      bool      // a result on the same screen has not ended its line
	held      []string  // lines to write after that line
	suspended bool      // the process is about to stop: the screen belongs to the shell
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
	s.flushReply()
	if erase := s.eraseSequence(); erase != "" {
		s.writeRaw(syncUpdate(erase + text + s.drawSequence()))
	} else {
		s.writeRaw(text + s.drawSequence())
	}
	return len(p), nil
}

// PrintLine writes a finished line.
func (s *Screen) PrintLine(line string) { _, _ = s.Write([]byte(s.wrapText(line) + "\n")) }

// PassThrough writes a piece of a result to another stream, which may be shown on the same
// screen: it removes the live lines, and the next line starts below.
func (s *Screen) PassThrough(out *Output, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passThrough(out, text)
}

// PassReply is like PassThrough and SetReply: text is the part of a text that is final, and pending the end that is
// not. If there are live lines, text is written with their next update at the latest.
func (s *Screen) PassReply(out *Output, text string, pending []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = pending
	if s.open || s.suspended || len(s.shown)+len(s.bottomRows()) == 0 || !strings.HasSuffix(text, "\n") || !s.isSameTerminal(out) || string(out.Clean.apply([]byte(text))) != text {
		s.passThrough(out, text)
		return
	}
	s.final += text
	s.redraw(len(s.status)+len(s.input) == 0)
}

// isSameTerminal reports whether a stream is on the terminal of the screen.
func (s *Screen) isSameTerminal(out *Output) bool {
	if s.out == out {
		return true
	}
	if !s.IsTerminal() || !out.IsTerminal() {
		return false
	}
	own, err := s.File().Stat()
	other, alsoErr := out.File().Stat()
	if err != nil || alsoErr != nil || !os.SameFile(own, other) {
		return false
	}
	s.out = out
	return true
}

// flushReply writes the complete lines of the reply that are not written yet.
func (s *Screen) flushReply() {
	if s.final != "" {
		s.redraw(true)
	}
}

func (s *Screen) passThrough(out *Output, text string) {
	s.flushReply()
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
	s.flushReply()
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

// A Cursor is a place in the lines of the input, counted from 0.
type Cursor struct{ Row, Column int }

// SetInput changes the lines below the live lines, where the person types, and the place of the cursor in them. No line
// may be wider than the terminal; they may be painted. It draws them at once. Without lines there is no input.
func (s *Screen) SetInput(lines []string, at Cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.input = lines
	s.cursor = at
	s.redraw(true)
}

// redraw draws the lines at the bottom if they have changed, and if that is due or now is true, below what is complete
// of the reply. It writes only what differs from what is on the screen.
func (s *Screen) redraw(now bool) {
	lines := s.bottomRows()
	if s.open || s.suspended || s.final == "" && s.placed == s.cursor && slices.Equal(lines, s.shown) {
		return
	}
	if !now && time.Since(s.drawn) < RedrawInterval {
		return
	}
	s.drawn = time.Now()
	next := slices.Concat(splitRows(s.final), lines)
	cols, rows := s.Size()
	tooHigh := max(len(next), len(s.shown)) > rows // the cursor cannot go back to rows that have left the screen
	if !s.IsTerminal() || cols != s.cols || len(next) == 0 || len(s.shown) == 0 || tooHigh || !fitRows(cols, s.shown, next) {
		text := s.eraseSequence() + s.final
		s.endReply()
		s.writeRaw(text + s.drawSequence())
		return
	}
	s.endReply()
	from := max(0, len(s.shown)-1-s.below)
	old := s.shown
	to := Cursor{Column: endOfRow}
	s.below = 0
	switch {
	case len(s.input) > 0:
		s.below = len(s.input) - 1 - s.cursor.Row
		to.Column = s.cursor.Column
	case len(lines) == 0:
		next = append(next, "")
	}
	to.Row = len(next) - 1 - s.below
	s.shown = lines
	s.placed = s.cursor
	text := updateRows(old, next, from, to)
	if len(old) > 1 || len(next) > 1 {
		text = syncUpdate(text)
	}
	s.writeRaw(text)
}

// endReply says that the complete lines of the reply are written.
func (s *Screen) endReply() {
	if s.final != "" && s.out != nil {
		s.out.ends = true
	}
	s.final = ""
}

// splitRows returns the lines of a text, each of which has a line break.
func splitRows(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// fitRows reports whether each row takes one row of a terminal, and no more.
func fitRows(cols int, lists ...[]string) bool {
	for _, rows := range lists {
		for _, row := range rows {
			if text := StripMarks(row); strings.ContainsAny(text, "\t\n") || TextWidth(text) > cols {
				return false
			}
		}
	}
	return true
}

// ClearLive removes the live lines.
func (s *Screen) ClearLive() { s.SetLive(nil) }

// SuspendLive removes the live lines until ResumeLive is called.
func (s *Screen) SuspendLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushReply()
	s.suspended = true
	s.writeRaw(s.eraseSequence())
}

// ResumeLive shows the live lines again.
func (s *Screen) ResumeLive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended = false
	s.writeRaw(s.drawSequence())
}

// markPastes makes the terminal mark text that is pasted, or stops that.
func (s *Screen) markPastes(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.writeRaw(wrapMark("[?2004h"))
		return
	}
	s.writeRaw(wrapMark("[?2004l"))
}

// ClearAll clears the whole screen, and draws the lines at the bottom again.
func (s *Screen) ClearAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushReply()
	s.shown = nil
	s.below = 0
	s.writeRaw(wrapMark("[H") + wrapMark("[2J") + s.drawSequence())
}

// Notify calls the person back to the terminal: with a notice of the desktop where the terminal is known to show them
// (OSC 9), otherwise with the bell. The text must be clean.
func (s *Screen) Notify(text string, getenv func(string) string) {
	if !s.IsTerminal() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if showsNotices(getenv) {
		s.writeRaw(wrapMark("]9;" + strings.ReplaceAll(CleanLine(text), string(markEnd), "") + "\a"))
		return
	}
	s.writeRaw(wrapMark("\a"))
}

// showsNotices reports whether the terminal is known to show notices.
func showsNotices(getenv func(string) string) bool {
	switch {
	case getenv("TMUX") != "" || strings.HasPrefix(getenv("TERM"), "screen"):
		return false
	case getenv("KITTY_WINDOW_ID") != "" || getenv("WEZTERM_PANE") != "" || getenv("GHOSTTY_RESOURCES_DIR") != "" || getenv("WT_SESSION") != "":
		return true
	}
	return slices.Contains([]string{"iTerm.app", "WezTerm", "ghostty"}, getenv("TERM_PROGRAM"))
}

// CopyText copies a text to the clipboard of the terminal (OSC 52). Terminals may refuse that, or cut a long text.
func (s *Screen) CopyText(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeRaw(wrapMark("]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"))
}

// eraseSequence returns the text that removes the live lines. A terminal that has become narrower
// may show each of them on several lines.
func (s *Screen) eraseSequence() string {
	if len(s.shown) == 0 {
		return ""
	}
	cols, _ := s.Size()
	rows := 0
	for _, line := range s.shown[:len(s.shown)-s.below] {
		rows += max(1, (TextWidth(StripMarks(line))+cols-1)/cols)
	}
	s.shown = nil
	s.below = 0
	return RewindRows(rows)
}

// drawSequence returns the text that draws the lines at the bottom.
func (s *Screen) drawSequence() string {
	if s.open || s.suspended {
		return ""
	}
	s.shown = s.bottomRows()
	s.placed = s.cursor
	s.cols, _ = s.Size()
	text := strings.Join(s.shown, "\n")
	if len(s.input) > 0 {
		s.below = len(s.input) - 1 - s.cursor.Row
		text += placeCursor(s.below, s.cursor.Column)
	}
	return text
}

// bottomRows returns the lines at the bottom, painted.
func (s *Screen) bottomRows() []string {
	rows := slices.Clone(s.reply)
	for _, line := range s.status {
		rows = append(rows, s.Paint(Dim, line))
	}
	return append(rows, s.input...)
}

// writeRaw writes text in one piece, so that no partial update is visible.
func (s *Screen) writeRaw(text string) {
	if text != "" {
		_, _ = s.Writer.Write([]byte(text))
	}
}
