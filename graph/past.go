package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"raddle.dev/graph/internal/wire"
)

// A thread remembers the runs that it has seen by the hashes of their ids, so that a
// run that is started again is not treated as a new one.

func hashOf(run string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(run)) // a hash never fails
	return h.Sum64()
}

func putHashes(b []byte, hs []uint64) []byte {
	b = wire.PutInt(b, len(hs))
	for _, h := range hs {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

func readHashes(r *wire.Reader) []uint64 {
	n := r.Count()
	if n*8 > len(r.Rest) {
		r.MarkDamaged("a list is longer than its record")
		return nil
	}
	hs := make([]uint64, n)
	for i := range hs {
		hs[i] = binary.BigEndian.Uint64(r.Rest)
		r.Rest = r.Rest[8:]
	}
	return hs
}

// hasPastRun reports whether the run came before the thread's last run.
func (s *replay) hasPastRun(run string) bool {
	return s != nil && s.run.id != run && slices.Contains(s.runs, hashOf(run))
}

// loadRunEnd returns the result of a run that is not the thread's last.
func (x *drive) loadRunEnd(ctx context.Context, run string) (Result, error) {
	fail := func(err error) (Result, error) {
		return Result{Thread: x.thread, Run: run}, fmt.Errorf("run %s is over, and its end cannot be read: %w", run, err)
	}
	at, err := x.findRunEnd(ctx, run)
	if err != nil {
		return fail(err)
	}
	s, err := loadPoint(ctx, x.r.Store, Point{x.thread, at})
	if err != nil {
		return fail(err)
	}
	f, err := x.openIdleFrame(s)
	if err != nil {
		return fail(err)
	}
	return x.finalResult(s, f)
}

// findRunEnd finds the record of a run's end.
func (x *drive) findRunEnd(ctx context.Context, run string) (int64, error) {
	end := int64(0)
	for r, err := range Records(ctx, x.r.Store, x.thread, Range{Heads: true, Newest: true}) {
		switch {
		case err != nil:
			return 0, fmt.Errorf("read thread %s: %w", x.thread, err)
		case r.Kind == KindEnd && end == 0:
			end = r.Seq
		case r.Kind == KindStart:
			if h := (&wire.Reader{Rest: r.Head}); h.Text() == run && end > 0 {
				return end, nil
			}
			end = 0
		}
	}
	return 0, fmt.Errorf("%w %s", ErrNoPoint, x.thread)
}
