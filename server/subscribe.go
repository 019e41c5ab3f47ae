package server

import (
	"context"
	"errors"
	"iter"
	"sync"

	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/runs"
)

// SubscribeOptions say what a subscriber wants to see.
type SubscribeOptions struct {
	// After is the id of the last event that the caller has seen, or the number of a record; "": from the start of the
	// run.
	After         string
	UntilQuestion bool // the subscription also ends when the run waits for an answer
}

// ErrSlow reports a subscriber that did not read its events in time. It can subscribe again after the last one that it
// read.
var ErrSlow = errors.New("the subscriber is too slow: too many events are waiting for it")

// maxBuffered is the size of the events that may wait for one subscriber, in bytes.
const maxBuffered = 4 << 20

// A Subscription is the sequence of the events of a run for one reader.
type Subscription struct {
	service *Service
	run     string
	feed    *feed // while the events are read
	ctx     context.Context
	options SubscribeOptions
	after   position

	journal *runs.Follower  // until the subscription has read what was there before it
	replies updates.Replies // that it has read
	at      position        // of the last event of the journal

	mu    sync.Mutex // guards the fields below
	queue []*Event   // shared by all subscribers that wait for them
	bytes int
	over  bool // nothing comes any more
	err   error
	wake  chan struct{}
}

// Subscribe follows a run from a position in its journal. The subscription ends with ctx, or with the loop over its
// events.
func (s *Service) Subscribe(ctx context.Context, run string, o SubscribeOptions) (*Subscription, error) {
	if err := s.RequireScope(ctx, ScopeRead); err != nil {
		return nil, err
	}
	after, err := parsePosition(o.After)
	if err != nil {
		return nil, err
	}
	if !s.isActive(run) { // of one that is active, the start is recorded under this id
		detail, err := s.findRun(ctx, run)
		if err != nil {
			return nil, err
		}
		run = detail.Run
	}
	return &Subscription{
		service: s,
		run:     run,
		ctx:     ctx,
		options: o,
		after:   after,
		journal: s.process.Runs.FollowRun(run),
		wake:    make(chan struct{}, 1),
	}, nil
}

// Events returns the events. The sequence ends when the run has ended or has stopped, or waits for an answer if the
// options say so. An error is last: that of the context, of the store, or ErrSlow. The sequence can be used once.
func (sub *Subscription) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		sub.feed = sub.service.feeds.acquire(sub.service, sub.run)
		defer sub.leave()
		for joined := false; ; {
			if !joined {
				more, err := sub.readJournal(sub.ctx, false)
				if err == nil && !more {
					joined, err = sub.feed.join(sub.ctx, sub)
				}
				if err != nil {
					sub.finish(err)
				}
			}
			batch, over, err := sub.takeQueue()
			for i := range batch {
				if !yield(*batch[i], nil) {
					return
				}
			}
			switch {
			case over && err != nil:
				yield(Event{}, err)
				return
			case over:
				return
			case !joined:
				continue
			}
			select {
			case <-sub.wake:
			case <-sub.ctx.Done():
				yield(Event{}, sub.ctx.Err())
				return
			}
		}
	}
}

// readJournal puts a batch of recorded events that the subscriber has not seen into the queue. more reports whether
// there are others.
func (sub *Subscription) readJournal(ctx context.Context, live bool) (more bool, err error) {
	events, more, err := sub.journal.ReadEvents(ctx, live)
	for _, ev := range events {
		sub.at = sub.at.nextPosition(&ev)
		e := sub.service.encodeEvent(ev, sub.run, sub.at)
		sub.replies.HandleEvent(ev)
		if sub.at.isAfter(sub.after) {
			sub.mu.Lock()
			sub.queue = append(sub.queue, &e)
			sub.bytes += len(e.Line)
			sub.mu.Unlock()
		}
	}
	return more, err
}

// push adds an event for the reader, and reports whether the reader is fast enough.
func (sub *Subscription) push(ev *Event) bool {
	if at, _ := parsePosition(ev.ID); ev.ID != "" && !at.isAfter(sub.after) {
		return true
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.bytes+len(ev.Line) > maxBuffered {
		sub.over = true
		sub.err = ErrSlow
	} else {
		sub.queue = append(sub.queue, ev)
		sub.bytes += len(ev.Line)
	}
	sub.requestRead()
	return !sub.over
}

// finish ends the subscription after the events that wait.
func (sub *Subscription) finish(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if !sub.over {
		sub.over = true
		sub.err = err
	}
	sub.requestRead()
}

// requestRead wakes the reader.
func (sub *Subscription) requestRead() {
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// takeQueue returns the events that wait. over reports whether they are the last ones.
func (sub *Subscription) takeQueue() (batch []*Event, over bool, err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	batch = sub.queue
	sub.queue = nil
	sub.bytes = 0
	return batch, sub.over, sub.err
}

// leave ends the subscription.
func (sub *Subscription) leave() {
	f := sub.feed
	f.mu.Lock()
	f.removeSub(sub)
	f.mu.Unlock()
	sub.service.feeds.release(f)
}
