package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// DefaultPatience is how long a request is repeated unless Retry says otherwise.
const DefaultPatience = 2 * time.Minute

// Retry says when a request that failed is sent again. All requests of one call are
// one effect: the reply is recorded, and is never requested again. Each wait is
// emitted as a RetryScheduled event, counts for timeouts, and ends with its context.
type Retry struct {
	// Patience is the time between the first failure and the last repetition of a request that
	// meets a rate limit, a provider that fails or is overloaded, or a connection that broke. The
	// wait is what the provider asks for, or else grows from one second to 30. If a provider asks
	// for more time than is left, the request fails at once, with a *PatienceError. 0:
	// DefaultPatience; negative: such a request is not repeated.
	Patience time.Duration
	// Attempts is how many requests are made in all, each with patience of its own,
	// if the failures satisfy If. The next attempt follows at once, or after the time
	// that the provider asks for, which is at most Patience, or DefaultPatience if that
	// is negative. 0 and 1: one.
	Attempts int
	If       func(error) bool // nil: llm.Error.IsTransient
	// Output says that a reply without text and calls is a failure as long as attempts are left: the error has the text
	// "produced no output". The reply to the last attempt is passed on as it is.
	Output bool
	// Failed is called before another attempt; nil: nothing is called.
	Failed func(ctx context.Context, attempt int, err error)
}

// PatienceError is the failure of a request that would have been sent again if there
// were more patience. Its cause is the last failure.
type PatienceError struct {
	Err      error
	Patience time.Duration
	Wait     time.Duration // what the provider asks for; 0: it did not say
	Requests int           // that were sent
}

// Error returns the text of the failure, with the reason why it is final.
func (e *PatienceError) Error() string {
	if e.Wait > 0 {
		return fmt.Sprintf("%v; the provider asks to wait %s, which is longer than the rest of the retry patience of %s (retry_patience)", e.Err, spokenTime(e.Wait), spokenTime(e.Patience))
	}
	return fmt.Sprintf("%v; %d requests failed within the patience of %s (retry_patience)", e.Err, e.Requests, spokenTime(e.Patience))
}

// Unwrap returns the last failure.
func (e *PatienceError) Unwrap() error { return e.Err }

// The waits between requests when the provider does not name a time, and how often a
// request is sent that is unlikely to succeed.
const (
	firstWait    = time.Second
	longestWait  = 30 * time.Second
	doubtfulMost = 3
)

// WrapModel returns a model that repeats the requests to m. If fresh is set, the provider
// has not answered in this conversation yet: an address where nothing listens is then
// more likely wrong than restarting, and is tried three times only.
func (r Retry) WrapModel(m llm.Model, fresh bool) llm.Model {
	if r.If == nil {
		r.If = isTransient
	}
	return &retryModel{m, r, fresh}
}

func isTransient(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.IsTransient()
}

type retryModel struct {
	model llm.Model
	retry Retry
	fresh bool
}

// Stream implements llm.Model.
func (m *retryModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s := &retryState{Retry: m.retry, fresh: m.fresh, seed: graph.EffectKey(ctx), attempt: 1}
		models := &choice{}
		chosen := context.WithValue(ctx, choiceKey{}, models)
		shown := false      // a part of a text
		var spent llm.Usage // for replies that were not passed on
		for {
			dropped := false
			err := m.sendOnce(chosen, r, func(d llm.Delta, err error) bool {
				if dropped = s.dropsReply(d.Done); dropped {
					spent = spent.Add(d.Done.Usage)
					return false
				}
				if d.Done != nil && spent != (llm.Usage{}) {
					whole := *d.Done
					whole.Usage = whole.Usage.Add(spent)
					d.Done = &whole
				}
				shown = shown || d.Text != ""
				return yield(d, err)
			})
			if dropped {
				err = errNoOutput
			}
			if err == nil {
				return
			}
			again := false
			waited := time.Duration(0)
			switch {
			case ctx.Err() != nil:
			case !shown && isUnreachable(err) && models.takeNext(ctx, err):
				again = true
			default:
				waited, again, err = s.waitForRetry(ctx, err)
			}
			if !again && ctx.Err() == nil && !shown && models.takeNext(ctx, err) {
				again = true
				s = &retryState{Retry: m.retry, fresh: m.fresh, seed: s.seed, attempt: 1}
			}
			if !again {
				yield(llm.Delta{}, err)
				return
			}
			graph.NoteRetry(ctx, waited)
		}
	}
}

// errNoOutput is the failure of an attempt whose reply says nothing.
var errNoOutput = errors.New("the model produced no output")

// dropsReply reports whether a reply, nil if it is not complete, is not passed on because it says nothing and another
// attempt may say more.
func (s *retryState) dropsReply(r *llm.Reply) bool {
	if r == nil || !s.Output || s.attempt >= s.Attempts || !s.If(errNoOutput) {
		return false
	}
	_, useless := r.DescribeFlaw()
	return useless
}

// sendOnce sends one request. The error is also nil if the reader stopped reading.
func (m *retryModel) sendOnce(ctx context.Context, r llm.Request, yield func(llm.Delta, error) bool) error {
	for d, err := range m.model.Stream(ctx, r) {
		switch {
		case err != nil:
			return err
		case d.Done != nil && d.Done.IsEmpty():
			return &llm.Error{Class: llm.Server, Message: "the reply is empty"}
		case d.Done == nil:
			graph.NoteFirstPart(ctx)
		}
		if !yield(d, nil) || d.Done != nil {
			return nil
		}
	}
	return &llm.Error{Class: llm.Network, Code: llm.CodeReset, Message: "the stream ended without a reply"}
}

// retryState holds the history of the requests of one call.
type retryState struct {
	Retry
	fresh    bool
	seed     string
	attempt  int
	requests int       // of this attempt
	sent     int       // of all attempts together
	since    time.Time // the first failure of this attempt
}

// waitForRetry records a failure, waits until the next request may be sent, and returns for how long. If there is no
// next request, it returns the error that the caller gets.
func (s *retryState) waitForRetry(ctx context.Context, err error) (waited time.Duration, again bool, final error) {
	forgetPartialText(ctx)
	if s.requests++; s.requests == 1 {
		s.since = time.Now()
	}
	s.sent++
	after, final := s.patienceDelay(err)
	if final != nil {
		if after, final = s.attemptDelay(ctx, err, final); final != nil {
			return 0, false, final
		}
	}
	if after <= 0 {
		return 0, true, nil
	}
	if graph.IsEmitEnabled(ctx) {
		graph.Emit(ctx, RetryScheduled{Reason: reasonOf(err), Wait: after, Request: s.sent + 1})
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return after, true, nil
	case <-ctx.Done():
		return 0, false, contextError(ctx)
	}
}

// contextError returns the error of a context that has ended.
func contextError(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// patienceDelay returns the pause before the same request is sent again as the patience
// allows, or the error that the caller gets.
func (s *retryState) patienceDelay(err error) (time.Duration, error) {
	var failure *llm.Error
	if s.Patience < 0 || !errors.As(err, &failure) || s.requests >= maxRequests(failure, s.fresh) {
		return 0, err
	}
	patience := cmp.Or(s.Patience, DefaultPatience)
	left := patience - time.Since(s.since)
	switch {
	case failure.RetryAfter > left:
		return 0, &PatienceError{Err: err, Patience: patience, Wait: failure.RetryAfter, Requests: s.sent}
	case failure.RetryAfter > 0:
		return failure.RetryAfter, nil
	case left > 0:
		return min(s.backoffDelay(), left), nil
	}
	return 0, &PatienceError{Err: err, Patience: patience, Requests: s.sent}
}

// attemptDelay returns the pause before a further attempt, or the error that the caller
// gets: final, unless the provider asks for too much time.
func (s *retryState) attemptDelay(ctx context.Context, err, final error) (time.Duration, error) {
	if s.attempt >= s.Attempts || !s.If(err) {
		return 0, final
	}
	patience := DefaultPatience
	if s.Patience > 0 {
		patience = s.Patience
	}
	var after time.Duration
	var failure *llm.Error
	if errors.As(err, &failure) {
		after = failure.RetryAfter
	}
	if after > patience {
		return 0, &PatienceError{Err: err, Patience: patience, Wait: after, Requests: s.sent}
	}
	if s.Failed != nil {
		s.Failed(ctx, s.attempt, err)
	}
	s.attempt++
	s.requests = 0
	return after, nil
}

// backoffDelay returns the wait after the newest failure if the provider does not name one. A part
// of it depends on the call, so that calls which failed together are not repeated together; it is
// the same whenever the run is repeated.
func (s *retryState) backoffDelay() time.Duration {
	return backoff.DelayAfter(s.requests, s.seed).Round(100 * time.Millisecond)
}

// backoff doubles the wait from firstWait to longestWait, and adds up to a quarter.
var backoff = graph.Retry{Delay: firstWait * 5 / 4, Factor: 2, MaxDelay: longestWait * 5 / 4, Jitter: 0.2}

// maxRequests returns how often a request may be sent in one attempt that had
// this failure. A request is sent once if repeating it cannot help. It is sent
// a few times if repeating it hardly helps: after a reply that breaks the
// protocol, and to an address that has not answered yet.
func maxRequests(e *llm.Error, fresh bool) int {
	switch {
	case e.Code == "insufficient_quota": // not a rate limit, in spite of its status
		return 1
	case e.Class == llm.RateLimited || e.Class == llm.Overloaded || e.Class == llm.Timeout:
		return math.MaxInt
	case e.Class == llm.Server && (e.Status == http.StatusNotImplemented || e.Status == http.StatusHTTPVersionNotSupported):
		return 1
	case isBrokenReply(e), !fresh && e.Class == llm.BadRequest && e.Status == 0: // a web page instead of a reply
		return doubtfulMost
	case e.Class == llm.Server || e.Class == llm.Network && e.Code == llm.CodeReset:
		return math.MaxInt
	case e.Class == llm.Network && fresh:
		return doubtfulMost
	case e.Class == llm.Network:
		return math.MaxInt
	}
	return 1
}

// isBrokenReply reports whether the provider has not said that it failed, but broke the
// protocol.
func isBrokenReply(e *llm.Error) bool {
	return e.Class == llm.Server && e.Status == 0 && e.Code == ""
}

// Text returns the event as text for people: "rate limited, trying again in 20
// s (2nd request)".
func (r RetryScheduled) Text() string {
	if r.Model != "" {
		return fmt.Sprintf("%s, asking %s", r.Reason, r.Model)
	}
	return fmt.Sprintf("%s, trying again in %s (%s request)", r.Reason, spokenTime(r.Wait), formatOrdinal(r.Request))
}

// Restart returns what to write between the part of a reply that a reader has seen and the reply that follows:
// "connection lost, the reply starts again".
func (r RetryScheduled) Restart() string {
	return cmp.Or(r.Reason, "the model failed") + ", the reply starts again"
}

// reasonOf describes a failure in a few words.
func reasonOf(err error) string {
	var e *llm.Error
	if !errors.As(err, &e) {
		return "the model failed"
	}
	switch {
	case e.Class == llm.RateLimited:
		return "rate limited"
	case e.Class == llm.Overloaded:
		return "the provider is overloaded"
	case e.Class == llm.Timeout:
		return "the provider did not answer in time"
	case e.Class == llm.Network && e.Code == llm.CodeReset:
		return "connection lost"
	case e.Class == llm.Network && e.Code == llm.CodeRefused:
		return "connection refused"
	case e.Class == llm.Network:
		return "no connection"
	case isBrokenReply(e):
		return "the reply is broken"
	case e.Class == llm.Server && e.Status > 0:
		return fmt.Sprintf("server error (%d)", e.Status)
	case e.Class == llm.Server:
		return "server error"
	case e.Status == http.StatusNotFound || e.Status == http.StatusForbidden || e.Status == http.StatusGone:
		return fmt.Sprintf("the provider refuses the model (%d)", e.Status)
	}
	return "the reply is broken"
}

// spokenTime formats a time for people: "1.5 s", "20 s", "2 min", "1 h 5 min".
func spokenTime(d time.Duration) string {
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Round(100*time.Millisecond).Seconds(), 'f', -1, 64) + " s"
	}
	d = d.Round(time.Second)
	var parts []string
	for _, u := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, " h"}, {time.Minute, " min"}, {time.Second, " s"}} {
		if n := d / u.of; n > 0 {
			parts = append(parts, strconv.FormatInt(int64(n), 10)+u.name)
			d -= n * u.of
		}
	}
	return strings.Join(parts, " ")
}

func formatOrdinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
