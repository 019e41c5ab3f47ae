package graph

import (
	"context"
	"iter"
)

// A Checkpoint is a point that is useful to go back to: a start, a step, the start of a
// child graph, an edit or a fork. Its Kind says which, its Step and Next what would run
// from there.
type Checkpoint struct {
	Entry
	Parent Point // the checkpoint before it; for a fork the point that was copied; zero: none is kept
}

// Checkpoints lists the checkpoints of a thread, newest first, without reading any
// value. A pruned thread ends with the snapshot that replaces the deleted records. An
// error is last; an unknown thread has none.
func Checkpoints(ctx context.Context, st Store, thread string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		var held *Checkpoint // until its parent is known
		var oldest Entry
		for e, err := range History(ctx, st, thread) {
			if err != nil {
				yield(Checkpoint{}, err)
				return
			}
			oldest = e
			if !e.isCheckpoint() {
				continue
			}
			if held != nil {
				held.Parent = Point{thread, e.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: e, Parent: e.From}
		}
		if oldest.Kind == KindSnapshot {
			if held != nil {
				held.Parent = Point{thread, oldest.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: oldest}
		}
		if held != nil {
			yield(*held, nil)
		}
	}
}

func (e *Entry) isCheckpoint() bool {
	switch e.Kind {
	case KindStart, KindCall, KindStep, KindEdit, KindFork:
		return true
	}
	return false
}
