package cli

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// keepPipes makes writes to a pipe that nobody reads fail with an error, instead
// of ending the process while it has a run to save.
func keepPipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// stdout is where results go. When its reader goes away, writing is of no more
// use, but no error: gone tells.
type stdout struct {
	file *os.File
	err  error // the first one; ErrClosed-like ones are in gone
	gone bool
	ends bool // the last byte written ended a line
}

func (o *stdout) Write(p []byte) (int, error) {
	if o.gone || o.err != nil || len(p) == 0 {
		return len(p), nil
	}
	_, err := o.file.Write(p)
	switch {
	case err == nil:
		o.ends = p[len(p)-1] == '\n'
	case errors.Is(err, syscall.EPIPE):
		o.gone = true
	default:
		o.err = err
	}
	return len(p), nil
}

// text writes a result for people: with a newline at its end if it has none.
func (o *stdout) text(s string) {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, _ = o.Write([]byte(s))
}

func (o *stdout) isTerminal() bool { return isTerminal(o.file) }

// isTerminal tells whether a stream is one that a person sits at.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// terminal is standard error: lines that stay, and below them, where a person
// looks on, a line that changes. It is safe for concurrent use.
type terminal struct {
	file   *os.File
	colors bool

	mu     sync.Mutex
	status string // what the changing line shows; "": there is none
	shown  bool
	open   bool // a result on the same screen has not ended its line
}

// Write writes complete lines. Errors are nobody's business: what goes here only
// accompanies the result.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hide()
	if t.open {
		_, _ = t.file.WriteString("\n")
		t.open = false
	}
	_, _ = t.file.Write(p)
	t.show()
	return len(p), nil
}

// pass writes a piece of a result to another stream, which may end on the same
// screen: the changing line makes way, and the next line begins below.
func (t *terminal) pass(out *stdout, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hide()
	_, _ = out.Write([]byte(text))
	t.open = !out.ends && isTerminal(t.file)
	t.show()
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

// set changes the changing line.
func (t *terminal) set(status string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if status != t.status {
		t.hide()
		t.status = status
		t.show()
	}
}

// still removes the changing line.
func (t *terminal) still() { t.set("") }

func (t *terminal) hide() {
	if t.shown {
		_, _ = t.file.WriteString("\r\x1b[K")
		t.shown = false
	}
}

func (t *terminal) show() {
	if t.status != "" && !t.open {
		_, _ = t.file.WriteString(t.paint(dim, t.status))
		t.shown = true
	}
}

// width is how many characters fit into a line.
func (t *terminal) width() int {
	if w, _, err := term.GetSize(int(t.file.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
