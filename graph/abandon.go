package graph

import (
	"context"
	"fmt"
	"time"
)

// Abandon ends the run of a thread by hand and for good: nothing more of it runs,
// and its status is Abandoned. Its state stays, and another run can be started
// behind it. reason is for whoever looks at the run later; it may be empty.
//
// What a killed drive has left behind goes on: InDoubt of Inspect names it. A run
// that is over stays as it ended. A drive that is at work is not asked: it gets
// ErrConflict at its next record, and Abandon gets it if the drive appends first.
// An unknown thread is ErrNoThread.
func Abandon(ctx context.Context, st Store, thread, reason string) error {
	s, err := loadPoint(ctx, st, Point{Thread: thread})
	if err == nil && !s.run.status.Final() {
		err = appendSealed(ctx, st, thread, s.head, s.abandoned(reason))
	}
	if err != nil {
		return fmt.Errorf("abandon thread %s: %w", thread, err)
	}
	return nil
}

// abandoned makes the record. Of a run that crashed, the time since is nobody's.
func (s *replay) abandoned(reason string) Record {
	at := s.last
	if !s.driving {
		at = max(at, time.Now().UnixMicro())
	}
	head := putBool(putString([]byte{byte(Abandoned)}, reason), false)
	head = putInt(putString(head, s.run.id), 0) // no question is open
	return Record{Kind: KindEnd, Time: at, Head: s.run.sign(putBroken(head, nil))}
}
