package agent

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// An Alternative is one of the models that may answer.
type Alternative struct {
	Name  string // for events
	Model llm.Model
}

// Fallback returns a model that asks the first of its models, and the next one when a model cannot be reached, is over
// its limits for longer than the patience of the caller's [Retry], or is refused by its provider. It stays with a model
// whose text has been shown: a reply has one author. A model that failed is asked last for five minutes. The reply
// names the model that gave it. There must be at least one model, and all of them need the same tools and about the
// same window.
func Fallback(models ...Alternative) llm.Model {
	return &fallback{models: models, failed: make([]time.Time, len(models))}
}

// restAfterFailure is how long a model that failed is asked last.
const restAfterFailure = 5 * time.Minute

type fallback struct {
	models []Alternative

	mu     sync.Mutex
	failed []time.Time // when each of the models failed; zero: it has not
}

// choiceKey is the key of the context for the *choice of a call.
type choiceKey struct{}

// A choice says which model of a fallback a call has come to. A model that retries makes it, and the fallback in it
// fills it in.
type choice struct {
	of    *fallback // nil: the call's model has no alternatives
	order []int     // in which the models are asked
	at    int       // in order
}

// Stream implements llm.Model.
func (f *fallback) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	if c, retries := ctx.Value(choiceKey{}).(*choice); retries {
		if c.of != f {
			c.of, c.order, c.at = f, f.rankModels(), 0
		}
		alone := context.WithValue(ctx, choiceKey{}, nil) // a list in the list makes its own choice
		return f.models[c.order[c.at]].Model.Stream(alone, r)
	}
	return Retry{Patience: -1}.WrapModel(f, false).Stream(ctx, r)
}

// rankModels returns the models in the order in which they are asked.
func (f *fallback) rankModels() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ready, resting []int
	for i, at := range f.failed {
		if at.IsZero() || time.Since(at) >= restAfterFailure {
			ready = append(ready, i)
		} else {
			resting = append(resting, i)
		}
	}
	return append(ready, resting...)
}

// hasNext reports whether there is another model to ask.
func (c *choice) hasNext() bool { return c.of != nil && c.at+1 < len(c.order) }

// takeNext moves the call to the next model, if there is one and the failure is one that another model may not have. It
// emits what it does.
func (c *choice) takeNext(ctx context.Context, err error) bool {
	if !c.hasNext() || !isModelsFault(err) {
		return false
	}
	c.of.mu.Lock()
	c.of.failed[c.order[c.at]] = time.Now()
	c.of.mu.Unlock()
	c.at++
	if graph.IsEmitEnabled(ctx) {
		from := c.of.models[c.order[c.at-1]].Name
		to := c.of.models[c.order[c.at]].Name
		graph.Emit(ctx, RetryScheduled{Reason: from + ": " + reasonOf(err), Request: 1, Model: to})
	}
	return true
}

// isModelsFault reports whether a failure says something about the model and its provider, and nothing about the
// request.
func isModelsFault(err error) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case llm.RateLimited, llm.Overloaded, llm.Network, llm.Timeout, llm.Server:
		return true
	}
	return e.Status == http.StatusNotFound || e.Status == http.StatusForbidden || e.Status == http.StatusGone
}

// isUnreachable reports whether a failure means that nothing answers at the address of a model: its successor is asked
// at once.
func isUnreachable(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Class == llm.Network && e.Code != llm.CodeReset
}
