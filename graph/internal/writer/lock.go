package writer

// A Lock is a lock that may be held for minutes. Waiting for it lets the time of a testing/synctest bubble pass, unlike
// waiting for a mutex. Make it with NewLock.
type Lock chan struct{}

// NewLock returns a lock that is free.
func NewLock() Lock { return make(Lock, 1) }

// Lock takes the lock, and waits until it is free.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock frees the lock.
func (l Lock) Unlock() { <-l }

// TryLock reports whether it has taken the lock, and does not wait.
func (l Lock) TryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}
