package flow

import (
	"context"
	"errors"

	"raddle.dev/agent"
	"raddle.dev/llm"
)

// chain is an error whose outermost words matter on their own: some of them
// become part of a state.
type chain struct {
	text  string
	cause error
}

func because(text string, cause error) error { return &chain{text, cause} }

func (e *chain) Error() string { return e.text + ": " + e.cause.Error() }

// Unwrap is the cause.
func (e *chain) Unwrap() error { return e.cause }

// outermost is the text of an error without its causes, as far as it was made by
// because; other errors are one text.
func outermost(err error) string {
	if c, ok := err.(*chain); ok {
		return c.text
	}
	return err.Error()
}

// plainError is a failure that the file format reports without naming the node.
type plainError struct{ text string }

func (e *plainError) Error() string { return e.text }

// fatal reports whether a failure must end the run, whatever route the file has
// for failures: the run was stopped, the provider refuses the credentials, or what
// the run may cost is used up.
func fatal(ctx context.Context, err error) bool {
	var provider *llm.Error
	return ctx.Err() != nil || errors.As(err, &provider) && provider.Class == llm.Auth || agent.UsedUp(ctx, err)
}
