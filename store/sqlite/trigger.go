package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"time"

	"raddle.dev/graph/journal"
)

var _ journal.Triggers = (*Store)(nil)

// triggers is what schema 7 added: what starts runs without a person, and their ticks.
const triggers = `
CREATE TABLE starter (
	id    TEXT PRIMARY KEY, -- of a trigger
	token TEXT NOT NULL,
	due   INTEGER,          -- Unix microseconds; NULL: not known
	data  BLOB
) WITHOUT ROWID;
CREATE TABLE tick (
	starter  TEXT NOT NULL, -- starter.id
	key      TEXT NOT NULL,
	time     INTEGER NOT NULL, -- Unix microseconds
	run      TEXT NOT NULL,
	state    TEXT NOT NULL,
	note     TEXT NOT NULL,
	due      INTEGER NOT NULL, -- Unix microseconds; of one that has ended: when it ended
	attempts INTEGER NOT NULL,
	token    TEXT NOT NULL,
	data     BLOB,
	PRIMARY KEY (starter, key)
);
CREATE INDEX tick_due ON tick(due) WHERE state = 'waiting';
CREATE INDEX tick_ended ON tick(due) WHERE state <> 'waiting';
CREATE INDEX tick_time ON tick(starter, time);
`

// tickColumns are those that queryTicks reads.
const tickColumns = "starter, key, time, run, state, note, due, attempts, token, data"

// ListTriggers implements journal.Triggers. A file that is open for reading only shows none.
func (s *Store) ListTriggers(ctx context.Context) (list []journal.Trigger, now time.Time, err error) {
	err = s.readQueue(ctx, "list triggers", func() error {
		list = nil
		return s.w.query("SELECT id, token, due, data FROM starter ORDER BY id", nil, func(rows *sql.Rows) error {
			var t journal.Trigger
			var due sql.NullInt64
			err := rows.Scan(&t.ID, &t.Token, &due, &t.Data)
			if due.Valid {
				t.Due = time.UnixMicro(due.Int64)
			}
			list = append(list, t)
			return err
		})
	})
	return list, time.Now(), err
}

// PutTrigger implements journal.Triggers.
func (s *Store) PutTrigger(ctx context.Context, t journal.Trigger) (journal.Trigger, error) {
	token := rand.Text()
	err := s.useWriter(ctx, fmt.Sprintf("write trigger %q", t.ID), func(time.Time) error { return s.w.putTrigger(&t, token) })
	if err != nil {
		return t, err
	}
	t.Token = token
	return t, nil
}

// putTrigger writes a trigger with a new token if it has the token of the stored one.
func (w *writer) putTrigger(t *journal.Trigger, token string) error {
	var due any
	if !t.Due.IsZero() {
		due = t.Due.UnixMicro()
	}
	text := "INSERT INTO starter(id, token, due, data) VALUES(?1, ?3, ?4, ?5) ON CONFLICT(id) DO NOTHING"
	if t.Token != "" {
		text = "UPDATE starter SET token = ?3, due = ?4, data = ?5 WHERE id = ?1 AND token = ?2"
	}
	res, err := w.exec(text, t.ID, t.Token, token, due, t.Data)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return journal.ErrConflict
}

// RemoveTrigger implements journal.Triggers.
func (s *Store) RemoveTrigger(ctx context.Context, id string) error {
	return s.useWriter(ctx, fmt.Sprintf("remove trigger %q", id), func(time.Time) error {
		return s.w.runTransaction(func() error {
			_, err := s.w.exec("DELETE FROM tick WHERE starter = ?", id)
			if err == nil {
				_, err = s.w.exec("DELETE FROM starter WHERE id = ?", id)
			}
			return err
		})
	})
}

// AddTicks implements journal.Triggers. It uses the clock of this machine.
func (s *Store) AddTicks(ctx context.Context, of *journal.Trigger, ticks []journal.Tick) (stored []journal.Tick, err error) {
	const add = `INSERT INTO tick(starter, key, time, run, state, note, due, attempts, token, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9)
		ON CONFLICT(starter, key) DO NOTHING`
	token := rand.Text()
	err = s.useWriter(ctx, "add ticks", func(now time.Time) error {
		return s.w.runTransaction(func() error {
			stored = nil
			if of != nil {
				if err := s.w.putTrigger(of, token); err != nil {
					return err
				}
			}
			forget := now.Add(-journal.TicksKept).UnixMicro()
			if _, err := s.w.exec("DELETE FROM tick WHERE state <> 'waiting' AND due < ?", forget); err != nil {
				return err
			}
			for i := range ticks {
				t := &ticks[i]
				_, err := s.w.exec(add, t.Trigger, t.Key, t.Time.UnixMicro(), t.Run, t.State, t.Note, now.UnixMicro(), rand.Text(), t.Data)
				if err != nil {
					return err
				}
				list, err := s.w.queryTicks("SELECT "+tickColumns+" FROM tick WHERE starter = ? AND key = ?", t.Trigger, t.Key)
				if err != nil {
					return err
				}
				stored = append(stored, list...)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if of != nil {
		of.Token = token
	}
	return stored, nil
}

// TakeTicks implements journal.Triggers. It uses the clock of this machine.
func (s *Store) TakeTicks(ctx context.Context, limit int, ttl time.Duration) (list []journal.Tick, err error) {
	const find = "SELECT " + tickColumns + " FROM tick WHERE state = 'waiting' AND due <= ? ORDER BY due, time, key LIMIT ?"
	err = s.useWriter(ctx, "take ticks", func(now time.Time) error {
		list, err = s.w.queryTicks(find, now.UnixMicro(), limit)
		if err != nil || len(list) == 0 {
			return err // it takes no lock of the file unless there is something to take
		}
		return s.w.runTransaction(func() error {
			if list, err = s.w.queryTicks(find, now.UnixMicro(), limit); err != nil {
				return err
			}
			for i := range list {
				t := &list[i]
				t.Token = rand.Text()
				t.Due = now.Add(ttl)
				t.Attempts++
				const take = "UPDATE tick SET token = ?3, due = ?4, attempts = ?5 WHERE starter = ?1 AND key = ?2"
				if _, err := s.w.exec(take, t.Trigger, t.Key, t.Token, t.Due.UnixMicro(), t.Attempts); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ChangeTick implements journal.Triggers.
func (s *Store) ChangeTick(ctx context.Context, t journal.Tick, delay time.Duration) error {
	const change = "UPDATE tick SET state = ?4, run = ?5, note = ?6, data = ?7, due = ?8 WHERE starter = ?1 AND key = ?2 AND token = ?3"
	return s.useWriter(ctx, fmt.Sprintf("change a tick of trigger %q", t.Trigger), func(now time.Time) error {
		res, err := s.w.exec(change, t.Trigger, t.Key, t.Token, t.State, t.Run, t.Note, t.Data, now.Add(delay).UnixMicro())
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return journal.ErrConflict
	})
}

// ListTicks implements journal.Triggers. A file that is open for reading only shows none.
func (s *Store) ListTicks(ctx context.Context, trigger string, limit int) (list []journal.Tick, err error) {
	err = s.readQueue(ctx, "list ticks", func() error {
		const text = "SELECT " + tickColumns + " FROM tick WHERE starter = ?1 OR ?1 = '' ORDER BY time DESC, starter DESC, key DESC LIMIT ?2"
		list, err = s.w.queryTicks(text, trigger, limit)
		return err
	})
	return list, err
}

// queryTicks returns the ticks that a statement selects with tickColumns.
func (w *writer) queryTicks(text string, args ...any) (list []journal.Tick, err error) {
	err = w.query(text, args, func(rows *sql.Rows) error {
		var t journal.Tick
		var at, due int64
		err := rows.Scan(&t.Trigger, &t.Key, &at, &t.Run, &t.State, &t.Note, &due, &t.Attempts, &t.Token, &t.Data)
		t.Time = time.UnixMicro(at)
		t.Due = time.UnixMicro(due)
		list = append(list, t)
		return err
	})
	return list, err
}
