package rag

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	driver "modernc.org/sqlite"

	"raddle.dev/internal/base/sqlitefile"
)

const (
	application = 0x72616462 // "radb", in the file's header
	version     = 6          // of the schema, in the file's header

	patience = 10 * time.Second      // in total, while another process creates the file
	pause    = 10 * time.Millisecond // between attempts
)

// A search uses only the rows of live documents. The other rows belong to a build that has not ended.
const schema = `
CREATE TABLE base (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	settings TEXT NOT NULL,    -- of the build that was published last
	builds   INTEGER NOT NULL  -- how many have been
);
CREATE TABLE document (
	id       INTEGER PRIMARY KEY,
	path     TEXT NOT NULL,
	source   TEXT NOT NULL,
	hash     TEXT NOT NULL,    -- of its bytes
	recipe   TEXT NOT NULL,    -- the settings that its chunks depend on
	metadata TEXT NOT NULL,
	place    INTEGER NOT NULL, -- in the order of the sources
	live     INTEGER NOT NULL,
	UNIQUE (path, hash, recipe)
);
CREATE TABLE vector (
	id    INTEGER PRIMARY KEY,
	model TEXT NOT NULL,
	hash  BLOB NOT NULL,       -- of the text
	data  BLOB NOT NULL,       -- little-endian float32, of length one
	UNIQUE (model, hash)
);
CREATE TABLE chunk (
	id       INTEGER PRIMARY KEY AUTOINCREMENT, -- postings may outlive a chunk: its id is never given out again
	document INTEGER NOT NULL REFERENCES document(id) ON DELETE CASCADE,
	place    INTEGER NOT NULL, -- in the document
	tokens   INTEGER NOT NULL,
	vector   INTEGER REFERENCES vector(id),
	text     TEXT NOT NULL
);
CREATE INDEX chunk_document ON chunk(document, place);
CREATE INDEX chunk_vector ON chunk(vector) WHERE vector IS NOT NULL;
` + postingTable

const postingTable = `
CREATE TABLE posting (
	token   TEXT NOT NULL,
	segment INTEGER NOT NULL,
	data    BLOB NOT NULL,     -- pairs of the distance to the chunk before and the count
	PRIMARY KEY (token, segment)
) WITHOUT ROWID;
`

// schema2 is the schema that version 2 added. The entities are those of the build that was published last.
const schema2 = `
CREATE TABLE extract (
	id     INTEGER PRIMARY KEY,
	recipe TEXT NOT NULL,      -- the model and the prompt
	hash   BLOB NOT NULL,      -- of the text that it was asked about
	data   TEXT,               -- JSON; null: the answer was unusable
	UNIQUE (recipe, hash)
);
ALTER TABLE chunk ADD COLUMN extract INTEGER REFERENCES extract(id);
CREATE INDEX chunk_extract ON chunk(extract) WHERE extract IS NOT NULL;
ALTER TABLE document ADD COLUMN extracted TEXT NOT NULL DEFAULT ''; -- the recipe with which the model was asked about all its chunks
CREATE TABLE entity (
	id          INTEGER PRIMARY KEY,
	name        TEXT NOT NULL UNIQUE, -- in lower case
	type        TEXT NOT NULL,
	description TEXT NOT NULL,
	relations   INTEGER NOT NULL,     -- how many begin at it
	neighbours  BLOB NOT NULL,        -- pairs of an entity at the other end of relations and their best weight
	chunks      BLOB NOT NULL         -- that mention it, in the order of the documents
);
CREATE TABLE mention (
	chunk    INTEGER PRIMARY KEY,
	entities BLOB NOT NULL            -- that it mentions, ascending
);
`

// schema3 is the schema that version 3 added.
const schema3 = `
CREATE TABLE refused (
	path   TEXT NOT NULL,
	hash   TEXT NOT NULL,      -- of its bytes and of what read them
	reason TEXT NOT NULL,
	PRIMARY KEY (path, hash)
) WITHOUT ROWID;
`

// schema4 is the schema that version 4 added.
const schema4 = `
CREATE TABLE unread (
	source TEXT NOT NULL,
	path   TEXT NOT NULL,      -- empty: the whole source
	reason TEXT NOT NULL,
	since  INTEGER NOT NULL,   -- milliseconds since 1970
	last   INTEGER NOT NULL,
	looks  INTEGER NOT NULL,
	lasts  INTEGER NOT NULL,   -- looking again does not help
	PRIMARY KEY (source, path)
) WITHOUT ROWID;
`

// schema5 is the schema that version 5 added.
const schema5 = `
ALTER TABLE chunk ADD COLUMN stands TEXT NOT NULL DEFAULT ''; -- the place in its document, as JSON; empty: not known
`

// schema6 is the schema that version 6 added.
const schema6 = `
ALTER TABLE document ADD COLUMN date INTEGER NOT NULL DEFAULT 0; -- milliseconds since 1970; 0: not known
`

// schemas are the statements that each version has added. The first version is the first of them.
var schemas = []string{schema, schema2, schema3, schema4, schema5, schema6}

// openFile opens or creates the database at path; if path is empty, the database is in memory.
func openFile(path string) (*sql.DB, error) {
	if path == "" {
		db, err := sql.Open("sqlite", "file::memory:?_pragma=foreign_keys(1)")
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(1)
		_, err = db.Exec(strings.Join(schemas, ""))
		return db, err
	}
	if err := sqlitefile.Create(path); err != nil {
		return nil, err
	}
	db, err := openDatabase(path, url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(10000)", "foreign_keys(1)", "synchronous(normal)", "temp_store(memory)", "journal_size_limit(67108864)",
	}})
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	for start := time.Now(); ; time.Sleep(pause) {
		err := prepareSchema(db)
		if err == nil {
			return db, nil
		}
		if !isBusy(err) || time.Since(start) > patience {
			return nil, errors.Join(err, db.Close())
		}
	}
}

// openDatabase returns connections to the database at path with these settings.
func openDatabase(path string, q url.Values) (*sql.DB, error) {
	c, err := driver.NewConnector(sqlitefile.FormatURI(path, q))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// isBusy reports whether another connection holds a lock. SQLite itself does not wait when the journal mode changes.
func isBusy(err error) bool {
	const busy, code = 5, 0xff // SQLITE_BUSY, and the mask for the part of a code that all its variants share
	var e *driver.Error
	return errors.As(err, &e) && e.Code()&code == busy
}

// prepareSchema returns an error for a file of another program, and creates the tables that are missing in a base.
func prepareSchema(db *sql.DB) error {
	ctx := context.Background()
	var app, is, tables int
	// One statement reads both values, so that they are of one state: another process may be creating the file.
	const q = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version"
	if err := db.QueryRowContext(ctx, q).Scan(&app, &is, &tables); err != nil {
		return err
	}
	switch {
	case tables > 0 && app != application:
		return errors.New("this file is not a knowledge base: name another one")
	case is > version:
		return fmt.Errorf("this knowledge base is of version %d and this program knows version %d: use a newer program", is, version)
	}
	if _, err := db.ExecContext(ctx, "PRAGMA journal_mode=WAL"); err != nil {
		return err
	}
	if tables > 0 && is == version {
		return nil
	}
	return runTransaction(ctx, db, func(tx *sql.Tx) error {
		err := errors.Join(tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables),
			tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is))
		if err != nil || is == version {
			return err // in the second case another process created the file first
		}
		missing := schemas
		if tables > 0 {
			missing = schemas[max(is, 1):]
		}
		_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d;", application, version)+strings.Join(missing, ""))
		return err
	})
}

// runTransaction runs do in a transaction of its own.
func runTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
