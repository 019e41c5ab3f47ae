package cli

import (
	"errors"
	"os"
	"os/signal"
	"strings"
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
