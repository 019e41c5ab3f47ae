package sqlite

import (
	"context"
	"time"

	"raddle.dev/graph/journal"
)

var _ journal.Notices = (*Store)(nil)

// noticeInterval is how often a listener looks whether the file has changed, which takes some microseconds.
const noticeInterval = 50 * time.Millisecond

// ListenJobs implements journal.Notices. It calls changed after each change of the file by another connection, of this
// process too.
func (s *Store) ListenJobs(ctx context.Context, changed func()) {
	tick := time.NewTicker(noticeInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.followVersion(ctx, tick.C, changed)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// followVersion calls changed at once and whenever the version of the file has changed at a tick, until it cannot be
// read or ctx ends.
func (s *Store) followVersion(ctx context.Context, tick <-chan time.Time, changed func()) {
	c, err := s.db.Conn(ctx) // the version that one connection sees says nothing to another
	if err != nil {
		return
	}
	defer c.Close()
	seen := int64(0)
	for {
		var version int64
		if err := c.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version); err != nil {
			return
		}
		if version != seen {
			seen = version
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}
