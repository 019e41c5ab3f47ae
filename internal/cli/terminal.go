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
	clean  cleaner // removes known secrets from lines

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
	t.write(t.hide() + text + t.show())
	return len(p), nil
}

// pass writes a piece of a result to another stream, which may be shown on the same
// screen: it removes the live lines, and the next line starts below.
func (t *terminal) pass(out *stdout, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(t.hide())
	_, _ = out.Write([]byte(text))
	t.open = !out.ends && t.IsTerminal()
	if !t.open {
		t.write(t.release() + t.show())
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
	t.write(t.hide() + t.release() + t.show())
}

// release returns the lines that were held.
func (t *terminal) release() string {
	text := strings.Join(t.held, "")
	t.held = nil
	return text
}

// line writes a line.
func (t *terminal) line(s string) { _, _ = t.Write([]byte(s + "\n")) }

// set changes the live lines. It draws them if that is due; otherwise a later set
// does. Without lines it removes the old ones at once.
func (t *terminal) set(status []string) {
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
	t.write(t.hide() + t.show())
}

// still removes the live lines.
func (t *terminal) still() { t.set(nil) }

// sleep removes the live lines until wake is called.
func (t *terminal) sleep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = true
	t.write(t.hide())
}

// wake shows the live lines again.
func (t *terminal) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = false
	t.write(t.show())
}

// hide returns the text that removes the live lines. A terminal that has become narrower
// may show each of them on several lines.
func (t *terminal) hide() string {
	if len(t.shown) == 0 {
		return ""
	}
	cols, _ := t.Size()
	rows := 0
	for _, line := range t.shown {
		rows += max(1, (cells(line)+cols-1)/cols)
	}
	t.shown = nil
	return term.Rewind(rows)
}

// show returns the text that draws the live lines.
func (t *terminal) show() string {
	if t.open || t.asleep {
		return ""
	}
	t.shown = slices.Clone(t.status)
	lines := make([]string, len(t.status))
	for i, line := range t.status {
		lines[i] = t.paint(dim, line)
	}
	return strings.Join(lines, "\n")
}

// write writes text in one piece, so that no partial update is visible.
func (t *terminal) write(text string) {
	if text != "" {
		_, _ = t.Writer.Write([]byte(text))
	}
}
