package runs

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
)

// faster is a store in which something happens immediately before the next append.
type faster struct {
	*journal.Memory
	first func()
}

func (f *faster) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if first := f.first; first != nil {
		f.first = nil
		first()
	}
	return f.Memory.Append(ctx, thread, after, recs)
}

// The place of a cancel is that of its record, and a run that has ended meanwhile is not confirmed as cancelled.
func TestPlaceOfACancel(t *testing.T) {
	for name, c := range map[string]struct {
		first func(ctx context.Context, st journal.Store) error
		place int64 // behind what the run had before; 0: the run is over
	}{
		"alone":             {nil, 1},
		"one record before": {func(ctx context.Context, st journal.Store) error { return history.WriteSnapshot(ctx, st, "t") }, 2},
		"an end before": {func(ctx context.Context, st journal.Store) error {
			_, err := history.Abandon(ctx, st, "t", "")
			return err
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			st := &faster{Memory: journal.NewMemory()}
			a := NewArchive(config.Dirs{State: filepath.Join(t.TempDir(), "state")}, "")
			t.Cleanup(func() { _ = a.Close() })
			if err := a.AttachStore(st); err != nil {
				t.Fatal(err)
			}
			res, err := (&graph.Runner{Graph: compileOuting(t), Store: st}).Invoke(t.Context(), graph.Input{Run: "t", Thread: "t", Break: []graph.Break{{Node: "pack"}}})
			if err != nil || res.Status != graph.Paused {
				t.Fatal(res.Status, err)
			}
			if c.first != nil {
				st.first = func() {
					if err := c.first(t.Context(), st.Memory); err != nil {
						t.Error(err)
					}
				}
			}
			at, err := a.CancelRun(t.Context(), "t")
			over, ended := errors.AsType[*EndedError](err)
			if c.place == 0 {
				if !ended || over.Status != graph.Abandoned || at.At != 0 {
					t.Errorf("%+v, %v", at, err)
				}
				return
			}
			if err != nil || at.At != res.Head+c.place {
				t.Errorf("it is at %d after %d: %v", at.At, res.Head, err)
			}
		})
	}
}
