package runs

import (
	"context"
	"testing"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
)

// A store counts as one that cannot be written until an append goes well: what ends for another reason proves nothing.
func TestCheckWrites(t *testing.T) {
	inside := journal.NewMemory()
	failing := &graphtest.Failing{Store: inside}
	a := NewArchive(config.Dirs{}, "memory:")
	if err := a.AttachStore(failing); err != nil {
		t.Fatal(err)
	}
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	appendAs := func(ctx context.Context, after int64) error {
		return st.Append(ctx, "r", after, []journal.Record{{Seq: after + 1, Kind: journal.KindStart, Time: 1}})
	}
	if err := appendAs(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for name, ends := range map[string]func() error{
		"a conflict": func() error { return appendAs(t.Context(), 7) },
		"a caller that has left": func() error {
			failing.Arm(graphtest.StoreFault{Name: "left", Err: context.Canceled}, 1, 1)
			return appendAs(left, 1)
		},
	} {
		failing.Arm(graphtest.StoreFaults[0], 1, 1)
		if err := appendAs(t.Context(), 1); !failure.IsUnavailable(err) {
			t.Fatal(err)
		}
		if err := ends(); err == nil || failure.IsUnavailable(err) {
			t.Fatalf("%s: %v", name, err)
		}
		failing.Arm(graphtest.StoreFault{}, 0, 0)
		if err := st.CheckWrites(t.Context()); !failure.IsUnavailable(err) {
			t.Errorf("after %s the store counts as one that can be written: %v", name, err)
		}
	}
	if err := appendAs(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := st.CheckWrites(t.Context()); err != nil {
		t.Errorf("after an append: %v", err)
	}
}
