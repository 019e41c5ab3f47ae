package term

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// Output is the stream for results. If its reader has closed it, writing has no
// effect and is not an error: IsClosed reports it.
type Output struct {
	*Writer
	Colors
	// Clean removes known secrets: a last protection, for texts that come from files and old journals; nil removes
	// nothing.
	Clean RedactFunc

	err        error // the first one; errors such as ErrClosed set readerLeft instead
	readerLeft bool
	ends       bool // the last byte written ended a line
}

// NewOutput returns the output to a stream, without colours.
func NewOutput(f *os.File) *Output { return &Output{Writer: NewWriter(f)} }

// Write writes a piece of a result. It always returns len(p): Err returns what failed.
func (o *Output) Write(p []byte) (int, error) {
	if o.readerLeft || o.err != nil || len(p) == 0 {
		return len(p), nil
	}
	_, err := o.Writer.Write(o.Clean.apply(p))
	switch {
	case err == nil:
		o.ends = p[len(p)-1] == '\n'
	case errors.Is(err, syscall.EPIPE):
		o.readerLeft = true
	default:
		o.err = err
	}
	return len(p), nil
}

// Err returns the first error of a write, or nil.
func (o *Output) Err() error { return o.err }

// IsClosed reports whether the reader has closed the stream.
func (o *Output) IsClosed() bool { return o.readerLeft }

// PrintText writes a result for people: with a newline at its end if it has none, and on a terminal with its lines
// broken between words.
func (o *Output) PrintText(text string) { o.PrintExact(o.wrapText(text)) }

// PrintExact writes a result that programs read or that is copied, such as a document, a command or code: with a newline
// at its end if it has none.
func (o *Output) PrintExact(text string) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = o.Write([]byte(text))
}

// IsPiped reports whether another program reads what is written.
func (o *Output) IsPiped() bool {
	info, err := o.File().Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// A RedactFunc removes secrets from what is written; nil removes nothing.
type RedactFunc func([]byte) []byte

func (c RedactFunc) apply(p []byte) []byte {
	if c == nil {
		return p
	}
	return c(p)
}
