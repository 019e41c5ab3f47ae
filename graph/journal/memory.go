package journal

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a Store, with leases, whose content is lost when the process ends. Make it with
// NewMemory. It is safe for concurrent use.
type Memory struct {
	mu      sync.RWMutex
	threads map[string]*memThread
	leases  map[string]Lease
	lines   map[string]Line
	counts  map[string]int // of lines, by status
	own     memTriggers
}

var (
	_ Leaser = (*Memory)(nil)
	_ Index  = (*Memory)(nil)
)

// memThread holds the records first, first+1, …; a slice that was taken under the lock
// may be read without it, because entries never change.
type memThread struct {
	first int64
	recs  []Record
}

func (t *memThread) headSeq() int64 { return t.first + int64(len(t.recs)) - 1 }

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	return &Memory{threads: map[string]*memThread{}, leases: map[string]Lease{}, lines: map[string]Line{}, counts: map[string]int{}}
}

// Append implements Store.
func (m *Memory) Append(ctx context.Context, thread string, after int64, recs []Record) error {
	if err := ctx.Err(); err != nil || len(recs) == 0 {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	switch {
	case t == nil && after != 0, t != nil && t.headSeq() != after:
		return ErrConflict
	case t == nil:
		t = &memThread{first: 1}
		m.threads[thread] = t
	}
	size := 0
	for i := range recs {
		size += len(recs[i].Head) + len(recs[i].Data)
	}
	if t.recs == nil {
		t.recs = make([]Record, 0, 8)
	}
	block := make([]byte, 0, size)
	for i, r := range recs {
		r.Seq = after + int64(i) + 1
		r.Head, r.Data, block = copyBytes(r.Head, r.Data, block)
		t.recs = append(t.recs, r)
	}
	if l := LineOf(ctx, thread, after, recs); l != nil {
		m.setLine(thread, l)
	}
	return nil
}

// setLine replaces the line of a thread; nil: there is none any more. The caller must hold mu.
func (m *Memory) setLine(thread string, l *Line) {
	if before, ok := m.lines[thread]; ok {
		if m.counts[before.Status]--; m.counts[before.Status] == 0 {
			delete(m.counts, before.Status)
		}
		delete(m.lines, thread)
	}
	if l != nil {
		kept := *l
		kept.Details = bytes.Clone(l.Details)
		m.lines[thread] = kept
		m.counts[kept.Status]++
	}
}

// FillLine implements Index.
func (m *Memory) FillLine(ctx context.Context, l Line) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.lines[l.Thread]; ok && before.Status == "" {
		m.setLine(l.Thread, &l)
	}
	return nil
}

// ReadLine implements Index.
func (m *Memory) ReadLine(ctx context.Context, thread string) (Line, bool, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, ok := m.lines[thread]
	l.Details = bytes.Clone(l.Details)
	l.Lease = m.currentLease(thread)
	return l, ok, ctx.Err()
}

// ListLines implements Index. It looks at every line.
func (m *Memory) ListLines(ctx context.Context, r LineRange) ([]Line, error) {
	return m.selectLines(ctx, r.Limit, r.Selects, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(b.Thread, a.Thread))
	})
}

// ListWaiting implements Index. It looks at every line.
func (m *Memory) ListWaiting(ctx context.Context, r WaitRange) ([]Line, error) {
	after := Line{Thread: r.AfterThread, Wait: r.After}
	order := func(a, b *Line) int { return cmp.Or(cmp.Compare(a.Wait, b.Wait), cmp.Compare(a.Thread, b.Thread)) }
	waits := func(l *Line) bool { return l.Wait > 0 && (r.After == 0 || order(l, &after) > 0) }
	return m.selectLines(ctx, r.Limit, waits, order)
}

// ListForks implements Index. It looks at every line.
func (m *Memory) ListForks(ctx context.Context, parents []string) ([]Line, error) {
	isFork := func(l *Line) bool { return l.Parent != "" && slices.Contains(parents, l.Parent) }
	return m.selectLines(ctx, 0, isFork, func(a, b *Line) int { return cmp.Compare(a.Thread, b.Thread) })
}

// selectLines returns the first lines that are wanted, in an order; a limit of 0 is none.
func (m *Memory) selectLines(ctx context.Context, limit int, wanted func(*Line) bool, order func(a, b *Line) int) ([]Line, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []Line
	for _, l := range m.lines {
		if wanted(&l) {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b Line) int { return order(&a, &b) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	for i := range list {
		list[i].Details = bytes.Clone(list[i].Details)
		list[i].Lease = m.currentLease(list[i].Thread)
	}
	return list, nil
}

// CountLines implements Index.
func (m *Memory) CountLines(ctx context.Context) (map[string]int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.counts), ctx.Err()
}

// copyBytes appends the bytes of a record to block, and returns the copies and the longer
// block.
func copyBytes(head, data, block []byte) (_, _, behind []byte) {
	n := len(block)
	block = append(append(block, head...), data...)
	at := n + len(head)
	return block[n:at:at], block[at:len(block):len(block)], block
}

// clone returns the record with its own copy of the bytes.
func (r Record) clone() Record {
	r.Head, r.Data, _ = copyBytes(r.Head, r.Data, make([]byte, 0, len(r.Head)+len(r.Data)))
	return r
}

// EachFromSnapshot calls add for the records of a thread from its newest snapshot or fork on, or for all
// if there is none, oldest first, until add returns false. The records share their bytes with the store:
// add may keep them, and must not change them.
func (m *Memory) EachFromSnapshot(ctx context.Context, thread string, add func(Record, error) bool) {
	if err := ctx.Err(); err != nil {
		add(Record{}, err)
		return
	}
	l := m.selectRecords(thread, Range{FromSnapshot: true})
	for i := 0; i < len(l) && add(l[i], nil); i++ {
	}
}

// Read implements Store.
func (m *Memory) Read(ctx context.Context, thread string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Record{}, err)
			return
		}
		l := m.selectRecords(thread, r)
		for i := range l {
			rec := l[i]
			if r.Newest {
				rec = l[len(l)-1-i]
			}
			if r.Limit > 0 && i >= r.Limit {
				return
			}
			if r.Heads {
				rec.Data = nil
			}
			rec = rec.clone()
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (m *Memory) selectRecords(thread string, r Range) []Record {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.threads[thread]
	if t == nil {
		return nil
	}
	from := max(0, r.After+1-t.first)
	to := int64(len(t.recs))
	if r.UpTo > 0 {
		to = min(to, r.UpTo+1-t.first)
	}
	if from >= to {
		return nil
	}
	l := t.recs[from:to]
	for i := len(l) - 1; i >= 0 && r.FromSnapshot; i-- {
		if l[i].Kind.IsBase() {
			return l[i:]
		}
	}
	return l
}

// Threads implements Store.
func (m *Memory) Threads(ctx context.Context, prefix string) iter.Seq2[ThreadInfo, error] {
	return func(yield func(ThreadInfo, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(ThreadInfo{}, err)
			return
		}
		for _, i := range m.listThreads(prefix) {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (m *Memory) listThreads(prefix string) []ThreadInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var l []ThreadInfo
	for name, t := range m.threads {
		if strings.HasPrefix(name, prefix) {
			i := ThreadInfo{Name: name, Head: t.headSeq(), First: t.recs[0], Last: t.recs[len(t.recs)-1]}
			i.First.Data, i.Last.Data = nil, nil
			i.First.Head, i.Last.Head = slices.Clone(i.First.Head), slices.Clone(i.Last.Head)
			i.Lease = m.currentLease(name)
			l = append(l, i)
		}
	}
	slices.SortFunc(l, func(a, b ThreadInfo) int { return cmp.Compare(b.Name, a.Name) })
	return l
}

// Prune implements Store.
func (m *Memory) Prune(ctx context.Context, thread string, before int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[thread]
	switch {
	case t == nil || before <= t.first:
		return nil
	case before > t.headSeq():
		delete(m.threads, thread)
		delete(m.leases, thread)
		m.setLine(thread, nil)
		return nil
	}
	m.threads[thread] = &memThread{first: before, recs: slices.Clone(t.recs[before-t.first:])}
	return nil
}

// AcquireLease implements Leaser.
func (m *Memory) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (Lease, error) {
	return m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == "" || l.Expired || l.Owner == owner || l.Owner == over {
			m.leases[thread] = Lease{Owner: owner, Until: time.Now().Add(ttl)}
		}
	})
}

// RenewLease implements Leaser.
func (m *Memory) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (Lease, error) {
	return m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == owner {
			m.leases[thread] = Lease{Owner: owner, Until: time.Now().Add(ttl)}
		}
	})
}

// ReleaseLease implements Leaser.
func (m *Memory) ReleaseLease(ctx context.Context, thread, owner string) error {
	_, err := m.useLease(ctx, thread, func(l Lease) {
		if l.Owner == owner {
			delete(m.leases, thread)
		}
	})
	return err
}

// ReadLease implements Leaser.
func (m *Memory) ReadLease(ctx context.Context, thread string) (Lease, error) {
	return m.useLease(ctx, thread, func(Lease) {})
}

// useLease calls change with the lease of a thread, which it may replace in m.leases, and
// returns the lease after that.
func (m *Memory) useLease(ctx context.Context, thread string, change func(Lease)) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.currentLease(thread))
	return m.currentLease(thread), nil
}

// currentLease returns the lease of a thread. The caller must hold mu.
func (m *Memory) currentLease(thread string) Lease {
	l, ok := m.leases[thread]
	l.Expired = ok && !time.Now().Before(l.Until)
	return l
}

// Close implements Store.
func (m *Memory) Close() error { return nil }
