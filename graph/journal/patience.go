package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"
)

// ErrUnavailable says that a store cannot be used now, and that the same call may succeed later: its
// server is away or starting, its connection broke, its file is locked, its disk is full. A write that
// failed with it may nevertheless have been stored. A Store marks such errors with MarkUnavailable. All
// that is neither this nor ErrConflict was refused permanently: damage, a missing permission, a store that
// is closed, a value that is too large.
var ErrUnavailable = errors.New("journal: the store is not available now")

// MarkUnavailable returns err with the same text, for which errors.Is also finds ErrUnavailable; nil for nil.
func MarkUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return &unavailableError{err}
}

// unavailableError is an error that MarkUnavailable has marked.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string   { return e.err.Error() }
func (e *unavailableError) Unwrap() []error { return []error{e.err, ErrUnavailable} }

// IsUnavailable reports whether the error of a store says that the same call may succeed later. That
// is so if the store has marked it, and for errors of the network and for deadlines, which stores pass
// on that mark nothing. The end of the caller's own context looks like the latter: look at the context first.
func IsUnavailable(err error) bool {
	if errors.Is(err, ErrUnavailable) {
		return true
	}
	if err == nil || errors.Is(err, ErrConflict) || errors.Is(err, net.ErrClosed) {
		return false
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() { // also context.DeadlineExceeded
		return true
	}
	_, operation := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	return operation || name || slices.ContainsFunc(lostConnections, func(code error) bool { return errors.Is(err, code) })
}

// lostConnections are errors of connections that some clients pass on bare. (Other errors of the system, such as a
// missing permission, have the methods of net.Error too.)
var lostConnections = []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE}

// Patience is how long a call waits for a store that is not available. The zero Patience does not wait.
type Patience struct {
	// Limit is the time from the first failure after which no further attempt begins.
	Limit time.Duration

	// Away, if not nil, is called with the error when the waiting begins.
	Away func(err error)

	// Back, if not nil, is called after Away, when the waiting has ended: with nil if the store is back, or
	// with the error that the call returns.
	Back func(err error)
}

// ShortPatience is the patience of a caller whom no one has promised anything yet, such as a start, and
// of a person who waits: a store that restarts is back after some seconds.
const ShortPatience = 10 * time.Second

// Pauses between two attempts: the first, which the following double, and the longest.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Retry calls f, and again while its error says that the store is not available, with growing pauses,
// until the patience or the context has ended. f may have been carried out although it failed: it must
// be a call that does no harm when it is made twice. The end of ctx ends a pause at once; the error then
// is that of f, and that of the context too.
func (p Patience) Retry(ctx context.Context, f func(context.Context) error) error {
	return p.retryAfter(ctx, f(ctx), f)
}

// retryAfter is Retry after a first attempt, which has returned err.
func (p Patience) retryAfter(ctx context.Context, err error, f func(context.Context) error) error {
	if p.Limit <= 0 || ctx.Err() != nil || !IsUnavailable(err) {
		return err
	}
	if p.Away != nil {
		p.Away(err)
	}
	err = p.retryLater(ctx, err, f)
	if p.Back != nil {
		p.Back(err)
	}
	return err
}

// retryLater makes the further attempts of Retry.
func (p Patience) retryLater(ctx context.Context, err error, f func(context.Context) error) error {
	start := time.Now()
	pause := firstPause
	for IsUnavailable(err) && ctx.Err() == nil {
		left := p.Limit - time.Since(start)
		if left <= 0 {
			return fmt.Errorf("no success in %v: %w", p.Limit, err)
		}
		timer := time.NewTimer(min(left, pause/2+rand.N(pause/2+1)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return MarkUnavailable(fmt.Errorf("%w, while the store was away: %w", ctx.Err(), err))
		case <-timer.C:
		}
		pause = min(2*pause, lastPause)
		err = f(ctx)
	}
	return err
}

// Append appends records with their checksums, like the function Append, and finds out what has become
// of a write whose answer was lost: it appends again, and if the thread has moved on meanwhile, compares
// the records that are there with its own. So the records are stored once, or the error says
// why not; it is ErrUnavailable if that is still unknown.
//
// The end of ctx only ends the waiting: a write that has started is not left halfway, and one attempt is made also if
// ctx has ended before.
func (p Patience) Append(ctx context.Context, st Store, thread string, after int64, recs ...Record) error {
	c := NewChecksums(thread)
	c.Set(after, recs)
	return p.AppendSealed(ctx, st, thread, after, recs)
}

// AppendSealed is Append for records that have their checksums.
func (p Patience) AppendSealed(ctx context.Context, st Store, thread string, after int64, recs []Record) error {
	first := ctx
	if ctx.Err() != nil {
		first = context.WithoutCancel(ctx)
	}
	err := st.Append(first, thread, after, recs)
	// ended says that ctx ended while the store worked, which was not away.
	ended := first == ctx && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, ErrUnavailable)
	if err == nil || !ended && !IsUnavailable(err) {
		return err
	}
	again := func(ctx context.Context) error {
		err := st.Append(ctx, thread, after, recs)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		stored, readErr := hasRecords(ctx, st, thread, after, recs) // by an earlier attempt
		if stored {
			return nil
		}
		if readErr != nil {
			return fmt.Errorf("look for the records of a write whose answer was lost: %w", readErr)
		}
		return err
	}
	if ended {
		err = again(context.WithoutCancel(ctx))
	} else {
		err = p.retryAfter(ctx, err, again)
	}
	if errors.Is(err, ErrConflict) {
		return err
	}
	return MarkUnavailable(err) // also if the last attempt was refused: an earlier one may have been stored
}

// hasRecords reports whether the records of a thread behind one are these.
func hasRecords(ctx context.Context, st Store, thread string, after int64, recs []Record) (bool, error) {
	n := 0
	for rec, err := range Records(ctx, st, thread, Range{After: after, Limit: len(recs)}) {
		if err != nil {
			return false, err
		}
		if want := &recs[n]; rec.Seq != after+int64(n)+1 || rec.Kind != want.Kind || rec.Time != want.Time || rec.Sum != want.Sum ||
			!bytes.Equal(rec.Head, want.Head) || !bytes.Equal(rec.Data, want.Data) {
			return false, nil
		}
		n++
	}
	return n == len(recs), nil
}
