package memory

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// New returns a Store in the memory of this process. Its clock is that of the process.
func New() Store { return &process{entries: map[place]Entry{}} }

// A place is the namespace and the key of an entry.
type place struct{ namespace, key string }

// A process is a Store in a map.
type process struct {
	mu      sync.Mutex
	entries map[place]Entry
}

var _ Adder = (*process)(nil)

// PutEntry writes an entry.
func (p *process) PutEntry(ctx context.Context, e Entry, ttl time.Duration) error {
	e, err := CheckEntry(e, ttl)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeChecked(e, ttl)
	return nil
}

// AddEntry writes an entry unless there is one.
func (p *process) AddEntry(ctx context.Context, e Entry, ttl time.Duration) error {
	e, err := CheckEntry(e, ttl)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.findLive(place{e.Namespace, e.Key}); !ok {
		p.writeChecked(e, ttl)
	}
	return nil
}

// writeChecked writes an entry that was checked. The caller must hold mu.
func (p *process) writeChecked(e Entry, ttl time.Duration) {
	e.Updated = time.Now()
	e.Expires = time.Time{}
	e.Vector = slices.Clone(e.Vector)
	if ttl > 0 {
		e.Expires = e.Updated.Add(ttl)
	}
	p.entries[place{e.Namespace, e.Key}] = e
}

// GetEntry returns a copy of an entry.
func (p *process) GetEntry(ctx context.Context, namespace, key string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.findLive(place{namespace, key})
	if !ok {
		return Entry{}, ErrNotFound
	}
	return e.cloneEntry(), nil
}

// DeleteEntry removes an entry.
func (p *process) DeleteEntry(ctx context.Context, namespace, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.findLive(place{namespace, key}); !ok {
		return ErrNotFound
	}
	delete(p.entries, place{namespace, key})
	return nil
}

// ListEntries yields what there is when the iteration begins.
func (p *process) ListEntries(ctx context.Context, namespace string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range p.selectEntries(namespace) {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (p *process) selectEntries(namespace string) []Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []Entry
	for at := range p.entries {
		if !IsWithin(namespace, at.namespace) {
			continue
		}
		if e, ok := p.findLive(at); ok {
			found = append(found, e.cloneEntry())
		}
	}
	slices.SortFunc(found, compareEntries)
	return found
}

// findLive returns an entry that has not expired, and removes one that has. The caller must hold mu.
func (p *process) findLive(at place) (Entry, bool) {
	e, ok := p.entries[at]
	if ok && !e.Expires.IsZero() && !time.Now().Before(e.Expires) {
		delete(p.entries, at)
		return Entry{}, false
	}
	return e, ok
}

func (e Entry) cloneEntry() Entry {
	e.Value = slices.Clone(e.Value)
	e.Vector = slices.Clone(e.Vector)
	return e
}

// compareEntries orders entries as ListEntries does.
func compareEntries(a, b Entry) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
