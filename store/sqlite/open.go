package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	driver "modernc.org/sqlite"
)

const (
	application = 0x7261646c // "radl", in the file's header
	version     = 2          // of the schema, in the file's header

	readers     = 4                      // connections, in addition to the writer's
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
` + schema2

// schema2 is what schema 2 added: checksums in records, and leases. The index of
// snapshots also covers the kinds with checksums.
const schema2 = `
CREATE INDEX bases ON record(id) WHERE kind IN (` + bases + `);
CREATE TABLE lease (
	name  TEXT PRIMARY KEY, -- of the thread, which need not exist yet
	owner TEXT NOT NULL,
	until INTEGER NOT NULL  -- Unix microseconds
) WITHOUT ROWID;
`

// basesOfSchema1 are the kinds that the index of snapshots covered before.
const basesOfSchema1 = "12, 14"

// Open opens the file at path. It creates the file, readable for its owner only, and
// the directories above it if they are missing. A path is only a path: no part of it is
// read as an option.
//
// Open refuses a file that is not a SQLite database, that belongs to another program,
// that a newer version of this package has written, or that it may not write to. It
// does not change such a file.
func Open(path string) (*Store, error) {
	s := &Store{path: path, patience: patience}
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
	if err := createFile(path); err != nil {
		return err
	}
	c, err := driver.NewConnector(formatDSN(path))
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(c)
	s.db.SetMaxOpenConns(readers + 1)
	s.db.SetMaxIdleConns(readers + 1)
	s.read.on = s.db
	if err := s.retryWhileBusy(context.Background(), s.connectWriter); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// formatDSN returns a URI, so that no character of the path has a special meaning.
func formatDSN(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	q := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()),
		"synchronous(normal)",
		"temp_store(memory)",
		fmt.Sprintf("journal_size_limit(%d)", logBytes),
	}}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}

// creating makes sure that create never closes a descriptor of a database that this
// process uses: that would drop every lock of the process on it.
var creating sync.Mutex

func createFile(path string) error {
	creating.Lock()
	defer creating.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	i, err := os.Stat(path)
	if err == nil && !i.Mode().IsRegular() {
		err = errors.New("this is not a file: name the file to keep journals in")
	}
	return err
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
		text := schema
		if found == 1 {
			text = "DROP INDEX base;" + schema2
		}
		_, err = c.ExecContext(ctx, text+fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", application, version))
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
