package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"raddle.dev/graph/journal"
)

// Codes of errors of the server.
const (
	codeUniqueViolation = "23505"
	codeSerialization   = "40001"
	codeDeadlock        = "40P01"
	codeDuplicateTable  = "42P07"
	codeDuplicateObject = "42710"
	codeUndefinedTable  = "42P01"
	codeStarting        = "57P03"
)

var (
	errChanged = errors.New("the thread was pruned or deleted while it was being read: read it again")
	errClosed  = errors.New("the store is closed")
)

// advice says, for codes of the server, what happened and what to do. A code of two characters is
// a class.
var advice = map[string]string{
	"08":    adviceBroken,
	"57P01": adviceBroken,
	"57P02": adviceBroken,
	"57P03": "the server is starting or ending: wait a moment, and try again",
	"28":    "the server refuses the user or the password: correct them in the URL, in ~/.pgpass or in PGPASSWORD",
	"3D000": "the database does not exist: create it with createdb, or correct its name",
	"3F000": "there is no schema for the tables: create one and grant its use, or set search_path",
	"42501": "the user may not do this: grant the user CREATE on the schema, or the rights on the tables raddle_*",
	"25006": "the server is a standby, or the user may only read: name the primary server",
	"53100": "the disk of the server is full and nothing was written: free some space and try again",
	"53200": "the server is out of memory and nothing was written: try again later",
	"53300": "the server has no connection left: raise its max_connections, lower pool_max_conns in the URL, or use a pooler",
	"54":    "a value or the batch is larger than Postgres can hold (1 GB)",
	"58":    "the disk of the server failed to read or write: check it, and try again",
	"XX001": "the database is damaged: restore it from a copy",
	"XX002": "an index of the database is damaged: repair it with REINDEX",
	"40":    "other transactions were in the way each time: try again",
}

const adviceBroken = "the connection to the server broke, so it is not known whether the last write was stored: check that the server runs and continue, which finds out"

// explainError adds to an error what was tried, where, and what to do next. Conflicts and
// the ends of contexts do not change. The text has no password: neither the library nor the
// server puts one into the errors that get here.
func (s *Store) explainError(op string, err error) error {
	if err == nil || errors.Is(err, journal.ErrConflict) || errors.Is(err, context.Canceled) {
		return err
	}
	if s.closed.Load() {
		return fmt.Errorf("postgres: %s: %s: %w", op, s.at, errClosed)
	}
	if mayPass(err) {
		err = journal.MarkUnavailable(err)
	}
	text := ""
	e, ofServer := errors.AsType[*pgconn.PgError](err)
	_, broken := errors.AsType[*brokenError](err)
	switch {
	case ofServer && advice[e.Code] != "":
		text = advice[e.Code]
	case ofServer && len(e.Code) > 2:
		text = advice[e.Code[:2]]
	case isConnectError(err):
		text = "the server cannot be reached: check that it runs and that the address is right, then try again"
	case broken:
		text = adviceBroken
	}
	if text != "" {
		return fmt.Errorf("postgres: %s: %s: %s: %w", op, s.at, text, err)
	}
	return fmt.Errorf("postgres: %s: %s: %w", op, s.at, err)
}

// describeServer returns a server and its database, for messages.
func describeServer(c *pgx.ConnConfig) string {
	if strings.HasPrefix(c.Host, "/") { // the directory of a socket
		return fmt.Sprintf("%s in %s", c.Database, c.Host)
	}
	return fmt.Sprintf("%s at %s", c.Database, net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
}

// brokenError says that a connection has ended while it was used.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }

func (e *brokenError) Unwrap() error { return e.err }

// hasCode reports whether an error of the server has one of the codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}

// isRolledBack reports whether the server has undone a transaction because of others: it may be
// repeated. That happens if the database sets an isolation level above READ COMMITTED.
func isRolledBack(err error) bool { return hasCode(err, codeSerialization, codeDeadlock) }

// passingCodes are the codes and classes of errors of the server after which the same call may succeed later:
// connections that broke, transactions in the way, a lack of disk, memory or connections, a server that starts or ends,
// its disk. A standby (25006), a query that someone cancelled (57014) and an error of the protocol (08P01) are not
// among them.
var passingCodes = []string{"08000", "08001", "08003", "08004", "08006", "08007", "40", "53", "55006", "55P03", "57P01", "57P02", "57P03", "57P05", "58"}

// mayPass reports whether a call that failed with an error may succeed later. It may have been carried out.
func mayPass(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok { // also while connecting
		return slices.Contains(passingCodes, e.Code) || len(e.Code) > 2 && slices.Contains(passingCodes, e.Code[:2])
	}
	_, broken := errors.AsType[*brokenError](err)
	return broken || isConnectError(err) || errors.Is(err, context.DeadlineExceeded)
}

// isConnectError reports whether no connection could be made.
func isConnectError(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}
