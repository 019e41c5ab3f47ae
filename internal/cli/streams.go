package cli

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"raddle.dev/internal/term"
)

// keepPipes makes writes to a closed pipe fail with an error, instead
// of ending the process while it has a run to save.
func keepPipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// stdout is the stream for results. If its reader has closed it, writing has no
// effect and is not an error: gone reports it.
type stdout struct {
	*term.Writer
	err  error // the first one; errors such as ErrClosed set gone instead
	gone bool
	ends bool // the last byte written ended a line
	// clean removes known secrets from what is written: a last protection, for texts that
	// come from files and old journals.
	clean redactFunc
}

func (o *stdout) Write(p []byte) (int, error) {
	if o.gone || o.err != nil || len(p) == 0 {
		return len(p), nil
	}
	_, err := o.Writer.Write(o.clean.apply(p))
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

// A redactFunc removes secrets from what is written; nil removes nothing.
type redactFunc func([]byte) []byte

func (c redactFunc) apply(p []byte) []byte {
	if c == nil {
		return p
	}
	return c(p)
}

// printText writes a result for people: with a newline at its end if it has none.
func (o *stdout) printText(s string) {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, _ = o.Write([]byte(s))
}

// isPiped reports whether another program reads what is written.
func (o *stdout) isPiped() bool {
	info, err := o.File().Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
