package graphtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
)

func TestMemory(t *testing.T) {
	graphtest.TestStore(t, func(*testing.T) journal.Store { return journal.NewMemory() })
}

func TestClock(t *testing.T) {
	var still graphtest.Clock
	if a, b := still.Now(), still.Now(); !a.Equal(b) || a.Format(time.RFC3339) != "2026-01-01T00:00:00Z" {
		t.Errorf("the zero Clock says %v and %v", a, b)
	}
	start := time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)
	c := graphtest.Clock{Start: start, Tick: time.Second}
	for _, want := range []time.Duration{0, time.Second, 2 * time.Second} {
		if got := c.Now().Sub(start); got != want {
			t.Errorf("Now is %v after the start, want %v", got, want)
		}
	}
	if err := errors.Join(c.Wait(t.Context(), time.Hour), c.Wait(t.Context(), -time.Hour), c.Wait(t.Context(), 0)); err != nil {
		t.Error(err)
	}
	if got, want := c.Now().Sub(start), time.Hour+3*time.Second; got != want {
		t.Errorf("Now is %v after the start, want %v", got, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with a cancelled context: %v", err)
	}
	if got, want := c.Now().Sub(start), time.Hour+4*time.Second; got != want {
		t.Errorf("Now is %v after the start, want %v", got, want)
	}
}

func TestIDs(t *testing.T) {
	a, b := graphtest.IDs("a"), graphtest.IDs("b")
	if got := []string{a(), a(), b(), a()}; !slices.Equal(got, []string{"a-1", "a-2", "b-1", "a-3"}) {
		t.Error(got)
	}
}

// TestCrash appends batches of 1, 2, 3 and 1 records to a store that crashes.
func TestCrash(t *testing.T) {
	for _, test := range []struct {
		limit           int
		lost            bool
		stored, batches int
		crashed         bool
	}{
		{limit: -1, stored: 7, batches: 4},
		{limit: 100, stored: 7, batches: 4},
		{limit: 7, stored: 7, batches: 4},
		{limit: 6, stored: 6, batches: 3, crashed: true},
		{limit: 5, stored: 3, batches: 2, crashed: true},
		{limit: 5, lost: true, stored: 6, batches: 3, crashed: true},
		{limit: 0, crashed: true},
		{limit: 0, lost: true, stored: 1, batches: 1, crashed: true},
	} {
		c := &graphtest.Crash{Store: journal.NewMemory(), Limit: test.limit, Lost: test.lost}
		var failed bool
		head := int64(0)
		for _, n := range []int{1, 2, 3, 1} {
			err := c.Append(t.Context(), "a", head, make([]journal.Record, n))
			if head += int64(n); err == nil && failed {
				t.Errorf("%+v: an append after the crash worked", test)
			}
			if failed = err != nil; failed && !errors.Is(err, graphtest.ErrCrash) {
				t.Errorf("%+v: %v", test, err)
			}
		}
		inside := 0
		for range c.Store.Read(t.Context(), "a", journal.Range{}) {
			inside++
		}
		if inside != test.stored || c.RecordCount() != test.stored || c.BatchCount() != test.batches || c.HasCrashed() != test.crashed || failed != test.crashed {
			t.Errorf("%+v: %d records inside, %d counted in %d batches, crashed %v, failed %v", test, inside, c.RecordCount(), c.BatchCount(), c.HasCrashed(), failed)
		}
		if err := c.Prune(t.Context(), "a", 1); errors.Is(err, graphtest.ErrCrash) != test.crashed {
			t.Errorf("%+v: Prune: %v", test, err)
		}
	}
}

func TestCrashPassesConflictsOn(t *testing.T) {
	c := &graphtest.Crash{Store: journal.NewMemory(), Limit: 1, Lost: true}
	if err := c.Append(t.Context(), "a", 5, make([]journal.Record, 1)); !errors.Is(err, journal.ErrConflict) || c.HasCrashed() || c.RecordCount() != 0 {
		t.Errorf("%v, crashed %v, %d records", err, c.HasCrashed(), c.RecordCount())
	}
}
