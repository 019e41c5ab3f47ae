package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// upgrades are the statements that make each version of the schema from the one before it; the
// first makes version 1 in a database without tables of this package.
//
// Names of threads and owners of leases are bytes: a text of Postgres cannot hold every string,
// and bytes are sorted as Go sorts strings. Data is a bytea of the record's row. Postgres itself
// compresses a value of more than 2 kB and moves it to a side table (TOAST), which a reader of
// heads does not open.
var upgrades = []string{`
CREATE TABLE raddle_thread (
	id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- of a deleted thread: never given out again
	name      bytea NOT NULL UNIQUE,
	first_seq integer NOT NULL DEFAULT 1, -- older records are pruned, even if their rows still exist
	last_seq  integer NOT NULL
) WITH (fillfactor = 50); -- leaves room for updates of last_seq in the same page

CREATE TABLE raddle_record (
	thread   bigint NOT NULL, -- raddle_thread.id
	time     bigint NOT NULL, -- Unix microseconds
	checksum bigint NOT NULL, -- the bits of journal.Record.Sum
	seq      integer NOT NULL,
	kind     smallint NOT NULL,
	head     bytea,
	data     bytea,
	PRIMARY KEY (thread, seq)
);
CREATE INDEX raddle_record_snapshot ON raddle_record (thread, seq) WHERE kind IN (12, 14);

CREATE TABLE raddle_lease (
	name  bytea PRIMARY KEY, -- of the thread, which need not exist yet
	owner bytea NOT NULL,
	until timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE raddle_pruned ( -- rows of raddle_record that are to be deleted
	id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	thread bigint NOT NULL,
	below  integer NOT NULL
);
`, `
CREATE TABLE raddle_entry ( -- of package memory; its texts are bytes for the reasons above
	namespace bytea NOT NULL,
	key       bytea NOT NULL,
	updated   timestamptz NOT NULL,
	expires   timestamptz, -- NULL: never
	model     bytea NOT NULL,
	value     bytea NOT NULL,
	vector    bytea NOT NULL,
	PRIMARY KEY (namespace, key)
);
CREATE INDEX raddle_entry_expires ON raddle_entry (expires) WHERE expires IS NOT NULL;
`, `
CREATE TABLE raddle_drive ( -- which threads are to be driven
	name     bytea PRIMARY KEY, -- of the thread
	run      bytea NOT NULL,
	token    bytea NOT NULL,
	worker   bytea NOT NULL, -- empty: it waits
	queue    bytea NOT NULL,
	priority bigint NOT NULL,
	format   bigint NOT NULL,
	due      timestamptz NOT NULL,
	attempts bigint NOT NULL DEFAULT 1,
	reasons  bytea NOT NULL DEFAULT '',
	given_up boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX raddle_drive_due ON raddle_drive (priority DESC, due) WHERE NOT given_up;
CREATE INDEX raddle_drive_given_up ON raddle_drive (name) WHERE given_up;
CREATE INDEX raddle_drive_worker ON raddle_drive (worker) WHERE worker <> '';

CREATE TABLE raddle_worker (
	id       bytea PRIMARY KEY,
	host     bytea NOT NULL,
	pid      bigint NOT NULL,
	version  bytea NOT NULL,
	format   bigint NOT NULL,
	queues   bytea NOT NULL,
	places   bigint NOT NULL,
	draining boolean NOT NULL,
	seen     timestamptz NOT NULL
) WITH (fillfactor = 50);
`, `
LOCK TABLE raddle_thread IN SHARE ROW EXCLUSIVE MODE; -- no thread begins meanwhile
CREATE TABLE raddle_line ( -- what lists show of a thread: journal.Line
	name    bytea NOT NULL, -- of the thread
	place   bytea NOT NULL, -- journal.Line.Order
	status  bytea NOT NULL,
	label   bytea NOT NULL, -- empty if the status is
	details bytea,
	was     bytea           -- the status before the newest change; NULL: there was none
) WITH (fillfactor = 70);
INSERT INTO raddle_line SELECT name, name, '', '' FROM raddle_thread;
ALTER TABLE raddle_line ADD PRIMARY KEY (name);
-- Their rows have no name, because there is no room for two long ones: lines of one place are few, and sorted.
CREATE INDEX raddle_line_status ON raddle_line (status, place);
CREATE INDEX raddle_line_label ON raddle_line (label, status, place);

CREATE TABLE raddle_line_count ( -- how many lines have a status: the sum of its stripes, of which some may be negative
	status bytea NOT NULL,
	stripe integer NOT NULL,
	lines  bigint NOT NULL,
	PRIMARY KEY (status, stripe)
) WITH (fillfactor = 20);
INSERT INTO raddle_line_count SELECT status, 0, count(*) FROM raddle_line GROUP BY status;
ANALYZE raddle_line, raddle_line_count;
`, notices, `
LOCK TABLE raddle_thread IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE raddle_line ADD COLUMN wait bigint NOT NULL DEFAULT 0, ADD COLUMN parent bytea NOT NULL DEFAULT '';
UPDATE raddle_line SET place = name, status = '', label = '', details = NULL, was = NULL; -- their journals say the rest
DELETE FROM raddle_line_count;
INSERT INTO raddle_line_count SELECT status, 0, count(*) FROM raddle_line GROUP BY status;
CREATE INDEX raddle_line_wait ON raddle_line (wait, name) WHERE wait > 0;
CREATE INDEX raddle_line_parent ON raddle_line (parent) WHERE parent <> '';
`, triggers}

// schemaTable holds the version of the schema in its one row. It is locked while the schema changes.
const schemaTable = "CREATE TABLE IF NOT EXISTS raddle_schema (version integer NOT NULL)"

// migrateSchema brings the schema to the newest version. Of several processes that start at the same
// time, the first does it while the others wait.
func (s *Store) migrateSchema(ctx context.Context) error {
	newest := len(upgrades)
	found := 0
	err := s.runRead(ctx, func(c *pgx.Conn) (err error) { found, err = readVersion(ctx, c); return err })
	if err != nil && !hasCode(err, codeUndefinedTable) {
		return err
	}
	if err == nil && found >= newest {
		return checkVersion(found)
	}
	create := func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, schemaTable)
		return err
	}
	// IF NOT EXISTS does not look at what another transaction is about to create.
	if err := s.runWrite(ctx, create); err != nil && !hasCode(err, codeUniqueViolation, codeDuplicateTable, codeDuplicateObject) {
		return err
	}
	return s.runTransaction(ctx, runUpgrades)
}

// runUpgrades runs the upgrades that the database has not had. It is a transaction.
func runUpgrades(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, "LOCK TABLE raddle_schema IN ACCESS EXCLUSIVE MODE"); err != nil {
		return err
	}
	found, err := readVersion(ctx, c)
	if err != nil {
		return err
	}
	if err := checkVersion(found); err != nil || found == len(upgrades) {
		return err
	}
	for _, text := range upgrades[found:] {
		if _, err := c.PgConn().Exec(ctx, text).ReadAll(); err != nil {
			return err
		}
	}
	if _, err := c.Exec(ctx, "DELETE FROM raddle_schema"); err != nil {
		return err
	}
	_, err = execStatement(ctx, c, "INSERT INTO raddle_schema(version) VALUES ($1)", int64(len(upgrades)))
	return err
}

// readVersion returns the version of the schema; 0 if there is none.
func readVersion(ctx context.Context, c *pgx.Conn) (int, error) {
	var version int64
	_, err := queryRow(ctx, c, "SELECT coalesce(max(version), 0)::bigint FROM raddle_schema", nil, &version)
	return int(version), err
}

// checkVersion returns an error if this program does not know a version.
func checkVersion(found int) error {
	switch {
	case found > len(upgrades):
		return fmt.Errorf("a newer version of raddle has written this database (schema %d, this one knows %d): update raddle, or name another database", found, len(upgrades))
	case found < 0:
		return errors.New("the table raddle_schema belongs to another program: name another database")
	}
	return nil
}
