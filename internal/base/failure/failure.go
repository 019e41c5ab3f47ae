// Package failure has the error of everything that fails before a run works: what is
// wrong, of which kind it is, and what a person can do about it.
package failure

import (
	"errors"
	"fmt"
	"slices"
)

// Kind says what a person can do about a failure. A user interface
// turns it into an exit code.
type Kind string

// These are the kinds of failures.
const (
	Usage   Kind = "usage"   // the input names something that does not exist, or makes no sense
	Invalid Kind = "invalid" // the configuration or an agent is not valid
	Stale   Kind = "stale"   // a run cannot be continued as it is

	Unavailable Kind = "unavailable" // the store, or a server, cannot be read or written now: the same may work later
)

// Error is a failure before anything has run. Its text says what is wrong and
// where; Next, if set, says what to do about it.
type Error struct {
	Kind Kind
	Msg  string
	Next string
	Err  error // the cause; may be nil
}

// Error returns the message and its cause, without Next.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsUnavailable reports whether an error is or contains a failure of kind [Unavailable], whatever other failures it
// went through.
func IsUnavailable(err error) bool {
	for err != nil {
		if e, ok := err.(*Error); ok && e.Kind == Unavailable {
			return true
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return slices.ContainsFunc(many.Unwrap(), IsUnavailable)
		}
		err = errors.Unwrap(err)
	}
	return false
}

// NewUsage returns an error of kind [Usage]; next may be "".
func NewUsage(next, format string, args ...any) *Error {
	return &Error{Kind: Usage, Msg: fmt.Sprintf(format, args...), Next: next}
}

// NewInvalid returns an error of kind [Invalid]; next may be "".
func NewInvalid(next, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Msg: fmt.Sprintf(format, args...), Next: next}
}

// NewStale returns an error of kind [Stale]; next may be "".
func NewStale(next, format string, args ...any) *Error {
	return &Error{Kind: Stale, Msg: fmt.Sprintf(format, args...), Next: next}
}
