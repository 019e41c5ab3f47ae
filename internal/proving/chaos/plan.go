package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// FaultKind is what is done to a server.
type FaultKind string

// The kinds of faults.
const (
	Kill    FaultKind = "kill"    // SIGKILL, and a new server after a pause
	Restart FaultKind = "restart" // SIGTERM, and a new server when it has ended
	Freeze  FaultKind = "freeze"  // SIGSTOP, and SIGCONT after a pause that is longer than a lease
	Cut     FaultKind = "cut"     // the connections to the database end, and new ones are refused for a while
)

// Fault is one act of a plan.
type Fault struct {
	At     time.Duration // since the start of the plan
	Kind   FaultKind
	Server int           // from 0
	For    time.Duration // how long the server is away, frozen or cut off; 0 for a restart
}

// lease is for how long a drive and a job belong to a process that does not renew them.
const lease = 15 * time.Second

// Pauses between faults, and lengths of faults.
const (
	leastPause  = 1500 * time.Millisecond
	mostPause   = 5 * time.Second
	leastFreeze = lease + 2*time.Second
	mostFreeze  = lease + 7*time.Second
	mostKill    = 4 * time.Second
	mostCut     = 12 * time.Second
)

// PlanOptions say what a plan may do.
type PlanOptions struct {
	Seed    uint64
	Length  time.Duration // all faults are over then
	Servers int           // at least 1
	Cuts    bool          // the servers reach their store through a connection that can be cut
}

// NewPlan returns the faults of a plan in their order. The same options make the same plan. A server has one fault at a
// time, and works for a while between two. What would last beyond the end is a kill instead, so that a freeze is planned
// only where it is longer than a lease.
func NewPlan(o PlanOptions) (plan []Fault) {
	rnd := rand.New(rand.NewPCG(o.Seed, 0))
	free := make([]time.Duration, o.Servers) // when each server works again
	for at := spread(rnd, leastPause/2, leastPause); at < o.Length; at += spread(rnd, leastPause, mostPause) {
		f := Fault{At: at}
		f.Kind, f.For = chooseKind(rnd, o.Cuts)
		if at+f.For > o.Length {
			f.Kind = Kill
			f.For = min(f.For, o.Length-at) % mostKill
		}
		var idle []int
		for n, from := range free {
			if from <= at {
				idle = append(idle, n)
			}
		}
		if len(idle) == 0 {
			continue
		}
		f.Server = idle[rnd.IntN(len(idle))]
		free[f.Server] = at + f.For + leastPause
		plan = append(plan, f)
	}
	return plan
}

// chooseKind returns what is done, and how long it lasts.
func chooseKind(rnd *rand.Rand, cuts bool) (FaultKind, time.Duration) {
	switch n := rnd.IntN(10); {
	case n < 4:
		return Kill, spread(rnd, 0, mostKill)
	case n < 6:
		return Restart, 0
	case n < 8 || !cuts:
		return Freeze, spread(rnd, leastFreeze, mostFreeze)
	default:
		return Cut, spread(rnd, time.Second, mostCut)
	}
}

// spread returns a length of time from least to below most, in whole milliseconds.
func spread(rnd *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rnd.Int64N(int64(most-least)))).Truncate(time.Millisecond)
}

// describe says what happens, in the words of the line about it.
func (f Fault) describe() string {
	seconds := f.For.Round(100 * time.Millisecond).Seconds()
	switch f.Kind {
	case Kill:
		return fmt.Sprintf("kill -9, a new server after %.1f s", seconds)
	case Freeze:
		return fmt.Sprintf("frozen for %.1f s", seconds)
	case Cut:
		return fmt.Sprintf("cut off from the store for %.1f s", seconds)
	}
	return "restarted with SIGTERM"
}
