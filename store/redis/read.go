package redis

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"raddle.dev/graph/journal"
)

const (
	pageRecords = 512
	pageBytes   = 1 << 20 // size after which a page ends
)

// Read implements journal.Store.
func (s *Store) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		p := newPager(thread, r)
		for p.more {
			page, err := p.readPage(ctx, s)
			if err != nil {
				yield(journal.Record{}, s.explainError(fmt.Sprintf("read thread %q", thread), err))
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
		}
	}
}

// A pager reads the pages of an iteration. The first page fixes what the iteration yields.
type pager struct {
	thread string
	r      journal.Range // what is left; Limit and FromSnapshot belong to the first page
	id     string        // of the thread; "" before the first page
	more   bool
}

func newPager(thread string, r journal.Range) *pager {
	r.After = min(max(r.After, 0), maxSeq)
	if r.UpTo <= 0 || r.UpTo > maxSeq {
		r.UpTo = maxSeq
	}
	r.Limit = max(r.Limit, 0)
	return &pager{thread: thread, r: r, more: r.After < r.UpTo}
}

// readPage returns the next records, in the order of the iteration.
func (p *pager) readPage(ctx context.Context, s *Store) ([]journal.Record, error) {
	value, err := s.runScript(ctx, readScript, threadKeys(p.thread),
		p.id, p.r.After, p.r.UpTo, flag(p.r.FromSnapshot), flag(p.r.Newest), p.r.Limit, flag(!p.r.Heads), pageRecords, pageBytes)
	if err != nil {
		return nil, err
	}
	rep := newReply(value)
	p.id = rep.takeText()
	low := rep.takeNumber()
	high := rep.takeNumber()
	n := rep.takeNumber()
	switch {
	case p.id == "changed":
		return nil, errChanged
	case p.id == "damaged":
		return nil, &journal.DamagedError{Thread: p.thread, Err: errDamaged}
	case p.id == "" || rep.err != nil:
		p.more = false
		return nil, rep.err
	}
	p.r.After = low - 1
	p.r.UpTo = high
	p.r.Limit = 0
	p.r.FromSnapshot = false
	from := low
	if p.r.Newest {
		from = high - n + 1
		p.r.UpTo = high - n
	} else {
		p.r.After += n
	}
	p.more = p.r.After < p.r.UpTo
	page := make([]journal.Record, n)
	for i := range page {
		page[i] = decodeRecord(from+int64(i), rep.takeText())
	}
	for i := range page {
		if !p.r.Heads {
			page[i].Data = []byte(rep.takeText())
		}
	}
	if p.r.Newest {
		slices.Reverse(page)
	}
	return page, rep.err
}

// flag returns a condition as an argument of a script.
func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// The first page of a listing is short, for callers that only want the newest threads. The
// server is blocked while it makes a page: 1,000 threads take a few milliseconds.
const (
	firstThreads = 64
	moreThreads  = 4
	maxThreads   = 1024
)

// Threads implements journal.Store. It reads the first and the last record of each thread,
// without their Data. A thread that is created or deleted during the iteration may or may
// not be in it.
func (s *Store) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	return func(yield func(journal.ThreadInfo, error) bool) {
		below := prefixUpperBound(prefix)
		for size := firstThreads; ; size = min(size*moreThreads, maxThreads) {
			page, err := s.readThreads(ctx, below, "["+prefix, size)
			if err != nil {
				yield(journal.ThreadInfo{}, s.explainError(fmt.Sprintf("list threads %q", prefix), err))
				return
			}
			for _, t := range page {
				if !yield(t, nil) {
					return
				}
			}
			if len(page) < size {
				return
			}
			below = "(" + page[size-1].Name
		}
	}
}

// prefixUpperBound returns the bound above all names with the prefix, as ZREVRANGEBYLEX reads it.
func prefixUpperBound(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return "(" + string(b[:i+1])
		}
	}
	return "+"
}

func (s *Store) readThreads(ctx context.Context, below, from string, limit int) ([]journal.ThreadInfo, error) {
	value, err := s.runScript(ctx, listScript, []string{keyNames}, below, from, limit, prefixMeta, prefixHeads)
	if err != nil {
		return nil, err
	}
	rep := newReply(value)
	now := rep.takeNumber()
	var page []journal.ThreadInfo
	for len(rep.values) > 0 && rep.err == nil {
		t := journal.ThreadInfo{Name: rep.takeText()}
		t.First = decodeRecord(rep.takeNumber(), rep.takeText())
		t.Head = rep.takeNumber()
		t.Last = decodeRecord(t.Head, rep.takeText())
		t.Lease = leaseOf(rep.takeText(), rep.takeNumber(), now)
		page = append(page, t)
	}
	return page, rep.err
}

// leaseOf returns a lease as the server stores it, at a time of the server in microseconds;
// owner "" means none.
func leaseOf(owner string, until, now int64) journal.Lease {
	if owner == "" {
		return journal.Lease{}
	}
	return journal.Lease{Owner: owner, Until: time.UnixMicro(until), Expired: until <= now}
}
