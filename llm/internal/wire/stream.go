package wire

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"raddle.dev/llm"
)

// errLeft tells a call that the reader of its stream has left the loop.
var errLeft = errors.New("wire: the reader has left")

// Stream makes a Model's sequence out of call, which sends the request, passes
// deltas to emit, and returns the reply. Call must return the errors of emit at
// once, and must release what it holds.
func (c *Client) Stream(ctx context.Context, call func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error)) iter.Seq2[llm.Delta, error] {
	var used atomic.Bool
	return func(yield func(llm.Delta, error) bool) {
		if used.Swap(true) {
			yield(llm.Delta{}, errors.New("llm: a stream is for a single use; call Stream again"))
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		reply, err := call(inner, func(d llm.Delta) error {
			if !yield(d, nil) {
				return errLeft
			}
			return nil
		})
		switch {
		case errors.Is(err, errLeft):
		case err != nil:
			yield(llm.Delta{}, c.Failure(ctx, err))
		default:
			yield(llm.Delta{Done: &reply}, nil)
		}
	}
}
