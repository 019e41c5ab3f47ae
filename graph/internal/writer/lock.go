package writer

// A lock is a lock that may be held for minutes. Waiting for it lets the time of a testing/synctest bubble pass, unlike
// waiting for a mutex. Make it with newLock.
type lock chan struct{}

// newLock returns a lock that is free.
func newLock() lock { return make(lock, 1) }

// Lock takes the lock, and waits until it is free.
func (l lock) Lock() { l <- struct{}{} }

// Unlock frees the lock.
func (l lock) Unlock() { <-l }

// TryLock reports whether it has taken the lock, and does not wait.
func (l lock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}
