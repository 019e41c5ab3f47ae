package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/memory"
)

// errDisk is what a failing disk says.
var errDisk = errors.New("the disk broke")

// A faultyDisk lets what a Store asks of SQLite fail once: the statement is not carried out. Its zero value never fails.
type faultyDisk struct {
	left   int // calls until one fails; 0: none does
	failed string
}

// fail counts a call, and returns an error if it is the one that fails.
func (d *faultyDisk) fail(what string) error {
	if d.left == 0 {
		return nil
	}
	if d.left--; d.left > 0 {
		return nil
	}
	d.failed = what
	return errDisk
}

// connect opens connections to an address that fail with the disk.
func (d *faultyDisk) connect(dsn string) (driver.Connector, error) {
	if err := d.fail("the address"); err != nil {
		return nil, err
	}
	c, err := newConnector(dsn)
	return faultyConnector{Connector: c, disk: d}, err
}

type faultyConnector struct {
	driver.Connector
	disk *faultyDisk
}

func (f faultyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := f.disk.fail("a connection"); err != nil {
		return nil, err
	}
	c, err := f.Connector.Connect(ctx)
	return faultyConn{Conn: c, disk: f.disk}, err
}

type faultyConn struct {
	driver.Conn
	disk *faultyDisk
}

func (f faultyConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := f.disk.fail("prepare " + text); err != nil {
		return nil, err
	}
	st, err := f.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	return faultyStmt{Stmt: st, disk: f.disk, text: text}, err
}

func (f faultyConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := f.disk.fail("execute " + text); err != nil {
		return nil, err
	}
	res, err := f.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
	return faultyResult{Result: res, disk: f.disk, text: text}, err
}

func (f faultyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := f.disk.fail("query " + text); err != nil {
		return nil, err
	}
	rows, err := f.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
	return faultyRows{Rows: rows, disk: f.disk, text: text}, err
}

type faultyStmt struct {
	driver.Stmt
	disk *faultyDisk
	text string
}

func (f faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := f.disk.fail("execute " + f.text); err != nil {
		return nil, err
	}
	res, err := f.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	return faultyResult{Result: res, disk: f.disk, text: f.text}, err
}

func (f faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := f.disk.fail("query " + f.text); err != nil {
		return nil, err
	}
	rows, err := f.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	return faultyRows{Rows: rows, disk: f.disk, text: f.text}, err
}

type faultyResult struct {
	driver.Result
	disk *faultyDisk
	text string
}

func (f faultyResult) LastInsertId() (int64, error) {
	if err := f.disk.fail("the key of " + f.text); err != nil {
		return 0, err
	}
	return f.Result.LastInsertId()
}

func (f faultyResult) RowsAffected() (int64, error) {
	if err := f.disk.fail("the number of rows of " + f.text); err != nil {
		return 0, err
	}
	return f.Result.RowsAffected()
}

type faultyRows struct {
	driver.Rows
	disk *faultyDisk
	text string
}

func (f faultyRows) Next(dest []driver.Value) error {
	if err := f.disk.fail("a row of " + f.text); err != nil {
		return err
	}
	return f.Rows.Next(dest)
}

// openOn opens a Store on a disk.
func openOn(path string, d *faultyDisk) (*Store, error) {
	s := &Store{path: path, patience: time.Nanosecond, connector: d.connect}
	return s, s.openFile(path)
}

// describe lists all that a Store keeps.
func describe(t *testing.T, s *Store) string {
	t.Helper()
	var b strings.Builder
	for info, err := range s.Threads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d:", info.Name, info.Head)
		for r, err := range s.Read(t.Context(), info.Name, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " %d=%d%s", r.Seq, r.Kind, r.Head)
		}
		l, err := s.ReadLease(t.Context(), info.Name)
		fmt.Fprintf(&b, " %s %v\n", l.Owner, err)
	}
	for e, err := range s.ListEntries(t.Context(), "") {
		fmt.Fprintf(&b, "%s/%s=%s %v\n", e.Namespace, e.Key, e.Value, err)
	}
	return b.String()
}

// fill puts into a Store what the operations of TestFailingDisk need.
func fill(t *testing.T, s *Store) {
	t.Helper()
	records := func(n int) []journal.Record {
		list := make([]journal.Record, n)
		for i := range list {
			list[i] = journal.Record{Kind: journal.KindStep, Head: []byte("h"), Data: []byte("d")}
		}
		return list
	}
	_, leased := s.AcquireLease(t.Context(), "b", "me", "", time.Hour)
	for _, err := range []error{
		s.Append(t.Context(), "a", 0, records(5)), s.Append(t.Context(), "b", 0, records(2)), leased,
		s.PutEntry(t.Context(), memory.Entry{Namespace: "n", Key: "k", Value: []byte(`1`)}, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An operation of a Store is tried with a fault in each of its statements.
type operation struct {
	name string
	do   func(s *Store) error
}

// listOperations returns all operations of a Store that has what fill puts into it.
func listOperations(ctx context.Context) []operation {
	step := func(head string, data int) journal.Record {
		return journal.Record{Kind: journal.KindStep, Head: []byte(head), Data: make([]byte, data)}
	}
	many := make([]journal.Record, 2*batchRows+1)
	for i := range many {
		many[i] = step("m", 1)
	}
	return []operation{
		{"append", func(s *Store) error { return s.Append(ctx, "a", 5, []journal.Record{step("x", 1)}) }},
		{"append several", func(s *Store) error { return s.Append(ctx, "a", 5, many[:3]) }},
		{"append in several statements", func(s *Store) error { return s.Append(ctx, "a", 5, many) }},
		{"append to a new thread", func(s *Store) error { return s.Append(ctx, "c", 0, many) }},
		{"prune", func(s *Store) error { return s.Prune(ctx, "a", 3) }},
		{"prune all", func(s *Store) error { return s.Prune(ctx, "b", 9) }},
		{"delete", func(s *Store) error { return s.Delete(ctx, "a", "b") }},
		{"acquire a lease", func(s *Store) error { _, err := s.AcquireLease(ctx, "a", "me", "", time.Hour); return err }},
		{"acquire the lease of another", func(s *Store) error { _, err := s.AcquireLease(ctx, "b", "you", "", time.Hour); return err }},
		{"renew a lease", func(s *Store) error { _, err := s.RenewLease(ctx, "b", "me", time.Hour); return err }},
		{"release a lease", func(s *Store) error { return s.ReleaseLease(ctx, "b", "me") }},
		{"read a lease", func(s *Store) error { _, err := s.ReadLease(ctx, "b"); return err }},
		{"put an entry", func(s *Store) error {
			return s.PutEntry(ctx, memory.Entry{Namespace: "n", Key: "l", Value: []byte(`2`)}, 0)
		}},
		{"delete an entry", func(s *Store) error { return s.DeleteEntry(ctx, "n", "k") }},
		{"get an entry", func(s *Store) error { _, err := s.GetEntry(ctx, "n", "k"); return err }},
		{"list entries", func(s *Store) error {
			for _, err := range s.ListEntries(ctx, "n") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"read", func(s *Store) error {
			for _, err := range s.Read(ctx, "a", journal.Range{FromSnapshot: true}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"list threads", func(s *Store) error {
			for _, err := range s.Threads(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"compact", func(s *Store) error {
			if err := s.Delete(ctx, "gone"); err != nil {
				return err
			}
			_, _, err := s.Compact(ctx)
			return err
		}},
	}
}

// TestFailingDisk lets each statement of each operation fail once. The operation says so, changes all or nothing, and succeeds when it is tried again.
func TestFailingDisk(t *testing.T) {
	ctx := t.Context()
	for _, c := range listOperations(ctx) {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for n := 1; ; n++ {
				disk := &faultyDisk{}
				path := filepath.Join(dir, fmt.Sprint(n))
				s, err := openOn(path, disk)
				if err != nil {
					t.Fatal(err)
				}
				fill(t, s)
				if c.name == "compact" {
					if err := s.Append(ctx, "gone", 0, []journal.Record{{Kind: journal.KindStep, Data: make([]byte, 1<<20)}}); err != nil {
						t.Fatal(err)
					}
				}
				before := describe(t, s)
				disk.left = n
				err = c.do(s)
				disk.left = 0
				if disk.failed == "" {
					if err != nil {
						t.Errorf("without a fault: %v", err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					return
				}
				if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s failed: %v", disk.failed, err)
				}
				if !strings.HasPrefix(disk.failed, "the ") { // otherwise the statement was carried out, and its answer lost
					if now := describe(t, s); now != before && c.name != "compact" {
						t.Errorf("%s failed and left:\n%swas:\n%s", disk.failed, now, before)
					}
					if err := c.do(s); err != nil {
						t.Errorf("%s failed, and then: %v", disk.failed, err)
					}
				}
				if err := s.Close(); err != nil {
					t.Errorf("%s failed, and then: %v", disk.failed, err)
				}
			}
		})
	}
}

// TestOpenOnAFailingDisk lets each statement of Open fail once, for a new file and for one that exists. A later Open succeeds.
func TestOpenOnAFailingDisk(t *testing.T) {
	for _, exists := range []bool{false, true} {
		t.Run(fmt.Sprintf("exists %t", exists), func(t *testing.T) {
			dir := t.TempDir()
			for n := 1; ; n++ {
				path := filepath.Join(dir, fmt.Sprint(n))
				want := ""
				if exists {
					s, err := Open(path)
					if err != nil {
						t.Fatal(err)
					}
					fill(t, s)
					want = describe(t, s)
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				disk := &faultyDisk{left: n}
				s, err := openOn(path, disk)
				disk.left = 0
				if disk.failed == "" {
					if err != nil {
						t.Fatal(err)
					}
					if err := s.Close(); err != nil {
						t.Error(err)
					}
					return
				}
				if !errors.Is(err, errDisk) {
					t.Errorf("%s failed: %v", disk.failed, err)
				}
				again, err := Open(path)
				if err != nil {
					t.Fatalf("%s failed, and then: %v", disk.failed, err)
				}
				if got := describe(t, again); got != want {
					t.Errorf("%s failed, and left %q, want %q", disk.failed, got, want)
				}
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
