package rag

import (
	"context"
	"errors"
	"time"

	"raddle.dev/llm"
)

const (
	firstPause   = time.Second // before the second attempt; it doubles for each further attempt
	longestPause = time.Minute // that a server may ask for
)

// finalClasses are the classes of failures for which a retry cannot help.
var finalClasses = map[llm.Class]bool{llm.Auth: true, llm.BadRequest: true, llm.ContextLength: true, llm.Limit: true}

// retryCall calls a model, and calls it again if that may help. It returns the number of calls. If ctx ends, it returns
// the error of ctx.
func retryCall(ctx context.Context, attempts int, call func() error) (made int, err error) {
	pause := firstPause
	for made = 1; ; made++ {
		err := call()
		if err == nil {
			return made, nil
		}
		if ctx.Err() != nil {
			return made, ctx.Err()
		}
		var failure *llm.Error
		isModelError := errors.As(err, &failure)
		if isModelError && finalClasses[failure.Class] || made >= attempts {
			return made, err
		}
		wait := pause
		if isModelError {
			wait = max(wait, min(failure.RetryAfter, longestPause))
		}
		select {
		case <-ctx.Done():
			return made, ctx.Err()
		case <-time.After(wait):
		}
		pause *= 2
	}
}
