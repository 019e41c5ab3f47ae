package proc

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// A StartError reports a command that could not be started. It wraps the cause: errors.Is finds exec.ErrNotFound,
// fs.ErrNotExist, fs.ErrPermission.
type StartError struct {
	Path string // as in Command
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("%s could not be started: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// An ExitError reports a child that ended by itself, but not with exit code zero.
type ExitError struct {
	Path   string // as in Command
	Code   int    // -1 if a signal ended it
	Signal string // such as "SIGSEGV"; empty if the child exited
	Stderr string // the last line of stderr that is not blank, without escapes; the Result has all of it
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s ended with exit code %d", e.Path, e.Code)
	if e.Signal != "" {
		text = fmt.Sprintf("%s was ended by %s", e.Path, e.Signal)
	}
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// A TimeoutError reports a child that was ended because it ran longer than its Timeout. It is not a
// context.DeadlineExceeded: that error belongs to the caller's context.
type TimeoutError struct {
	Path  string        // as in Command
	After time.Duration // the Timeout of the Command
}

func (e *TimeoutError) Error() string { return fmt.Sprintf("%s timed out after %v", e.Path, e.After) }

// Timeout reports true, as the errors of package net do.
func (e *TimeoutError) Timeout() bool { return true }

// An OutputError reports a child that was ended because one of its outputs was longer than its MaxOutput.
type OutputError struct {
	Path  string // as in Command
	After int64  // the MaxOutput of the Command, in bytes
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("%s printed more than %d bytes", e.Path, e.After)
}

// newStoppedError returns the error of a child that was ended, or not started, because of its context.
func newStoppedError(ctx context.Context, path string) error {
	err := ctx.Err()
	cause := context.Cause(ctx)
	if cause == err {
		return fmt.Errorf("%s was stopped: %w", path, err)
	}
	return fmt.Errorf("%s was stopped: %w: %w", path, err, cause)
}

// lastLine returns the last line that is not blank, cut to a length that fits a message.
func lastLine(text []byte) string {
	const longest = 300
	text = text[max(0, len(text)-16*longest):]
	text = bytes.TrimSpace(StripEscapes(text))
	line := string(text[bytes.LastIndexByte(text, '\n')+1:])
	if len(line) > longest {
		line = strings.ToValidUTF8(line[:longest], "") + "..."
	}
	return strings.ToValidUTF8(line, "?")
}
