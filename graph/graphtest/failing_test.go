package graphtest_test

import (
	"context"
	"testing"
	"time"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
)

// Each fault of each write does to the store inside what it says, and is counted if it concerns the write.
func TestFailing(t *testing.T) {
	ctx := t.Context()
	writes := map[string]struct {
		do      func(f *graphtest.Failing) (owner string, err error)
		there   func(m *journal.Memory) bool // whether it was carried out
		ofLease bool
	}{
		"Append": {func(f *graphtest.Failing) (string, error) {
			return "us", f.Append(ctx, "t", 1, []journal.Record{{Kind: journal.KindClaim}})
		}, func(m *journal.Memory) bool { return countRecords(ctx, m) == 2 }, true},
		"Prune":        {func(f *graphtest.Failing) (string, error) { return "us", f.Prune(ctx, "t", 2) }, func(m *journal.Memory) bool { return countRecords(ctx, m) == 0 }, false},
		"ReleaseLease": {func(f *graphtest.Failing) (string, error) { return "us", f.ReleaseLease(ctx, "t", "us") }, func(m *journal.Memory) bool { return ownerOf(ctx, m) == "" }, false},
		"AcquireLease": {func(f *graphtest.Failing) (string, error) {
			l, err := f.AcquireLease(ctx, "t", "we", "us", time.Hour)
			return l.Owner, err
		}, func(m *journal.Memory) bool { return ownerOf(ctx, m) == "we" }, true},
		"RenewLease": {func(f *graphtest.Failing) (string, error) {
			l, err := f.RenewLease(ctx, "t", "us", 3*time.Hour)
			return l.Owner, err
		}, func(m *journal.Memory) bool { l, _ := m.ReadLease(ctx, "t"); return time.Until(l.Until) > 2*time.Hour }, true},
	}
	for name, w := range writes {
		for _, fault := range graphtest.StoreFaults {
			t.Run(name+"/"+fault.Name, func(t *testing.T) {
				m := journal.NewMemory()
				if err := journal.Append(ctx, m, "t", 0, journal.Record{Kind: journal.KindStart}); err != nil {
					t.Fatal(err)
				}
				if _, err := m.AcquireLease(ctx, "t", "us", "", time.Hour); err != nil {
					t.Fatal(err)
				}
				f := &graphtest.Failing{Store: m}
				f.Arm(fault, 1, 1)
				owner, err := w.do(f)
				lost := fault.Name == graphtest.LeaseLost.Name
				if hit := f.Hits() == 1; hit != (w.ofLease || !lost) {
					t.Errorf("it counts as a failure: %v", hit)
				}
				if was := w.there(m); was != (fault.Done || lost && !w.ofLease) {
					t.Errorf("it was carried out: %v", was)
				}
				switch {
				case !lost && err == nil:
					t.Error("there is no error")
				case lost && w.ofLease && err == nil && (owner == "us" || owner == "we"):
					t.Errorf("%s has not lost the lease", owner)
				case lost && !w.ofLease && err != nil:
					t.Error(err)
				}
				if passes := journal.IsUnavailable(err); err != nil && !lost && passes == (fault.Name == graphtest.Refused.Name) {
					t.Errorf("it may pass: %v (%v)", passes, err)
				}
				if f.Arm(graphtest.StoreFault{}, 0, 0); name != "Prune" {
					if _, err := w.do(f); err != nil && !(name == "Append" && w.there(m)) {
						t.Errorf("later: %v", err)
					}
				}
			})
		}
	}
}

func countRecords(ctx context.Context, m *journal.Memory) (n int) {
	for range m.Read(ctx, "t", journal.Range{}) {
		n++
	}
	return n
}

func ownerOf(ctx context.Context, m *journal.Memory) string {
	l, _ := m.ReadLease(ctx, "t")
	return l.Owner
}
