package cli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"
)

// redraw is the least time between two drawings of the changing lines.
const redraw = 100 * time.Millisecond

// terminal is standard error: lines that stay, and below them, where a person
// looks on, some that change. It is safe for concurrent use.
type terminal struct {
	file   *os.File
	colors bool

	mu     sync.Mutex
	status []string  // the changing lines; none is wider than the terminal
	shown  []int     // widths of those that are on the screen, the cursor behind the last
	drawn  time.Time // when they were drawn last
	open   bool      // a result on the same screen has not ended its line
}

// Write writes complete lines. Errors are nobody's business: what goes here only
// accompanies the result.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	t.hide(&b)
	if t.open {
		b.WriteByte('\n')
		t.open = false
	}
	b.Write(p)
	t.show(&b)
	t.flush(&b)
	return len(p), nil
}

// pass writes a piece of a result to another stream, which may end on the same
// screen: the changing lines make way, and the next line begins below.
func (t *terminal) pass(out *stdout, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	t.hide(&b)
	t.flush(&b)
	_, _ = out.Write([]byte(text))
	t.open = !out.ends && isTerminal(t.file)
	t.show(&b)
	t.flush(&b)
}

// endLine ends the line of a result that was passed on, unless another line has
// followed it on the same screen.
func (t *terminal) endLine(out *stdout) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !out.ends && (t.open || !isTerminal(t.file)) {
		_, _ = out.Write([]byte("\n"))
	}
	t.open = false
}

// line writes a line.
func (t *terminal) line(s string) { _, _ = t.Write([]byte(s + "\n")) }

// set changes the changing lines. They are drawn when that is due; a later set
// makes up for it. Without any lines they are removed at once.
func (t *terminal) set(status []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Equal(status, t.status) && len(t.shown) == len(status) {
		return
	}
	t.status = status
	var b bytes.Buffer
	if len(status) == 0 || t.due() {
		t.hide(&b)
		t.show(&b)
	}
	t.flush(&b)
}

// still removes the changing lines.
func (t *terminal) still() { t.set(nil) }

// due tells whether the changing lines may be drawn again.
func (t *terminal) due() bool { return time.Since(t.drawn) >= redraw }

// hide adds what removes the changing lines. A terminal that has become narrower
// since may show each on several lines.
func (t *terminal) hide(b *bytes.Buffer) {
	if len(t.shown) == 0 {
		return
	}
	cols, _ := t.size()
	rows := 0
	for _, w := range t.shown {
		rows += max(1, (w+cols-1)/cols)
	}
	t.shown = nil
	b.WriteByte('\r')
	if rows > 1 {
		fmt.Fprintf(b, "\x1b[%dA", rows-1)
	}
	b.WriteString("\x1b[J")
}

// show adds the changing lines, if they may be drawn.
func (t *terminal) show(b *bytes.Buffer) {
	if len(t.status) == 0 || t.open || !t.due() {
		return
	}
	t.drawn = time.Now()
	for i, line := range t.status {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(t.paint(dim, line))
		t.shown = append(t.shown, cells(line))
	}
}

// flush writes in one piece, so that nothing is seen half done.
func (t *terminal) flush(b *bytes.Buffer) {
	if b.Len() > 0 {
		_, _ = t.file.Write(b.Bytes())
		b.Reset()
	}
}

// size is how many characters fit into a line, and how many lines there are.
func (t *terminal) size() (cols, rows int) {
	if w, h, err := term.GetSize(int(t.file.Fd())); err == nil && w > 0 && h > 0 {
		return w, h
	}
	return 80, 24
}
