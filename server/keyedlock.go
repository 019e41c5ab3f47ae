package server

import (
	"context"
	"sync"
)

// A keyedLock is a lock for each key. The zero value works.
type keyedLock struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock of its key is free
}

// lock takes the lock of a key, and returns what releases it.
func (l *keyedLock) lock(ctx context.Context, key string) (release func(), err error) {
	for {
		l.mu.Lock()
		held := l.held[key]
		if held == nil {
			held = make(chan struct{})
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			l.held[key] = held
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, key)
				l.mu.Unlock()
				close(held)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
