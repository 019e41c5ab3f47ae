package cli

import (
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/term"
)

// redraw is the shortest time between two updates of the live lines.
const redraw = 100 * time.Millisecond

// terminal is standard error: permanent lines, and below them, if it is a terminal,
// live lines. It is safe for concurrent use.
type terminal struct {
	*term.Writer
	colors bool
	clean  redactFunc // removes known secrets from lines

	mu     sync.Mutex
	status []string  // the live lines; none is wider than the terminal
	shown  []string  // those that are on the screen, with the cursor after the last
	drawn  time.Time // when they were updated last
	open   bool      // a result on the same screen has not ended its line
	held   []string  // lines to write after that line
	asleep bool      // the process is about to stop: the screen belongs to the shell
}

// Write writes complete lines: at once, or after the result that is being written
// to the same screen has ended its line. It never fails: what it writes only
// accompanies the result.
func (t *terminal) Write(p []byte) (int, error) {
	text := string(t.clean.apply(p))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		t.held = append(t.held, text)
		return len(p), nil
	}
	t.writeRaw(t.eraseSequence() + text + t.drawSequence())
	return len(p), nil
}

// passThrough writes a piece of a result to another stream, which may be shown on the same
// screen: it removes the live lines, and the next line starts below.
func (t *terminal) passThrough(out *stdout, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writeRaw(t.eraseSequence())
	_, _ = out.Write([]byte(text))
	t.open = !out.ends && t.IsTerminal()
	if !t.open {
		t.writeRaw(t.takeHeld() + t.drawSequence())
	}
}

// endLine ends the line of a result that was passed on.
func (t *terminal) endLine(out *stdout) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !out.ends && (t.open || !t.IsTerminal()) {
		_, _ = out.Write([]byte("\n"))
	}
	t.open = false
	t.writeRaw(t.eraseSequence() + t.takeHeld() + t.drawSequence())
}

// takeHeld returns the lines that were held.
func (t *terminal) takeHeld() string {
	text := strings.Join(t.held, "")
	t.held = nil
	return text
}

// printLine writes a line.
func (t *terminal) printLine(s string) { _, _ = t.Write([]byte(s + "\n")) }

// setStatus changes the live lines. It draws them if that is due; otherwise a later set
// does. Without lines it removes the old ones at once.
func (t *terminal) setStatus(status []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
	if slices.Equal(status, t.shown) {
		return
	}
	if len(status) > 0 {
		if time.Since(t.drawn) < redraw {
			return
		}
		t.drawn = time.Now()
	}
	t.writeRaw(t.eraseSequence() + t.drawSequence())
}

// clearStatus removes the live lines.
func (t *terminal) clearStatus() { t.setStatus(nil) }

// suspendStatus removes the live lines until wake is called.
func (t *terminal) suspendStatus() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = true
	t.writeRaw(t.eraseSequence())
}

// resumeStatus shows the live lines again.
func (t *terminal) resumeStatus() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = false
	t.writeRaw(t.drawSequence())
}

// eraseSequence returns the text that removes the live lines. A terminal that has become narrower
// may show each of them on several lines.
func (t *terminal) eraseSequence() string {
	if len(t.shown) == 0 {
		return ""
	}
	cols, _ := t.Size()
	rows := 0
	for _, line := range t.shown {
		rows += max(1, (textWidth(line)+cols-1)/cols)
	}
	t.shown = nil
	return term.RewindRows(rows)
}

// drawSequence returns the text that draws the live lines.
func (t *terminal) drawSequence() string {
	if t.open || t.asleep {
		return ""
	}
	t.shown = slices.Clone(t.status)
	lines := make([]string, len(t.status))
	for i, line := range t.status {
		lines[i] = t.paintText(dim, line)
	}
	return strings.Join(lines, "\n")
}

// writeRaw writes text in one piece, so that no partial update is visible.
func (t *terminal) writeRaw(text string) {
	if text != "" {
		_, _ = t.Writer.Write([]byte(text))
	}
}
