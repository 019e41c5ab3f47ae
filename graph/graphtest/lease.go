package graphtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"raddle.dev/graph/journal"
)

// storeLeaser returns the store's leases; nil if it has none.
func (h *harness) storeLeaser() journal.Leaser {
	l, _ := h.s.(journal.Leaser)
	return l
}

const (
	leaseLong  = time.Hour
	leaseShort = 50 * time.Millisecond // it expires within the test
)

// acquireLease takes a lease and checks who holds it afterwards.
func (h *harness) acquireLease(thread, owner, over string, ttl time.Duration, want string) journal.Lease {
	h.Helper()
	before := time.Now()
	l, err := h.storeLeaser().AcquireLease(h.Context(), thread, owner, over, ttl)
	if err != nil {
		h.Fatalf("AcquireLease(%q, %q, over %q): %v", thread, owner, over, err)
	}
	if l.Owner != want || l.Expired && ttl == leaseLong {
		h.Fatalf("AcquireLease(%q, %q, over %q): %+v, want one of %q", thread, owner, over, l, want)
	}
	if left := l.Until.Sub(before); owner == want && (left < ttl-time.Minute || left > ttl+time.Minute) {
		h.Errorf("AcquireLease for %v: it ends in %v", ttl, left)
	}
	return l
}

func (h *harness) renewLease(thread, owner string, ttl time.Duration, want string) {
	h.Helper()
	l, err := h.storeLeaser().RenewLease(h.Context(), thread, owner, ttl)
	if err != nil || l.Owner != want {
		h.Errorf("RenewLease(%q, %q): %+v, %v; want one of %q", thread, owner, l, err, want)
	}
}

func (h *harness) releaseLease(thread, owner string) {
	h.Helper()
	if err := h.storeLeaser().ReleaseLease(h.Context(), thread, owner); err != nil {
		h.Errorf("ReleaseLease(%q, %q): %v", thread, owner, err)
	}
}

// expectLease checks who holds a lease, according to ReadLease and, if the thread exists,
// Threads.
func (h *harness) expectLease(thread, want string) journal.Lease {
	h.Helper()
	l, err := h.storeLeaser().ReadLease(h.Context(), thread)
	if err != nil || l.Owner != want {
		h.Errorf("ReadLease(%q): %+v, %v; want one of %q", thread, l, err, want)
	}
	for _, i := range h.mustListThreads(thread) {
		if i.Name == thread && (i.Lease.Owner != l.Owner || !i.Lease.Until.Equal(l.Until)) {
			h.Errorf("Threads lists %q with lease %+v; ReadLease says %+v", thread, i.Lease, l)
		}
	}
	return l
}

// waitUntilExpired waits until a short lease has expired.
func (h *harness) waitUntilExpired(thread, owner string) {
	h.Helper()
	for end := time.Now().Add(stuck / 4); ; time.Sleep(leaseShort / 5) {
		l := h.expectLease(thread, owner)
		if l.Expired {
			return
		}
		if time.Now().After(end) {
			h.Fatalf("the lease of %q for %v does not expire: %+v", thread, leaseShort, l)
		}
	}
}

var leaseCases = []storeCase{
	{"OneHolds", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 1)...)
		h.expectLease("a", "")
		h.acquireLease("a", "x", "", leaseLong, "x")
		h.acquireLease("a", "y", "", leaseLong, "x")
		h.acquireLease("a", "y", "z", leaseLong, "x")
		h.acquireLease("a", "x", "", leaseLong, "x")
		h.expectLease("a", "x")
	}},
	{"ThreadsAreApart", func(h *harness) {
		for _, thread := range []string{"a", "A", "a/b", "", "ü'\x00"} {
			h.acquireLease(thread, "of "+thread, "", leaseLong, "of "+thread)
		}
		for _, thread := range []string{"a", "A", "a/b", "", "ü'\x00"} {
			h.expectLease(thread, "of "+thread)
		}
	}},
	{"OverDisplacesThatOne", func(h *harness) {
		h.acquireLease("a", "x", "", leaseLong, "x")
		h.acquireLease("a", "y", "x", leaseLong, "y")
		h.renewLease("a", "x", leaseLong, "y")
		h.releaseLease("a", "x")
		h.expectLease("a", "y")
		h.acquireLease("a", "z", "x", leaseLong, "y")
	}},
	{"RenewOwnOnly", func(h *harness) {
		h.renewLease("a", "x", leaseLong, "")
		h.expectLease("a", "")
		h.acquireLease("a", "x", "", leaseShort, "x")
		h.renewLease("a", "y", leaseLong, "x")
		h.waitUntilExpired("a", "x")
		h.renewLease("a", "y", leaseLong, "x")
		h.renewLease("a", "x", leaseLong, "x")
		if l := h.expectLease("a", "x"); l.Expired {
			h.Errorf("a renewed lease has expired: %+v", l)
		}
		h.acquireLease("a", "y", "", leaseLong, "x")
	}},
	{"ReleaseOwnOnly", func(h *harness) {
		h.releaseLease("a", "x")
		h.acquireLease("a", "x", "", leaseLong, "x")
		h.releaseLease("a", "y")
		h.expectLease("a", "x")
		h.releaseLease("a", "x")
		h.expectLease("a", "")
		h.acquireLease("a", "y", "", leaseLong, "y")
	}},
	{"ExpiredMayBeTaken", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 1)...)
		h.acquireLease("a", "x", "", leaseShort, "x")
		h.waitUntilExpired("a", "x")
		h.acquireLease("a", "y", "", leaseLong, "y")
		h.renewLease("a", "x", leaseLong, "y")
	}},
	{"GoesWithTheThread", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 2)...)
		h.acquireLease("a", "x", "", leaseLong, "x")
		h.mustPrune("a", 2)
		h.expectLease("a", "x")
		h.mustPrune("a", 3)
		h.expectLease("a", "")
		h.renewLease("a", "x", leaseLong, "")
	}},
	{"LeavesRecordsAlone", func(h *harness) {
		h.acquireLease("a", "x", "", leaseLong, "x")
		if l := h.mustListThreads(""); len(l) > 0 {
			h.Errorf("a lease makes a thread: %+v", l)
		}
		h.mustAppend("a", 0, newRecords("a", 0, 3)...)
		h.renewLease("a", "x", leaseLong, "x")
		h.releaseLease("a", "x")
		h.expectRecords("a", newRecords("a", 0, 3))
	}},
	{"OneOfManyWins", func(h *harness) {
		for round := range 20 {
			var won atomic.Int32
			thread := fmt.Sprint("t", round)
			h.runParallel(8, func(ctx context.Context, i int) error {
				owner := fmt.Sprint("o", i)
				l, err := h.storeLeaser().AcquireLease(ctx, thread, owner, "", leaseLong)
				if l.Owner == owner {
					won.Add(1)
				}
				return err
			})
			if won.Load() != 1 {
				h.Fatalf("%d of 8 hold the lease", won.Load())
			}
		}
	}},
	{"EndedContext", func(h *harness) {
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		if _, err := h.storeLeaser().AcquireLease(ctx, "a", "x", "", leaseLong); err == nil {
			h.Error("AcquireLease with an ended context")
		}
		h.expectLease("a", "")
	}},
}

// durableLeases checks that a process sees what another does with leases.
func durableLeases(t *testing.T, open func() *harness) {
	a := open()
	b := open()
	if a.storeLeaser() == nil {
		return // leases are optional
	}
	a.mustAppend("t", 0, newRecords("t", 0, 1)...)
	a.acquireLease("t", "a", "", leaseLong, "a")
	b.expectLease("t", "a")
	b.acquireLease("t", "b", "", leaseLong, "a")
	b.acquireLease("t", "b", "a", leaseLong, "b")
	a.renewLease("t", "a", leaseLong, "b")
	a.releaseLease("t", "a")
	b.releaseLease("t", "b")
	a.expectLease("t", "")
	a.acquireLease("t", "a", "", leaseLong, "a")
	if err := a.s.Close(); err != nil {
		t.Fatal(err)
	}
	b.expectLease("t", "a")
	open().expectLease("t", "a")
}
