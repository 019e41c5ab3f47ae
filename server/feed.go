package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/runs"
)

// A feed passes the events of a run to its subscribers: those of the journal, whichever process writes it, and the live
// ones of a drive of this service. It reads the journal once for all subscribers, and only while there are any.
type feed struct {
	service *Service
	run     string
	users   int // drives and subscriptions; the set guards it

	mu      sync.Mutex // guards the fields below
	subs    map[*Subscription]struct{}
	journal *runs.Follower // nil: there are no subscribers
	at      position       // of the last event that was passed on
	replies updates.Replies
	remote  bool          // another process drives the run, or is to
	stop    chan struct{} // ends the goroutine that looks at the journal; nil: there is none
	look    chan struct{} // asks that goroutine to look now
}

// A feedSet has the feeds of the runs that are driven or followed.
type feedSet struct {
	mu    sync.Mutex
	feeds map[string]*feed
	over  error // why there are no subscriptions any more; nil: there may be
}

// acquire returns the feed of a run. The caller must call release.
func (fs *feedSet) acquire(s *Service, run string) *feed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.feeds[run]
	if f == nil {
		f = &feed{service: s, run: run, subs: map[*Subscription]struct{}{}, replies: updates.Replies{Replaces: true}, look: make(chan struct{}, 1)}
		fs.feeds[run] = f
	}
	f.users++
	return f
}

// release forgets a feed that nothing uses any more.
func (fs *feedSet) release(f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.users--; f.users == 0 {
		delete(fs.feeds, f.run)
	}
}

// findFeed returns the feed of a run, or nil.
func (fs *feedSet) findFeed(run string) *feed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.feeds[run]
}

// noteStopped says that a run is not driven any more.
func (fs *feedSet) noteStopped(run string) {
	if f := fs.findFeed(run); f != nil {
		f.noteStopped()
	}
}

// requestLook makes the feed of a run, if it has one, look at the journal soon.
func (fs *feedSet) requestLook(run string) {
	if f := fs.findFeed(run); f != nil {
		f.requestLook()
	}
}

// endReason returns why there are no subscriptions any more, or nil.
func (fs *feedSet) endReason() error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.over
}

// end ends all subscriptions, and those that come later.
func (fs *feedSet) end(err error) {
	fs.mu.Lock()
	fs.over = err
	all := slices.Collect(maps.Values(fs.feeds))
	fs.mu.Unlock()
	for _, f := range all {
		f.mu.Lock()
		f.endSubs(err)
		f.mu.Unlock()
	}
}

// handleEvent takes an event of a drive of this service. It never waits for a subscriber.
func (f *feed) handleEvent(ev graph.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	journaled := updates.IsJournaled(ev.Body)
	if len(f.subs) > 0 && (journaled || ev.Record > f.journal.Last()) {
		f.readJournal(context.Background(), true)
	}
	if f.replies.IsLate(ev) {
		return
	}
	f.replies.HandleEvent(ev)
	if !journaled && len(f.subs) > 0 {
		live := f.service.encodeEvent(ev, f.run, position{})
		f.passOn(&live)
	}
}

// readJournal passes on what the run has recorded. The caller must hold mu, and there must be subscribers.
func (f *feed) readJournal(ctx context.Context, live bool) {
	for more := true; more && f.journal != nil; { // passOn may drop the last subscriber
		var events []graph.Event
		var err error
		events, more, err = f.journal.ReadEvents(ctx, live)
		for _, ev := range events {
			f.at = f.at.nextPosition(&ev)
			f.replies.HandleEvent(ev)
			e := f.service.encodeEvent(ev, f.run, f.at)
			f.passOn(&e)
		}
		if err != nil {
			f.endSubs(err)
			return
		}
	}
}

// passOn gives an event to every subscriber. One that is too slow is dropped. The caller must hold mu.
func (f *feed) passOn(ev *Event) {
	for sub := range f.subs {
		if !sub.push(ev) {
			f.removeSub(sub)
		}
	}
}

// endSubs ends all subscriptions with an error. The caller must hold mu.
func (f *feed) endSubs(err error) {
	for sub := range f.subs {
		sub.finish(err)
		f.removeSub(sub)
	}
}

// removeSub removes a subscriber. The caller must hold mu.
func (f *feed) removeSub(sub *Subscription) {
	delete(f.subs, sub)
	if len(f.subs) == 0 {
		f.journal = nil
		if f.stop != nil {
			close(f.stop)
			f.stop = nil
		}
	}
}

// join makes a subscriber that has read the journal a part of the feed, and reports whether it had read all of it.
// Otherwise the subscriber has to read more.
func (f *feed) join(ctx context.Context, sub *Subscription) (joined bool, err error) {
	active := f.service.isActive(f.run)
	f.mu.Lock()
	defer f.mu.Unlock()
	live := active || f.remote
	if f.journal != nil {
		f.readJournal(ctx, live)
	}
	if more, err := sub.readJournal(ctx, live); more || err != nil {
		return false, err
	}
	switch {
	case f.journal == nil || len(f.subs) == 0:
		f.journal = sub.journal
		f.at = sub.at
	case f.journal.Last() != sub.journal.Last():
		return false, nil
	}
	sub.journal = nil
	f.subs[sub] = struct{}{}
	f.replies.NoteEnded(&sub.replies) // the drive may report their pieces later
	for _, r := range f.replies.OpenReplies() {
		for _, v := range []any{agent.ReasoningDelta{Text: r.Reasoning()}, agent.TextDelta{Text: r.Text()}} {
			if v != (agent.ReasoningDelta{}) && v != (agent.TextDelta{}) {
				sofar := f.service.encodeEvent(r.Event(v), f.run, position{})
				sub.push(&sofar)
			}
		}
	}
	if err := f.service.feeds.endReason(); err != nil {
		sub.finish(err)
		f.removeSub(sub)
		return true, nil
	}
	if f.stop == nil {
		f.stop = make(chan struct{})
		go f.watchJournal(f.stop)
	}
	f.requestLook()
	return true, nil
}

// noteStopped says that this service does not drive the run any more.
func (f *feed) noteStopped() {
	f.mu.Lock()
	f.replies.DropOpen()
	f.mu.Unlock()
	f.requestLook()
}

// requestLook makes the feed look at the journal soon.
func (f *feed) requestLook() {
	select {
	case f.look <- struct{}{}:
	default:
	}
}

// activePolls is how many times less often the journal of a run is looked at while this service drives it.
const activePolls = 5

// watchJournal looks at the journal while there are subscribers: a run may be driven by another process, and what a
// drive records after its last event must be seen too.
func (f *feed) watchJournal(stop chan struct{}) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if n%activePolls > 0 && f.service.isActive(f.run) {
				continue // its events say when to look
			}
		case <-f.look:
		}
		f.lookOnce(ctx)
	}
}

// lookOnce passes on what is new, and ends the subscriptions of a run that does not continue by itself.
func (f *feed) lookOnce(ctx context.Context) {
	active := f.service.isActive(f.run)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) == 0 {
		f.remote = false
		return
	}
	driven := false
	queued := false
	var err error
	if !active {
		driven, queued, err = f.journal.IsDriven(ctx)
	}
	f.remote = driven || queued
	follower := f.journal
	head := follower.Head()
	f.readJournal(ctx, active || f.remote)
	if !active && !f.remote && err == nil && follower.Head() > head { // it may be driven again by now
		f.requestLook()
		return
	}
	waits := follower.Waits() && !queued
	for sub := range f.subs {
		switch {
		case err != nil:
			sub.finish(err)
		case active, f.remote && !waits, waits && !sub.options.UntilQuestion:
			continue
		default:
			sub.finish(nil)
		}
		f.removeSub(sub)
	}
}
