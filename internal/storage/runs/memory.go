package runs

import (
	"context"
	"errors"
	"iter"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/memory"
)

// memoryPatience is how long a run waits for remembered values when the store is away: as long as its drive waits for
// the journal after the end of its lease.
const memoryPatience = 5 * time.Minute

// OpenMemory returns the store of values that outlive runs: it is part of the store of runs. If that is not available,
// calls wait, as the drive of a run does; the drive says so.
func (a *Archive) OpenMemory() (memory.Store, error) {
	st, err := a.openEntries(memoryPatience)
	if err == nil && st == nil {
		err = errors.New("this store keeps runs only")
	}
	return st, err
}

// sharedPatience is how long what servers share is waited for when the store is away: someone waits for the answer.
const sharedPatience = 2 * time.Second

// OpenShared returns the store of what all servers of the store know. It is that of OpenMemory, but waits only for a
// moment. What servers share of a store that keeps runs only is in the memory of this process.
func (a *Archive) OpenShared() (memory.Store, error) {
	st, err := a.openEntries(sharedPatience)
	if err == nil && st == nil {
		st = memory.New()
	}
	return st, err
}

// openEntries returns the store of entries, whose calls wait so long if it is not available; nil: the store keeps none.
func (a *Archive) openEntries(patience time.Duration) (memory.Store, error) {
	st, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	if m, ok := st.inside().(memory.Store); ok {
		return patientMemory{m, journal.Patience{Limit: patience}}, nil
	}
	return nil, nil
}

// A patientMemory is a store that waits while it is not available.
type patientMemory struct {
	store    memory.Store
	patience journal.Patience
}

// PutEntry implements [memory.Store]. Writing an entry twice does no harm.
func (m patientMemory) PutEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	return m.patience.Retry(ctx, func(ctx context.Context) error { return m.store.PutEntry(ctx, e, ttl) })
}

// AddEntry implements [memory.Adder]. What was added by an attempt with an unknown outcome is what the next one finds.
func (m patientMemory) AddEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	adder, ok := m.store.(memory.Adder)
	if !ok {
		return errors.New("this store adds no entries")
	}
	return m.patience.Retry(ctx, func(ctx context.Context) error { return adder.AddEntry(ctx, e, ttl) })
}

// GetEntry implements [memory.Store].
func (m patientMemory) GetEntry(ctx context.Context, namespace, key string) (e memory.Entry, err error) {
	err = m.patience.Retry(ctx, func(ctx context.Context) error {
		e, err = m.store.GetEntry(ctx, namespace, key)
		return err
	})
	return e, err
}

// DeleteEntry implements [memory.Store]. An entry that is gone after an attempt with an unknown outcome was deleted.
func (m patientMemory) DeleteEntry(ctx context.Context, namespace, key string) error {
	tried := false
	return m.patience.Retry(ctx, func(ctx context.Context) error {
		err := m.store.DeleteEntry(ctx, namespace, key)
		if tried && errors.Is(err, memory.ErrNotFound) {
			return nil
		}
		tried = true
		return err
	})
}

// ListEntries implements [memory.Store]. What was yielded already is not yielded again: if the store goes away in the
// middle, the iteration continues behind it.
func (m patientMemory) ListEntries(ctx context.Context, namespace string) iter.Seq2[memory.Entry, error] {
	return func(yield func(memory.Entry, error) bool) {
		var last memory.Entry
		started := false
		stopped := false
		err := m.patience.Retry(ctx, func(ctx context.Context) error {
			for e, err := range m.store.ListEntries(ctx, namespace) {
				switch {
				case err != nil:
					return err
				case started && !isAfter(e, last):
					continue
				}
				last = e
				started = true
				if !yield(e, nil) {
					stopped = true
					return nil
				}
			}
			return nil
		})
		if err != nil && !stopped {
			yield(memory.Entry{}, err)
		}
	}
}

// isAfter reports whether an entry follows another one in the order of a store.
func isAfter(e, other memory.Entry) bool {
	if e.Namespace != other.Namespace {
		return e.Namespace > other.Namespace
	}
	return e.Key > other.Key
}
