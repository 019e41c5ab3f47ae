package graph

import (
	"context"
	"fmt"
	"time"

	"raddle.dev/graph/internal/wire"
)

// Abandon ends the run of a thread by hand and permanently: nothing more of it runs,
// and its status is Abandoned. Its state stays, and a new run can be started on the
// thread. reason is shown to those who look at the run later; it may be empty.
//
// Processes that a killed drive has left behind keep running: InDoubt of Inspect names
// them. A run that has ended keeps its status. A running drive is not asked: it gets
// ErrConflict at its next record, and Abandon gets it if the drive appends first. An
// unknown thread is ErrNoThread.
func Abandon(ctx context.Context, st Store, thread, reason string) error {
	s, err := loadPoint(ctx, st, Point{Thread: thread})
	if err == nil && !s.run.status.Final() {
		err = appendSealed(ctx, st, thread, s.head, s.newAbandonRecord(reason))
	}
	if err != nil {
		return fmt.Errorf("abandon thread %s: %w", thread, err)
	}
	return nil
}

// newAbandonRecord returns the end record. If the run has crashed, the time since then does
// not count as active.
func (s *replay) newAbandonRecord(reason string) Record {
	at := s.last
	if !s.driving {
		at = max(at, time.Now().UnixMicro())
	}
	head := wire.PutBool(wire.PutString([]byte{byte(Abandoned)}, reason), false)
	head = wire.PutInt(wire.PutString(head, s.run.id), 0) // no question is open
	return Record{Kind: KindEnd, Time: at, Head: s.run.appendSummary(putBroken(head, nil))}
}
