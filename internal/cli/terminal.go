package cli

import (
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/term"
)

// redraw is the least time between two updates of the changing lines.
const redraw = 100 * time.Millisecond

// terminal is standard error: lines that stay, and below them, where a person
// looks on, some that change. It is safe for concurrent use.
type terminal struct {
	*term.Writer
	colors bool
	clean  cleaner // takes known secrets out of lines

	mu     sync.Mutex
	status []string  // the changing lines; none is wider than the terminal
	shown  []string  // those that are on the screen, the cursor behind the last
	drawn  time.Time // when they were updated last
	open   bool      // a result on the same screen has not ended its line
	held   []string  // lines to be written when it has
	asleep bool      // the process is about to stop: the screen belongs to the shell
}

// Write writes complete lines: at once, or when the result that is being written
// to the same screen has ended its line. It never fails: what goes here only
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

// pass writes a piece of a result to another stream, which may end on the same
// screen: the changing lines make way, and the next line begins below.
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

// set changes the changing lines. They are drawn when that is due; a later set
// makes up for it. Without any lines they are removed at once.
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

// still removes the changing lines.
func (t *terminal) still() { t.set(nil) }

// sleep removes the changing lines until wake is called.
func (t *terminal) sleep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = true
	t.write(t.hide())
}

// wake shows the changing lines again.
func (t *terminal) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asleep = false
	t.write(t.show())
}

// hide returns what removes the changing lines. A terminal that has become narrower
// since may show each on several lines.
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

// show returns what draws the changing lines.
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

// write writes in one piece, so that nothing is seen half done.
func (t *terminal) write(text string) {
	if text != "" {
		_, _ = t.Writer.Write([]byte(text))
	}
}
