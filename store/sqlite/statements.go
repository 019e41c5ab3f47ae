package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

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
