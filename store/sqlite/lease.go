package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph/journal"
)

var _ journal.Leaser = (*Store)(nil)

// AcquireLease implements journal.Leaser. It uses the clock of this machine.
func (s *Store) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	const take = `INSERT INTO lease(name, owner, until) VALUES(?1, ?2, ?3)
		ON CONFLICT(name) DO UPDATE SET owner = ?2, until = ?3 WHERE until <= ?4 OR owner IN (?2, ?5)`
	return s.changeLease(ctx, "acquire", thread, func(now time.Time) (sql.Result, error) {
		return s.w.exec(take, thread, owner, now.Add(ttl).UnixMicro(), now.UnixMicro(), over)
	}, owner, ttl)
}

// RenewLease implements journal.Leaser.
func (s *Store) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return s.changeLease(ctx, "renew", thread, func(now time.Time) (sql.Result, error) {
		return s.w.exec("UPDATE lease SET until = ?3 WHERE name = ?1 AND owner = ?2", thread, owner, now.Add(ttl).UnixMicro())
	}, owner, ttl)
}

// changeLease changes the lease of a thread and returns the lease after the change.
func (s *Store) changeLease(ctx context.Context, what, thread string, change func(now time.Time) (sql.Result, error), owner string, ttl time.Duration) (l journal.Lease, err error) {
	if err := ctx.Err(); err != nil {
		return l, err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err = s.retryWhileBusy(ctx, func() error {
		now := time.Now()
		res, err := change(now)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			l = journal.Lease{Owner: owner, Until: now.Add(ttl)}
			return err
		}
		l, err = s.readLease(thread)
		return err
	})
	return l, s.explainError(fmt.Sprintf("%s the lease of thread %q", what, thread), err)
}

// ReleaseLease implements journal.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, thread, owner string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err := s.retryWhileBusy(ctx, func() error {
		_, err := s.w.exec("DELETE FROM lease WHERE name = ? AND owner = ?", thread, owner)
		return err
	})
	return s.explainError(fmt.Sprintf("release the lease of thread %q", thread), err)
}

// ReadLease implements journal.Leaser.
func (s *Store) ReadLease(ctx context.Context, thread string) (l journal.Lease, err error) {
	if s.noLeases {
		return l, ctx.Err()
	}
	err = s.runQuery(ctx, func() error { l, err = s.readLease(thread); return err })
	return l, s.explainError(fmt.Sprintf("read the lease of thread %q", thread), err)
}

func (s *Store) readLease(thread string) (journal.Lease, error) {
	st, err := s.read.get("SELECT owner, until FROM lease WHERE name = ?")
	if err != nil {
		return journal.Lease{}, err
	}
	var owner string
	var until int64
	err = st.QueryRowContext(context.Background(), thread).Scan(&owner, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return journal.Lease{}, nil
	}
	return leaseOf(owner, until), err
}

// leaseOf returns the lease that a row holds; owner "" means none.
func leaseOf(owner string, until int64) journal.Lease {
	if owner == "" {
		return journal.Lease{}
	}
	end := time.UnixMicro(until)
	return journal.Lease{Owner: owner, Until: end, Expired: !time.Now().Before(end)}
}
