package graphtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"raddle.dev/graph"
)

// leaser returns the store's leases; nil if it has none.
func (h *harness) leaser() graph.Leaser {
	l, _ := h.s.(graph.Leaser)
	return l
}

const (
	leaseLong  = time.Hour
	leaseShort = 50 * time.Millisecond // it expires within the test
)

// acquire takes a lease and checks who holds it afterwards.
func (h *harness) acquire(thread, owner, over string, ttl time.Duration, want string) graph.Lease {
	h.Helper()
	before := time.Now()
	l, err := h.leaser().AcquireLease(h.Context(), thread, owner, over, ttl)
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

func (h *harness) renew(thread, owner string, ttl time.Duration, want string) {
	h.Helper()
	l, err := h.leaser().RenewLease(h.Context(), thread, owner, ttl)
	if err != nil || l.Owner != want {
		h.Errorf("RenewLease(%q, %q): %+v, %v; want one of %q", thread, owner, l, err, want)
	}
}

func (h *harness) release(thread, owner string) {
	h.Helper()
	if err := h.leaser().ReleaseLease(h.Context(), thread, owner); err != nil {
		h.Errorf("ReleaseLease(%q, %q): %v", thread, owner, err)
	}
}

// leased checks who holds a lease, according to ReadLease and, if the thread exists,
// Threads.
func (h *harness) leased(thread, want string) graph.Lease {
	h.Helper()
	l, err := h.leaser().ReadLease(h.Context(), thread)
	if err != nil || l.Owner != want {
		h.Errorf("ReadLease(%q): %+v, %v; want one of %q", thread, l, err, want)
	}
	for _, i := range h.threads(thread) {
		if i.Name == thread && (i.Lease.Owner != l.Owner || !i.Lease.Until.Equal(l.Until)) {
			h.Errorf("Threads lists %q with lease %+v; ReadLease says %+v", thread, i.Lease, l)
		}
	}
	return l
}

// expired waits until a short lease has expired.
func (h *harness) expired(thread, owner string) {
	h.Helper()
	for end := time.Now().Add(stuck / 4); ; time.Sleep(leaseShort / 5) {
		l := h.leased(thread, owner)
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
		h.append("a", 0, records("a", 0, 1)...)
		h.leased("a", "")
		h.acquire("a", "x", "", leaseLong, "x")
		h.acquire("a", "y", "", leaseLong, "x")
		h.acquire("a", "y", "z", leaseLong, "x")
		h.acquire("a", "x", "", leaseLong, "x")
		h.leased("a", "x")
	}},
	{"ThreadsAreApart", func(h *harness) {
		for _, thread := range []string{"a", "A", "a/b", "", "ü'\x00"} {
			h.acquire(thread, "of "+thread, "", leaseLong, "of "+thread)
		}
		for _, thread := range []string{"a", "A", "a/b", "", "ü'\x00"} {
			h.leased(thread, "of "+thread)
		}
	}},
	{"OverDisplacesThatOne", func(h *harness) {
		h.acquire("a", "x", "", leaseLong, "x")
		h.acquire("a", "y", "x", leaseLong, "y")
		h.renew("a", "x", leaseLong, "y")
		h.release("a", "x")
		h.leased("a", "y")
		h.acquire("a", "z", "x", leaseLong, "y")
	}},
	{"RenewOwnOnly", func(h *harness) {
		h.renew("a", "x", leaseLong, "")
		h.leased("a", "")
		h.acquire("a", "x", "", leaseShort, "x")
		h.renew("a", "y", leaseLong, "x")
		h.expired("a", "x")
		h.renew("a", "y", leaseLong, "x")
		h.renew("a", "x", leaseLong, "x")
		if l := h.leased("a", "x"); l.Expired {
			h.Errorf("a renewed lease has expired: %+v", l)
		}
		h.acquire("a", "y", "", leaseLong, "x")
	}},
	{"ReleaseOwnOnly", func(h *harness) {
		h.release("a", "x")
		h.acquire("a", "x", "", leaseLong, "x")
		h.release("a", "y")
		h.leased("a", "x")
		h.release("a", "x")
		h.leased("a", "")
		h.acquire("a", "y", "", leaseLong, "y")
	}},
	{"ExpiredMayBeTaken", func(h *harness) {
		h.append("a", 0, records("a", 0, 1)...)
		h.acquire("a", "x", "", leaseShort, "x")
		h.expired("a", "x")
		h.acquire("a", "y", "", leaseLong, "y")
		h.renew("a", "x", leaseLong, "y")
	}},
	{"GoesWithTheThread", func(h *harness) {
		h.append("a", 0, records("a", 0, 2)...)
		h.acquire("a", "x", "", leaseLong, "x")
		h.prune("a", 2)
		h.leased("a", "x")
		h.prune("a", 3)
		h.leased("a", "")
		h.renew("a", "x", leaseLong, "")
	}},
	{"LeavesRecordsAlone", func(h *harness) {
		h.acquire("a", "x", "", leaseLong, "x")
		if l := h.threads(""); len(l) > 0 {
			h.Errorf("a lease makes a thread: %+v", l)
		}
		h.append("a", 0, records("a", 0, 3)...)
		h.renew("a", "x", leaseLong, "x")
		h.release("a", "x")
		h.holds("a", records("a", 0, 3))
	}},
	{"OneOfManyWins", func(h *harness) {
		for round := range 20 {
			var won atomic.Int32
			thread := fmt.Sprint("t", round)
			h.parallel(8, func(ctx context.Context, i int) error {
				owner := fmt.Sprint("o", i)
				l, err := h.leaser().AcquireLease(ctx, thread, owner, "", leaseLong)
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
		if _, err := h.leaser().AcquireLease(ctx, "a", "x", "", leaseLong); err == nil {
			h.Error("AcquireLease with an ended context")
		}
		h.leased("a", "")
	}},
}

// durableLeases checks that a process sees what another does with leases.
func durableLeases(t *testing.T, open func() *harness) {
	a, b := open(), open()
	if a.leaser() == nil {
		return // leases are optional
	}
	a.append("t", 0, records("t", 0, 1)...)
	a.acquire("t", "a", "", leaseLong, "a")
	b.leased("t", "a")
	b.acquire("t", "b", "", leaseLong, "a")
	b.acquire("t", "b", "a", leaseLong, "b")
	a.renew("t", "a", leaseLong, "b")
	a.release("t", "a")
	b.release("t", "b")
	a.leased("t", "")
	a.acquire("t", "a", "", leaseLong, "a")
	if err := a.s.Close(); err != nil {
		t.Fatal(err)
	}
	b.leased("t", "a")
	open().leased("t", "a")
}
