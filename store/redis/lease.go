package redis

import (
	"context"
	"fmt"
	"time"

	"raddle.dev/graph/journal"
)

var _ journal.Leaser = (*Store)(nil)

// AcquireLease implements journal.Leaser. The clock of the server counts.
func (s *Store) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	return s.useLease(ctx, "acquire", thread, owner, over, ttl)
}

// RenewLease implements journal.Leaser.
func (s *Store) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return s.useLease(ctx, "renew", thread, owner, "", ttl)
}

// ReleaseLease implements journal.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, thread, owner string) error {
	_, err := s.useLease(ctx, "release", thread, owner, "", 0)
	return err
}

// ReadLease implements journal.Leaser.
func (s *Store) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	return s.useLease(ctx, "read", thread, "", "", 0)
}

// useLease does one thing with the lease of a thread and returns the lease after that.
func (s *Store) useLease(ctx context.Context, what, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	value, err := s.runScript(ctx, leaseScript, []string{prefixMeta + thread}, what, owner, over, ttl.Microseconds())
	if err == nil {
		r := newReply(value)
		l := leaseOf(r.takeText(), r.takeNumber(), r.takeNumber())
		if err = r.err; err == nil {
			return l, nil
		}
	}
	return journal.Lease{}, s.explainError(fmt.Sprintf("%s the lease of thread %q", what, thread), err)
}
