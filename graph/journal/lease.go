package journal

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"raddle.dev/graph/internal/process"
)

// Leaser may be implemented by a Store, so that a running drive can be detected: every
// drive holds the lease of its thread, and a second one gets a *graph.BusyError. Without a
// Leaser only the claim record keeps two drives apart.
//
// Leases are stored outside the journal: renewing one appends nothing and need not reach the disk before the call
// returns. The store's clock counts. Owners are opaque to a store. A drive looks at its lease once a second, and ends
// when it has another owner; so a program that ends or changes a run, or drives it next, first takes the lease over. A
// lease may be held on a thread that does not exist yet; a Prune that deletes a thread deletes its lease too.
type Leaser interface {
	// AcquireLease gives the lease of a thread to owner, until ttl from now, if the
	// lease is free, if it has expired, or if owner or over holds it ("" for over: no
	// other owner). It returns the lease after the call: with another Owner, the call
	// has changed nothing.
	AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (Lease, error)

	// RenewLease extends the lease of owner until ttl from now, even if it has expired.
	// It returns the lease after the call: with another Owner, or none, owner has lost
	// it.
	RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (Lease, error)

	// ReleaseLease ends the lease of owner. If owner does not hold it, nothing happens.
	ReleaseLease(ctx context.Context, thread, owner string) error

	// ReadLease returns the lease of a thread; the zero Lease if it is free.
	ReadLease(ctx context.Context, thread string) (Lease, error)
}

// Lease says which drive works on a thread, and until when unless it is renewed.
type Lease struct {
	// Owner identifies the drive, which has made it; "": the lease is free.
	Owner string

	// Until is when the lease ends unless it is renewed, by the store's clock.
	Until time.Time

	// Expired reports whether Until has passed.
	Expired bool
}

// IsLive reports whether the drive that holds the lease may still run: the lease has not
// expired, and its process is not known to have ended. Only processes of this host can
// be known to have ended.
func (l Lease) IsLive() bool { return l.Owner != "" && !l.Expired && !process.HasOwnerEnded(l.Owner) }

// Holder returns the process that holds the lease: the name of its host and its number.
// ok is false if the owner was not made by this package.
func (l Lease) Holder() (host string, pid int, ok bool) {
	p, ok := process.ParseOwner(l.Owner)
	return p.Host, p.PID, ok
}

// FindProcess returns the number of the process that holds the lease. ok is false unless it is known to be a process of
// this host that has not ended.
func (l Lease) FindProcess() (pid int, ok bool) { return process.FindOwner(l.Owner) }

// String says which process holds the lease, for people.
func (l Lease) String() string {
	host, pid, ok := l.Holder()
	if !ok {
		return "another process"
	}
	if name, _ := os.Hostname(); name == host {
		return "process " + strconv.Itoa(pid)
	}
	return fmt.Sprintf("process %d on host %s", pid, host)
}
