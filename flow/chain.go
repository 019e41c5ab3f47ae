package flow

import (
	"context"
	"errors"

	"raddle.dev/agent"
	"raddle.dev/llm"
)

// chainError is an error whose own text is needed without its cause: some of these
// texts become part of a state.
type chainError struct {
	text  string
	cause error
}

func newChainError(text string, cause error) error { return &chainError{text, cause} }

func (e *chainError) Error() string { return e.text + ": " + e.cause.Error() }

// Unwrap returns the cause.
func (e *chainError) Unwrap() error { return e.cause }

// outermostText returns the text of an error without its causes if the error is a
// chain, and otherwise its whole text.
func outermostText(err error) string {
	if c, ok := err.(*chainError); ok {
		return c.text
	}
	return err.Error()
}

// plainError is a failure that the file format reports without the name of the
// node.
type plainError struct{ text string }

func (e *plainError) Error() string { return e.text }

// isFatal reports whether a failure must end the run, even if the file has a
// route for failures: the run was stopped, the provider rejects the
// credentials, or a budget is used up.
func isFatal(ctx context.Context, err error) bool {
	var provider *llm.Error
	return ctx.Err() != nil || errors.As(err, &provider) && provider.Class == llm.Auth || agent.IsBudgetExhausted(ctx, err)
}
