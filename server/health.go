package server

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
)

// RetryAfter is the value of the header Retry-After of answers that say that the store or the server cannot do
// something now, in seconds.
const RetryAfter = "10"

// storeHealth is the outcome of the last look at the store. A look counts for some seconds, however often it is asked
// for.
type storeHealth struct {
	mu    sync.Mutex // held while the store is looked at
	err   error
	until time.Time

	full time.Time // when the log said last that the disk is almost full
}

// How long a look at the store may take, and how long it counts.
const (
	probeTimeout = 5 * time.Second
	probeCounts  = 3 * time.Second
)

// CheckStore returns why the store cannot be read and written now, or nil. It writes a lease of its own and removes it
// again; what a run has tried to append last counts too. The error is of the kind [failure.Unavailable].
func CheckStore(ctx context.Context, s *Service) error {
	h := &s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.until) {
		return h.err
	}
	st, err := s.process.Runs.OpenStore()
	if err != nil {
		return err
	}
	probe, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout) // others wait for the outcome
	defer cancel()
	if err = st.CheckWrites(probe); err == nil {
		if space, known := runs.ReadFreeSpace(s.process.Runs); known && space.Free < fullDisk {
			err = newDiskError(s, space.Dir, space.Free, fullDisk)
		}
	}
	if err != nil && !failure.IsUnavailable(err) { // it did not answer in time
		err = &failure.Error{Kind: failure.Unavailable, Err: err}
	}
	h.err, h.until = err, time.Now().Add(probeCounts)
	return err
}

// fullDisk is the free space below which a store in a file counts as one that cannot be written, in bytes.
const fullDisk = 1 << 20

// usualFreeDisk is how much of a disk must be free for a run to start if the configuration does not say it, in bytes.
const usualFreeDisk = 64 << 20

// DiskLowError reports a disk without enough room for new runs.
type DiskLowError struct {
	Dir         string // where the store or the state directory is
	Free, Least uint64 // bytes
}

// Error says how much is free, and how much must be. It does not name the directory, which is nothing for clients.
func (e *DiskLowError) Error() string {
	return fmt.Sprintf("the disk of the server has %d MiB left, and a run starts only with at least %d MiB: open runs can be answered and cancelled", e.Free>>20, e.Least>>20)
}

// fullLogged is the time between two lines of the log about a disk that is almost full.
const fullLogged = time.Minute

// newDiskError returns the error for a disk without enough room. The caller must hold mu of the health of the store.
func newDiskError(s *Service, dir string, free, least uint64) error {
	if h := &s.health; time.Since(h.full) > fullLogged { // each refused start would be a line, and need room
		h.full = time.Now()
		s.log.Warn("the disk is almost full", "dir", dir, "free", free, "least", least)
	}
	return &failure.Error{Kind: failure.Unavailable, Err: &DiskLowError{dir, free, least}, Next: "make room on the disk, or lower min_free_disk in config.yaml"}
}

// CheckRoom returns why no run can be started now, or nil: the store cannot be written, or its disk or that of the
// state directory is almost full. Answers and cancellations need no such check.
func CheckRoom(ctx context.Context, s *Service) error {
	least := cmp.Or(s.process.Config.MinFreeDisk, usualFreeDisk)
	if space, known := runs.ReadFreeSpace(s.process.Runs); known && least > 0 && space.Free < uint64(least) {
		s.health.mu.Lock()
		defer s.health.mu.Unlock()
		return newDiskError(s, space.Dir, space.Free, uint64(least))
	}
	return CheckStore(ctx, s)
}
