package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

var _ journal.Notices = (*Store)(nil)

// notices is what schema 5 added: a notification for each job that becomes free. Only these take the lock of the
// server's queue of notifications, and no record does.
const notices = `
CREATE OR REPLACE FUNCTION raddle_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('raddle_drive', '');
	RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS raddle_drive_free ON raddle_drive;
CREATE TRIGGER raddle_drive_free AFTER INSERT OR UPDATE ON raddle_drive FOR EACH ROW
	WHEN (NOT NEW.given_up AND (NEW.worker = '' OR NEW.due <= clock_timestamp()))
	EXECUTE FUNCTION raddle_notify();
`

// The pauses before a listener connects again.
const (
	firstListenPause = time.Second
	maxListenPause   = 30 * time.Second
)

// ListenJobs implements journal.Notices with a connection of its own. Behind a pooler in transaction mode no
// notification arrives, which does no harm.
func (s *Store) ListenJobs(ctx context.Context, changed func()) {
	pause := firstListenPause
	for ctx.Err() == nil {
		if s.listen(ctx, changed) {
			pause = firstListenPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxListenPause)
	}
}

// listen calls changed as soon as it listens and for each notification, until the connection or ctx ends. It reports
// whether it has listened.
func (s *Store) listen(ctx context.Context, changed func()) bool {
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig.Copy())
	if err != nil {
		return false
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(end) // nothing was written
	}()
	if _, err := c.Exec(ctx, "LISTEN raddle_drive"); err != nil {
		return false
	}
	for err == nil {
		changed()
		_, err = c.WaitForNotification(ctx)
	}
	return true
}
