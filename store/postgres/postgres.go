// Package postgres keeps journals, and the entries of package memory, in a PostgreSQL database, which any number of
// processes and machines may use at the same time. It is pure Go.
//
// A thread is a row of one table, with the numbers of its first and its newest record, and
// its records are rows of another. An append is one statement, which is its own
// transaction: it moves the thread from the record that the writer knows as the newest to
// the newest one of the batch, and inserts the batch only if that has changed a row. Of two
// writers that append after the same record, exactly one changes the row.
//
// No session of the server keeps anything between two transactions: there are no prepared
// statements, no advisory locks, no settings and nothing to listen to. A pooler such as
// PgBouncer in transaction mode may therefore be between the program and the server.
//
// Leases use the clock of the server. A server that is a standby cannot be used, because
// every command writes leases; name the primary.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"raddle.dev/graph/journal"
)

// Store is a journal.Store in a database. It is safe for concurrent use. Other processes, and
// other Stores of this process, may use the database at the same time.
//
// A write whose context is cancelled runs to its end once it has been sent, so that its
// caller knows whether it happened. If the server does not answer for a minute, the write
// fails. A read ends with its context.
//
// If the server is away, or starts, all calls but Open and Append try again for ten seconds. Then they,
// and Append at once, fail with an error that journal.MarkUnavailable has marked: an Append
// that lost its answer may have been stored, and only its caller can find out. See journal.Patience.
//
// An iterator reads its records a page at a time and holds no connection while its consumer
// runs: the consumer may be slow, and may use the Store. Read yields what the thread held
// when the loop began; if a Prune deletes some of it meanwhile, the iteration ends with an
// error, not with a gap.
type Store struct {
	pool   *pgxpool.Pool
	at     string // the server and the database, for messages
	closed atomic.Bool
	opened bool // calls wait for a server that is away
}

var _ journal.Store = (*Store)(nil)

const (
	connectTimeout = 10 * time.Second // if the URL does not set connect_timeout
	writeTimeout   = time.Minute      // for one write, or one batch of a write

	attempts   = 50                    // of a transaction that the server has rolled back because of others
	firstPause = 2 * time.Millisecond  // before the second attempt
	maxPause   = 50 * time.Millisecond // before any
)

// Open opens the database that a URL names: postgres://USER:PASSWORD@HOST:PORT/NAME, with
// parameters of libpq and pgxpool such as sslmode and pool_max_conns. What the URL leaves
// out comes from the PG… variables of the environment and from ~/.pgpass. The database must
// exist. Open creates the tables if they are missing, in the first schema of the search path.
//
// Open refuses a database that a newer version of this package has written. It waits some seconds for a server
// that is starting, but not for one that cannot be reached. Errors never contain the password.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The error of the library quotes the URL, and cannot always find the password in it.
		return nil, errors.New("postgres: open: the URL cannot be read: write postgres://USER@HOST:PORT/NAME, and signs such as / @ : # % in a password as %2F %40 %3A %23 %25")
	}
	c := config.ConnConfig
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connectTimeout)
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "raddle"
	}
	// A pooler in transaction mode gives each transaction another session, in which a statement that
	// this one has prepared does not exist. This mode prepares none: see sendQuery.
	c.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.StatementCacheCapacity = 0
	c.DescriptionCacheCapacity = 0
	s := &Store{at: describeServer(c)}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, s.explainError("open", err)
	}
	var failed error // permanently, or because there is no server
	err = journal.Patience{Limit: journal.ShortPatience}.Retry(ctx, func(ctx context.Context) error {
		if failed = s.migrateSchema(ctx); hasCode(failed, codeStarting) {
			return journal.MarkUnavailable(failed)
		}
		return nil
	})
	if err = cmp.Or(err, failed); err != nil {
		s.pool.Close()
		return nil, s.explainError("open", err)
	}
	s.opened = true
	return s, nil
}

// Close waits for writes that have been sent, and closes the connections. Later calls fail,
// except that closing twice is allowed.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.pool.Close()
	return nil
}

// sendQuery sends one statement with its arguments, in one round trip. Arguments and results are
// in the binary form, because the text of a bytea has twice its bytes. The statement has no
// name: the server forgets it with the next one, and keeps nothing in the session.
func sendQuery(ctx context.Context, c *pgx.Conn, text string, args ...any) (pgx.Rows, error) {
	values := make([][]byte, len(args))
	oids := make([]uint32, len(args))
	for i, arg := range args {
		if b, ok := arg.([]byte); ok { // it needs no copy
			values[i], oids[i] = b, pgtype.ByteaOID
			continue
		}
		oids[i] = oidOf(arg)
		v, err := c.TypeMap().Encode(oids[i], pgtype.BinaryFormatCode, arg, nil)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		values[i] = v
	}
	formats := []int16{pgtype.BinaryFormatCode} // of all
	return pgx.RowsFromResultReader(c.TypeMap(), c.PgConn().ExecParams(ctx, text, values, oids, formats, formats)), nil
}

// oidOf returns the type of an argument.
func oidOf(arg any) uint32 {
	switch arg.(type) {
	case int64:
		return pgtype.Int8OID
	case []int64:
		return pgtype.Int8ArrayOID
	case []int16:
		return pgtype.Int2ArrayOID
	case bool:
		return pgtype.BoolOID
	case [][]byte:
		return pgtype.ByteaArrayOID
	}
	panic(fmt.Sprintf("postgres: no type for an argument that is a %T", arg))
}

// execStatement sends one statement and returns how many rows it has inserted, changed or deleted.
func execStatement(ctx context.Context, c *pgx.Conn, text string, args ...any) (int64, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return 0, err
	}
	rows.Close()
	return rows.CommandTag().RowsAffected(), rows.Err()
}

// queryRow sends one statement and reads its first row into dest. It reports whether there is one.
func queryRow(ctx context.Context, c *pgx.Conn, text string, args []any, dest ...any) (bool, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := rows.Scan(dest...); err != nil {
		return false, err
	}
	rows.Close()
	return true, rows.Err()
}

// useConnection calls f with a connection, and again if the server has rolled back what f did
// because of other transactions, or if the connection ended before anything was sent.
func (s *Store) useConnection(ctx context.Context, f func(c *pgx.Conn) error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := s.useOnce(ctx, f)
		if err == nil || n == attempts || isConnectError(err) || !pgconn.SafeToRetry(err) && !isRolledBack(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, after: %w", ctx.Err(), err)
		case <-time.After(rand.N(pause)):
		}
		pause = min(2*pause, maxPause)
	}
}

func (s *Store) useOnce(ctx context.Context, f func(c *pgx.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	if err = f(c.Conn()); err == nil || ctx.Err() != nil || !c.Conn().IsClosed() {
		return err
	}
	s.pool.Reset() // the other connections are probably broken too
	return &brokenError{err}
}

// runRead calls f, which only reads, with a connection, and again while the server is away: after a restart of the
// server the connections of the pool lead nowhere. If ctx ends, the error says that, and why the server was not read.
func (s *Store) runRead(ctx context.Context, f func(c *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.retryWhileAway(ctx, func(ctx context.Context) error { return s.useConnection(ctx, f) })
	switch {
	case ctx.Err() == nil || errors.Is(err, ctx.Err()):
		return err
	case err == nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w, after: %w", ctx.Err(), err)
}

// retryWhileAway calls f, which does no harm when it is done twice, until the server is there, some seconds have passed
// or ctx has ended.
func (s *Store) retryWhileAway(ctx context.Context, f func(context.Context) error) error {
	if !s.opened {
		return f(ctx)
	}
	return journal.Patience{Limit: journal.ShortPatience}.Retry(ctx, func(ctx context.Context) error {
		err := f(ctx)
		if mayPass(err) {
			err = journal.MarkUnavailable(err)
		}
		return err
	})
}

// runWrite is sendWrite for a write that does no harm when it is done twice, and does it again while the server is
// away.
func (s *Store) runWrite(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	return s.retryWhileAway(ctx, func(ctx context.Context) error { return s.sendWrite(ctx, f) })
}

// sendWrite calls f, which sends one statement or one transaction, with a connection.
func (s *Store) sendWrite(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.useConnection(ctx, func(c *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		return f(ctx, c)
	})
}

// runTransaction stores all changes of f or none.
func (s *Store) runTransaction(ctx context.Context, f func(ctx context.Context, c *pgx.Conn) error) error {
	return s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(pgx.Tx) error { return f(ctx, c) })
	})
}
