package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"
)

// memTriggers are the triggers of a Memory. The zero value has none.
type memTriggers struct {
	mu       sync.Mutex
	triggers map[string]Trigger
	ticks    map[[2]string]Tick
}

var _ Triggers = (*Memory)(nil)

// ListTriggers implements Triggers.
func (m *Memory) ListTriggers(ctx context.Context) (list []Trigger, now time.Time, err error) {
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(m.own.triggers)) {
		list = append(list, m.own.triggers[id].cloneData())
	}
	return list, time.Now(), ctx.Err()
}

// cloneData returns a trigger that shares nothing with the original.
func (t Trigger) cloneData() Trigger {
	t.Data = slices.Clone(t.Data)
	return t
}

// cloneData returns a tick that shares nothing with the original.
func (t Tick) cloneData() Tick {
	t.Data = slices.Clone(t.Data)
	return t
}

// PutTrigger implements Triggers.
func (m *Memory) PutTrigger(ctx context.Context, t Trigger) (Trigger, error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	return m.own.putTrigger(t)
}

// putTrigger is PutTrigger. The caller must hold mu.
func (m *memTriggers) putTrigger(t Trigger) (Trigger, error) {
	if before, ok := m.triggers[t.ID]; before.Token != t.Token || !ok && t.Token != "" {
		return t, ErrConflict
	}
	if m.triggers == nil {
		m.triggers = map[string]Trigger{}
		m.ticks = map[[2]string]Tick{}
	}
	t.Token = rand.Text()
	m.triggers[t.ID] = t.cloneData()
	return t, nil
}

// RemoveTrigger implements Triggers.
func (m *Memory) RemoveTrigger(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	delete(m.own.triggers, id)
	maps.DeleteFunc(m.own.ticks, func(_ [2]string, t Tick) bool { return t.Trigger == id })
	return nil
}

// AddTicks implements Triggers.
func (m *Memory) AddTicks(ctx context.Context, of *Trigger, ticks []Tick) (stored []Tick, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	if of != nil {
		if *of, err = m.own.putTrigger(*of); err != nil {
			return nil, err
		}
	}
	if m.own.ticks == nil {
		m.own.ticks = map[[2]string]Tick{}
	}
	now := time.Now()
	maps.DeleteFunc(m.own.ticks, func(_ [2]string, t Tick) bool { return t.State != TickWaiting && now.Sub(t.Due) > TicksKept })
	for _, t := range ticks {
		key := [2]string{t.Trigger, t.Key}
		if _, ok := m.own.ticks[key]; !ok {
			t.Token = rand.Text()
			t.Due = now
			t.Attempts = 0
			m.own.ticks[key] = t.cloneData()
		}
		stored = append(stored, m.own.ticks[key].cloneData())
	}
	return stored, nil
}

// TakeTicks implements Triggers.
func (m *Memory) TakeTicks(ctx context.Context, limit int, ttl time.Duration) (taken []Tick, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 {
		return nil, err
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	now := time.Now()
	for _, t := range m.own.ticks {
		if t.State == TickWaiting && !t.Due.After(now) {
			taken = append(taken, t)
		}
	}
	slices.SortFunc(taken, func(a, b Tick) int {
		return cmp.Or(a.Due.Compare(b.Due), a.Time.Compare(b.Time), cmp.Compare(a.Key, b.Key))
	})
	taken = taken[:min(limit, len(taken))]
	for i := range taken {
		t := &taken[i]
		t.Token = rand.Text()
		t.Due = now.Add(ttl)
		t.Attempts++
		m.own.ticks[[2]string{t.Trigger, t.Key}] = *t
		*t = t.cloneData()
	}
	return taken, nil
}

// ChangeTick implements Triggers.
func (m *Memory) ChangeTick(ctx context.Context, t Tick, delay time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	key := [2]string{t.Trigger, t.Key}
	is, ok := m.own.ticks[key]
	if !ok || is.Token != t.Token {
		return ErrConflict
	}
	is.State = t.State
	is.Run = t.Run
	is.Note = t.Note
	is.Data = slices.Clone(t.Data)
	is.Due = time.Now().Add(delay)
	m.own.ticks[key] = is
	return nil
}

// ListTicks implements Triggers.
func (m *Memory) ListTicks(ctx context.Context, trigger string, limit int) (list []Tick, err error) {
	m.own.mu.Lock()
	defer m.own.mu.Unlock()
	for _, t := range m.own.ticks {
		if trigger == "" || t.Trigger == trigger {
			list = append(list, t.cloneData())
		}
	}
	slices.SortFunc(list, func(a, b Tick) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Trigger, a.Trigger), cmp.Compare(b.Key, a.Key))
	})
	return list[:min(limit, len(list))], ctx.Err()
}
