package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	driver "modernc.org/sqlite"
)

var errReadOnly = errors.New("the file was opened for reading only: it and its directory need write permission, on a medium that is not read-only")

// OpenReadOnly opens an existing file for reading. Use it if Open fails because the
// medium or the permissions do not allow writing. Operations that write fail. If the
// medium is read-only, no file is created next to it.
func OpenReadOnly(path string) (*Store, error) {
	s := &Store{path: path, patience: patience, readOnly: true}
	s.w.none = errReadOnly
	if err := s.openReadOnly(); err != nil {
		return nil, s.explainError("open for reading", err)
	}
	return s, nil
}

func (s *Store) openReadOnly() (err error) {
	if s.path, err = filepath.Abs(s.path); err != nil {
		return err
	}
	if i, err := os.Stat(s.path); err != nil {
		return err
	} else if !i.Mode().IsRegular() {
		return errors.New("this is not a file: name the file that journals are in")
	}
	first := s.connectReadOnly("&mode=ro")
	if first == nil {
		return nil
	}
	// SQLite wants to create an index of the log. If there is no log and no other
	// process writes, the option immutable makes that unnecessary. With a log, its
	// content would be missed.
	if i, err := os.Stat(s.path + "-wal"); err == nil && i.Size() > 0 {
		return fmt.Errorf("its log %s-wal cannot be read where it is: copy both files to a directory that can be written, and open the copy: %w", filepath.Base(s.path), first)
	}
	if s.connectReadOnly("&mode=ro&immutable=1") != nil {
		return first
	}
	return nil
}

// connectReadOnly opens the file with options of SQLite, and checks whose file it is.
func (s *Store) connectReadOnly(options string) (err error) {
	c, err := driver.NewConnector(formatDSN(s.path) + options)
	if err != nil {
		return err
	}
	s.db = sql.OpenDB(c)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.db.Close())
		}
	}()
	s.db.SetMaxOpenConns(readers)
	s.db.SetMaxIdleConns(readers)
	s.read.on = s.db
	return s.retryWhileBusy(context.Background(), func() error {
		c, err := s.db.Conn(context.Background())
		if err != nil {
			return err
		}
		defer c.Close()
		found, err := checkSchema(context.Background(), c)
		if err == nil && found == 0 {
			err = errors.New("the file is empty: no journal was ever written to it")
		}
		s.old = found == 1
		return err
	})
}
