package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

var _ journal.Leaser = (*Store)(nil)

// The statements of leases return the lease after the call, or no row if it is not the caller's.
const (
	leaseColumns = "owner, until, until <= clock_timestamp()"
	leaseEnd     = "clock_timestamp() + $3 * interval '1 microsecond'"

	takeLease = "INSERT INTO raddle_lease AS e (name, owner, until) VALUES ($1, $2, " + leaseEnd + `)
		ON CONFLICT (name) DO UPDATE SET owner = $2, until = ` + leaseEnd + `
		WHERE e.until <= clock_timestamp() OR e.owner IN ($2, $4) RETURNING ` + leaseColumns
	extendLease = "UPDATE raddle_lease SET until = " + leaseEnd + " WHERE name = $1 AND owner = $2 RETURNING " + leaseColumns
	findLease   = "SELECT " + leaseColumns + " FROM raddle_lease WHERE name = $1"
)

// AcquireLease implements journal.Leaser. It uses the clock of the server.
func (s *Store) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	if len(thread) > maxName {
		return journal.Lease{}, s.explainError(fmt.Sprintf("acquire the lease of thread %q", thread), errName)
	}
	return s.changeLease(ctx, "acquire", thread, takeLease, []byte(thread), []byte(owner), ttl.Microseconds(), []byte(over))
}

// RenewLease implements journal.Leaser.
func (s *Store) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return s.changeLease(ctx, "renew", thread, extendLease, []byte(thread), []byte(owner), ttl.Microseconds())
}

// changeLease changes the lease of a thread and returns the lease after the change.
func (s *Store) changeLease(ctx context.Context, what, thread, change string, args ...any) (l journal.Lease, err error) {
	err = s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		l, err = readLease(ctx, c, change, args...)
		if err == nil && l.Owner == "" {
			l, err = readLease(ctx, c, findLease, []byte(thread))
		}
		return err
	})
	return l, s.explainError(fmt.Sprintf("%s the lease of thread %q", what, thread), err)
}

// ReleaseLease implements journal.Leaser.
func (s *Store) ReleaseLease(ctx context.Context, thread, owner string) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := execStatement(ctx, c, "DELETE FROM raddle_lease WHERE name = $1 AND owner = $2", []byte(thread), []byte(owner))
		return err
	})
	return s.explainError(fmt.Sprintf("release the lease of thread %q", thread), err)
}

// ReadLease implements journal.Leaser.
func (s *Store) ReadLease(ctx context.Context, thread string) (l journal.Lease, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error { l, err = readLease(ctx, c, findLease, []byte(thread)); return err })
	return l, s.explainError(fmt.Sprintf("read the lease of thread %q", thread), err)
}

// readLease sends a statement that returns a lease; the zero Lease if it returns none.
func readLease(ctx context.Context, c *pgx.Conn, text string, args ...any) (journal.Lease, error) {
	var owner []byte
	var l journal.Lease
	ok, err := queryRow(ctx, c, text, args, &owner, &l.Until, &l.Expired)
	if err != nil || !ok {
		return journal.Lease{}, err
	}
	l.Owner = string(owner)
	return l, nil
}
