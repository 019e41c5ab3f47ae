package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

var _ journal.Triggers = (*Store)(nil)

// triggers is what schema 6 added: what starts runs without a person, and their ticks.
const triggers = `
CREATE TABLE IF NOT EXISTS raddle_trigger (
	id    bytea PRIMARY KEY,
	token bytea NOT NULL,
	due   bigint NOT NULL, -- Unix microseconds; 0: not known
	data  bytea
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS raddle_tick (
	trigger  bytea NOT NULL, -- raddle_trigger.id
	key      bytea NOT NULL,
	time     bigint NOT NULL, -- Unix microseconds
	run      bytea NOT NULL,
	state    bytea NOT NULL,
	note     bytea NOT NULL,
	due      timestamptz NOT NULL, -- of one that has ended: when it ended
	attempts bigint NOT NULL,
	token    bytea NOT NULL,
	data     bytea,
	PRIMARY KEY (trigger, key)
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS raddle_tick_due ON raddle_tick (due) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS raddle_tick_ended ON raddle_tick (due) WHERE state <> 'waiting';
CREATE INDEX IF NOT EXISTS raddle_tick_time ON raddle_tick (trigger, time);
`

// The statements of triggers.
const (
	listTriggers = "SELECT id, token, due, data, clock_timestamp() FROM raddle_trigger UNION ALL SELECT NULL, NULL, NULL, NULL, clock_timestamp() ORDER BY 1 NULLS LAST"

	// A statement that is sent again after its answer was lost finds its own token.
	insertTrigger = `INSERT INTO raddle_trigger AS t (id, token, due, data) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET token = t.token WHERE t.token = $2`
	updateTrigger = "UPDATE raddle_trigger SET token = $2, due = $3, data = $4 WHERE id = $1 AND token IN ($5, $2)"

	tickColumns = "t.trigger, t.key, t.time, t.run, t.state, t.note, t.due, t.attempts, t.token, t.data"

	addTick = `INSERT INTO raddle_tick (trigger, key, time, run, state, note, due, attempts, token, data)
		VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp(), 0, $7, $8) ON CONFLICT (trigger, key) DO NOTHING`
	findTick    = "SELECT " + tickColumns + " FROM raddle_tick t WHERE trigger = $1 AND key = $2"
	forgetTicks = "DELETE FROM raddle_tick WHERE state <> 'waiting' AND due < clock_timestamp() - $1 * interval '1 microsecond'"

	takeTicks = `WITH c AS (SELECT trigger, key, time, due FROM raddle_tick WHERE state = 'waiting' AND due <= now()
			ORDER BY due, time, key LIMIT $1 FOR UPDATE SKIP LOCKED),
		t AS (UPDATE raddle_tick AS t SET token = $2 || t.key, due = clock_timestamp() + $3 * interval '1 microsecond', attempts = t.attempts + 1
			FROM c WHERE t.trigger = c.trigger AND t.key = c.key RETURNING ` + tickColumns + `)
		SELECT ` + tickColumns + " FROM t JOIN c ON t.trigger = c.trigger AND t.key = c.key ORDER BY c.due, c.time, c.key"

	changeTick = `UPDATE raddle_tick SET state = $4, run = $5, note = $6, data = $7, due = clock_timestamp() + $8 * interval '1 microsecond'
		WHERE trigger = $1 AND key = $2 AND token = $3`

	listTicks = "SELECT " + tickColumns + " FROM raddle_tick t WHERE trigger = $1 OR $1 = ''::bytea ORDER BY time DESC, trigger DESC, key DESC LIMIT $2"
)

// ListTriggers implements journal.Triggers. It uses the clock of the server.
func (s *Store) ListTriggers(ctx context.Context) (list []journal.Trigger, now time.Time, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		list = nil
		rows, err := sendQuery(ctx, c, listTriggers)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, token, data []byte
			var due *int64
			if err := rows.Scan(&id, &token, &due, &data, &now); err != nil {
				return err
			}
			if token == nil {
				continue // the row of the clock
			}
			t := journal.Trigger{ID: string(id), Token: string(token), Data: data}
			if *due != 0 {
				t.Due = time.UnixMicro(*due)
			}
			list = append(list, t)
		}
		return rows.Err()
	})
	return list, now, s.explainError("list triggers", err)
}

// PutTrigger implements journal.Triggers.
func (s *Store) PutTrigger(ctx context.Context, t journal.Trigger) (journal.Trigger, error) {
	token := rand.Text()
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error { return putTrigger(ctx, c, &t, token) })
	if err != nil {
		return t, s.explainTrigger(fmt.Sprintf("write trigger %q", t.ID), err)
	}
	t.Token = token
	return t, nil
}

// explainTrigger is explainError, and leaves ErrConflict as it is.
func (s *Store) explainTrigger(what string, err error) error {
	if errors.Is(err, journal.ErrConflict) {
		return journal.ErrConflict
	}
	return s.explainError(what, err)
}

// putTrigger writes a trigger with a new token if it has the token of the stored one.
func putTrigger(ctx context.Context, c *pgx.Conn, t *journal.Trigger, token string) error {
	due := int64(0)
	if !t.Due.IsZero() {
		due = t.Due.UnixMicro()
	}
	text := insertTrigger
	args := []any{[]byte(t.ID), []byte(token), due, notNull(t.Data)}
	if t.Token != "" {
		text = updateTrigger
		args = append(args, []byte(t.Token))
	}
	n, err := execStatement(ctx, c, text, args...)
	if err == nil && n == 0 {
		return journal.ErrConflict
	}
	return err
}

// notNull returns data as bytes that are never NULL.
func notNull(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// RemoveTrigger implements journal.Triggers.
func (s *Store) RemoveTrigger(ctx context.Context, id string) error {
	err := s.runTransaction(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := execStatement(ctx, c, "DELETE FROM raddle_tick WHERE trigger = $1", []byte(id))
		if err == nil {
			_, err = execStatement(ctx, c, "DELETE FROM raddle_trigger WHERE id = $1", []byte(id))
		}
		return err
	})
	return s.explainError(fmt.Sprintf("remove trigger %q", id), err)
}

// AddTicks implements journal.Triggers. It uses the clock of the server.
func (s *Store) AddTicks(ctx context.Context, of *journal.Trigger, ticks []journal.Tick) (stored []journal.Tick, err error) {
	token := rand.Text()
	err = s.runTransaction(ctx, func(ctx context.Context, c *pgx.Conn) error {
		stored = nil
		if of != nil {
			if err := putTrigger(ctx, c, of, token); err != nil {
				return err
			}
		}
		if _, err := execStatement(ctx, c, forgetTicks, journal.TicksKept.Microseconds()); err != nil {
			return err
		}
		for i := range ticks {
			t := &ticks[i]
			_, err := execStatement(ctx, c, addTick, []byte(t.Trigger), []byte(t.Key), t.Time.UnixMicro(), []byte(t.Run), []byte(t.State), []byte(t.Note),
				[]byte(rand.Text()), notNull(t.Data))
			if err != nil {
				return err
			}
			list, err := queryTicks(ctx, c, findTick, []byte(t.Trigger), []byte(t.Key))
			if err != nil {
				return err
			}
			stored = append(stored, list...)
		}
		return nil
	})
	if err != nil {
		return nil, s.explainTrigger("add ticks", err)
	}
	if of != nil {
		of.Token = token
	}
	return stored, nil
}

// TakeTicks implements journal.Triggers. It uses the clock of the server.
func (s *Store) TakeTicks(ctx context.Context, limit int, ttl time.Duration) (list []journal.Tick, err error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	err = s.sendWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		list, err = queryTicks(ctx, c, takeTicks, int64(limit), []byte(rand.Text()), ttl.Microseconds())
		return err
	})
	return list, s.explainError("take ticks", err)
}

// ChangeTick implements journal.Triggers.
func (s *Store) ChangeTick(ctx context.Context, t journal.Tick, delay time.Duration) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		n, err := execStatement(ctx, c, changeTick, []byte(t.Trigger), []byte(t.Key), []byte(t.Token), []byte(t.State), []byte(t.Run), []byte(t.Note),
			notNull(t.Data), delay.Microseconds())
		if err == nil && n == 0 {
			return journal.ErrConflict
		}
		return err
	})
	return s.explainTrigger(fmt.Sprintf("change a tick of trigger %q", t.Trigger), err)
}

// ListTicks implements journal.Triggers.
func (s *Store) ListTicks(ctx context.Context, trigger string, limit int) (list []journal.Tick, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		list, err = queryTicks(ctx, c, listTicks, []byte(trigger), int64(limit))
		return err
	})
	return list, s.explainError("list ticks", err)
}

// queryTicks sends a statement that returns ticks.
func queryTicks(ctx context.Context, c *pgx.Conn, text string, args ...any) ([]journal.Tick, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []journal.Tick
	for rows.Next() {
		var trigger, key, run, state, note, token []byte
		var at, attempts int64
		var t journal.Tick
		if err := rows.Scan(&trigger, &key, &at, &run, &state, &note, &t.Due, &attempts, &token, &t.Data); err != nil {
			return nil, err
		}
		t.Time = time.UnixMicro(at)
		t.Trigger = string(trigger)
		t.Key = string(key)
		t.Run = string(run)
		t.State = string(state)
		t.Note = string(note)
		t.Token = string(token)
		t.Attempts = int(attempts)
		list = append(list, t)
	}
	return list, rows.Err()
}
