// Package panics turns a recovered panic of user code into an error with its stack.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a recovered panic.
type Error struct {
	// Stack is the stack at the panic, as runtime/debug formats it.
	Stack []byte

	msg string
	err error // the panic's value, if it is an error
}

func (e *Error) Error() string { return e.msg }

// Unwrap returns the panic's value if it is an error, else nil.
func (e *Error) Unwrap() error { return e.err }

// NewError returns an error for a recovered panic. where says whose code panicked. It
// must be called by the deferred function that recovered, so that the stack is right.
func NewError(where string, p any) error {
	err, _ := p.(error)
	return &Error{Stack: debug.Stack(), msg: fmt.Sprintf("panic in %s: %v", where, p), err: err}
}
