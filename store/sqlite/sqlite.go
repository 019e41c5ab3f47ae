// Package sqlite keeps journals, and the entries of package memory, in one SQLite file, which several processes may use
// at the same time. It is pure Go: no C compiler, no library to install.
//
// A thread is a row of one table and its records are rows of another, keyed by thread
// and sequence number: if two writers append after the same record, both try to insert
// that key, and exactly one of them succeeds. The file is in WAL mode, so that readers
// and the writer do not wait for each other. Records that Append has stored survive a
// crash of the process. A power failure may lose the newest records since the last
// checkpoint, but leaves no gap and a valid file.
//
// The file must be on a local disk: network file systems do not keep the locks that
// SQLite relies on.
package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/sqlitefile"
)

// Store is a journal.Store in a file. It is safe for concurrent use. Other processes, and
// other Stores of this process, may use the file at the same time.
//
// An operation whose context is cancelled ends before its next query; a query or a
// write that has started runs to its end, which takes milliseconds. If another process
// keeps the file locked, an operation waits for ten seconds before it fails. Then, and if the disk is full or fails,
// the error is one that journal.MarkUnavailable has marked.
//
// An iterator reads its records a page at a time and holds no lock while its consumer
// runs: the consumer may be slow, and may use the Store. Read yields what the thread
// held when the loop began; if a Prune deletes some of it meanwhile, the iteration ends
// with an error, not with a gap.
type Store struct {
	path     string
	db       *sql.DB // readers take their connections from here; the writer holds a separate one
	read     statements
	w        writer
	patience time.Duration
	readOnly bool // see OpenReadOnly
	noLeases bool // the file has schema 1, and is open for reading only

	noEntries bool // the file has a schema below 4, and is open for reading only
	noLines   bool // the file has a schema below 7, and is open for reading only: it is no Index

	connector func(dsn string) (sqldriver.Connector, error) // newConnector, except in tests of failing disks
}

var _ journal.Store = (*Store)(nil)

// Close moves the content of the log into the file and releases the file. Later calls
// fail, except that closing twice is allowed.
func (s *Store) Close() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.readOnly {
		s.w.none = errClosed
		return s.explainError("close", errors.Join(s.read.close(), s.db.Close()))
	}
	if s.w.conn == nil {
		return nil
	}
	// A passive checkpoint does not wait. If other processes are reading, it leaves a
	// part to them: the last process that closes the file does the rest.
	_, err := s.w.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	err = errors.Join(err, s.w.close(), s.read.close(), s.db.Close())
	return s.explainError("close", err)
}

// retryWhileBusy calls f until the file is not locked, the Store's patience has ended or ctx
// is cancelled. SQLite itself waits for busyTimeout in each call.
func (s *Store) retryWhileBusy(ctx context.Context, f func() error) error {
	err := f()
	if !isBusy(err) {
		return err
	}
	for start := time.Now(); isBusy(err) && time.Since(start) < s.patience; err = f() {
		select {
		case <-ctx.Done():
			return journal.MarkUnavailable(fmt.Errorf("%w, after: %w", ctx.Err(), err))
		case <-time.After(pause):
		}
	}
	return err
}

// mayPass reports whether a call that failed with an error may succeed later: when another process releases the file,
// or when the disk has room or works again. It may have been carried out.
func mayPass(err error) bool {
	switch resultCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_PROTOCOL:
		return true
	}
	return errors.Is(err, syscall.ENOSPC)
}

const (
	application = 0x7261646c // "radl", in the file's header
	version     = 8          // of the schema, in the file's header

	readers     = 4                      // connections, in addition to the writer's and the listener's
	logBytes    = 64 << 20               // of the write-ahead log: the space that it keeps after a burst
	busyTimeout = 250 * time.Millisecond // SQLite's own wait for a lock, which a cancelled context does not end
	patience    = 10 * time.Second       // total wait for a lock, in steps of busyTimeout
	pause       = 5 * time.Millisecond   // between the steps, if SQLite itself does not wait
)

const schema = `
CREATE TABLE thread (
	id   INTEGER PRIMARY KEY AUTOINCREMENT, -- of a deleted thread: never given out again
	name TEXT NOT NULL UNIQUE
);
CREATE TABLE record (
	id   INTEGER PRIMARY KEY, -- thread.id << 32 | seq
	kind INTEGER NOT NULL,
	time INTEGER NOT NULL,    -- Unix microseconds
	head BLOB,
	data BLOB                 -- last: what stands before it is read without it
);
`

// leases is what schema 2 added, with checksums in records.
const leases = `
CREATE TABLE lease (
	name  TEXT PRIMARY KEY, -- of the thread, which need not exist yet
	owner TEXT NOT NULL,
	until INTEGER NOT NULL  -- Unix microseconds
) WITHOUT ROWID;
`

// snapshots is what schema 3 changed: the index for journal.Range.FromSnapshot.
const snapshots = `
CREATE INDEX snapshots ON record(id) WHERE ` + isBase + `;
`

// upgrades are the statements that make the current schema from each version.
var upgrades = [version]string{
	0: schema + leases + snapshots + entries + queue + index + triggers,
	1: "DROP INDEX base;" + leases + snapshots + entries + queue + index + triggers,
	2: "DROP INDEX bases;" + snapshots + entries + queue + index + triggers,
	3: entries + queue + index + triggers,
	4: queue + index + triggers,
	5: index + triggers,
	6: dropIndex + index + triggers,
	7: triggers,
}

// Open opens the file at path. It creates the file, readable for its owner only, and
// the directories above it if they are missing. A path is only a path: no part of it is
// read as an option.
//
// Open refuses a file that is not a SQLite database, that belongs to another program,
// that a newer version of this package has written, or that it may not write to. It
// does not change such a file.
func Open(path string) (*Store, error) {
	s := &Store{path: path, patience: patience, connector: newConnector}
	if err := s.openFile(path); err != nil {
		return nil, s.explainError("open", err)
	}
	return s, nil
}

func (s *Store) openFile(path string) error {
	if path == "" {
		return errors.New("the path is empty: name the file to keep journals in")
	}
	path, err := filepath.Abs(path) // connections are opened later too, perhaps in another working directory
	if err != nil {
		return err
	}
	s.path = path
	if err := sqlitefile.Create(path); err != nil {
		return err
	}
	c, err := s.connector(formatDSN(path))
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(c)
	s.db.SetMaxOpenConns(readers + 2)
	s.db.SetMaxIdleConns(readers + 1)
	s.read.on = s.db
	if err := s.retryWhileBusy(context.Background(), s.connectWriter); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// newConnector returns what opens connections to an address.
func newConnector(dsn string) (sqldriver.Connector, error) { return driver.NewConnector(dsn) }

// formatDSN returns the address of the file at path, with the settings of every connection.
func formatDSN(path string) string {
	return sqlitefile.FormatURI(path, url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"synchronous(normal)",
		"temp_store(memory)",
		fmt.Sprintf("journal_size_limit(%d)", logBytes),
	}})
}

// connectWriter opens the writer's connection, after it has checked whose file it is.
func (s *Store) connectWriter() (err error) {
	ctx := context.Background()
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.w.useConnection(c)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.w.close())
		}
	}()
	found, err := checkSchema(ctx, c)
	if err != nil {
		return err
	}
	var mode string
	if err := c.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not allow a write-ahead log (journal mode %q): put the file on a local disk", mode)
	}
	if found == version {
		return s.w.checkWritable()
	}
	return s.w.runTransaction(func() error {
		found, err := checkSchema(ctx, c) // another process may have created the schema first
		if err != nil || found == version {
			return err
		}
		_, err = c.ExecContext(ctx, upgrades[found]+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", application, version))
		return err
	})
}

// checkSchema returns the version of this package's schema that the file has; 0 if it is
// empty.
func checkSchema(ctx context.Context, c *sql.Conn) (found int64, err error) {
	var app, ver, tables int64
	const q = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version"
	if err := c.QueryRowContext(ctx, q).Scan(&app, &ver, &tables); err != nil {
		return 0, err
	}
	switch {
	case app == 0 && ver == 0 && tables == 0:
		return 0, nil
	case app != application || ver < 1:
		return 0, errors.New("this database belongs to another program: name another file")
	case ver > version:
		return 0, fmt.Errorf("a newer version has written this file (schema %d, this one knows %d): update raddle, or name another file", ver, version)
	}
	return ver, nil
}

// statements keeps the prepared statements of one connection, or of the readers'
// connections, as long as the Store is open.
type statements struct {
	on interface {
		PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
	}

	mu     sync.Mutex
	byText map[string]*sql.Stmt
}

func (s *statements) get(text string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.byText[text]; st != nil {
		return st, nil
	}
	st, err := s.on.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	if s.byText == nil {
		s.byText = map[string]*sql.Stmt{}
	}
	s.byText[text] = st
	return st, nil
}

// close must be called before the connection is closed: SQLite keeps a file open as
// long as there are statements on it.
func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, st := range s.byText {
		err = errors.Join(err, st.Close())
	}
	clear(s.byText)
	return err
}

var (
	errChanged = errors.New("the thread was pruned or deleted while it was being read: read it again")
	errClosed  = errors.New("the store is closed")
)

// advice says, for SQLite's codes, what happened and what to do.
var advice = map[int]string{
	lib.SQLITE_BUSY:     "another process keeps the file locked: wait until it is done, or end it, and try again",
	lib.SQLITE_LOCKED:   "another process keeps the file locked: wait until it is done, or end it, and try again",
	lib.SQLITE_READONLY: "the file cannot be written: it and its directory need write permission, on a medium that is not read-only; or name another file",
	lib.SQLITE_CANTOPEN: "the file cannot be used: it and its directory need read and write permission, on a medium that is not read-only; or name another file",
	lib.SQLITE_FULL:     "the disk is full and nothing was written: free some space and try again",
	lib.SQLITE_IOERR:    "the disk failed to read or write: check it, and try again",
	lib.SQLITE_NOTADB:   "this is not a SQLite database: name another file, or move this one away",
	lib.SQLITE_CORRUPT:  "the database is damaged: restore it from a copy, or save what is left with sqlite3's .recover command",
	lib.SQLITE_TOOBIG:   "a value is larger than SQLite can hold (1 GB)",
}

// explainError adds to an error what was tried, where, and what to do next. Conflicts and
// the ends of contexts do not change.
func (s *Store) explainError(op string, err error) error {
	if err == nil || errors.Is(err, journal.ErrConflict) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if mayPass(err) {
		err = journal.MarkUnavailable(err)
	}
	text := advice[resultCode(err)]
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		text = advice[lib.SQLITE_CANTOPEN]
	}
	if text != "" {
		return fmt.Errorf("sqlite: %s: %s: %s: %w", op, s.path, text, err)
	}
	return fmt.Errorf("sqlite: %s: %s: %w", op, s.path, err)
}

// resultCode returns the primary result code of an error of SQLite, else 0.
func resultCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := resultCode(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED
}

// isKeyTaken reports whether a row's key was not free, or could not be computed because the
// row before it is missing.
func isKeyTaken(err error) bool {
	c := resultCode(err)
	return c == lib.SQLITE_CONSTRAINT || c == lib.SQLITE_MISMATCH
}
