package rag

import (
	"context"
	"errors"
	"net/url"
	"time"

	"raddle.dev/internal/base/sqlitefile"
)

// lockSuffix is added to the name of a base for the name of its lock.
const lockSuffix = "-lock"

// lockPause is the time between attempts to get the lock.
const lockPause = 50 * time.Millisecond

// lockBuild waits until no other process builds the base, and returns the function that releases the lock. It calls
// waiting once if it has to wait. The lock is a transaction in a separate database, which the system ends with the
// process on all platforms. Searches do not need the lock.
func (b *Base) lockBuild(ctx context.Context, waiting func()) (unlock func() error, err error) {
	path := b.path + lockSuffix
	if err := sqlitefile.Create(path); err != nil {
		return nil, err
	}
	db, err := openDatabase(path, url.Values{"_txlock": {"exclusive"}, "_pragma": {"busy_timeout(0)"}})
	if err != nil {
		return nil, err
	}
	for notified := false; ; notified = true {
		tx, err := db.Begin()
		if err == nil {
			return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
		}
		if !isBusy(err) {
			return nil, errors.Join(err, db.Close())
		}
		if !notified {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), db.Close())
		case <-time.After(lockPause):
		}
	}
}
