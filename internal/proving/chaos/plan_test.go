package chaos

import (
	"slices"
	"testing"
	"time"
)

func TestPlanComesFromItsSeed(t *testing.T) {
	o := PlanOptions{Seed: 7, Length: 2 * time.Minute, Servers: 3, Cuts: true}
	first := NewPlan(o)
	if !slices.Equal(first, NewPlan(o)) {
		t.Error("two plans of one seed differ")
	}
	o.Seed = 8
	if slices.Equal(first, NewPlan(o)) {
		t.Error("the plans of two seeds are the same")
	}
	f := first[0]
	if want := (Fault{At: 952 * time.Millisecond, Kind: Kill, For: 462 * time.Millisecond}); f != want {
		t.Errorf("the plan of seed 7 begins with %v, want %v: a seed must stay the same plan", f, want)
	}
}

// TestPlanHurtsEachServerAloneAndInTime looks at the plans of many seeds.
func TestPlanHurtsEachServerAloneAndInTime(t *testing.T) {
	kinds := map[FaultKind]int{}
	for seed := range uint64(200) {
		o := PlanOptions{Seed: seed, Length: time.Minute, Servers: 1 + int(seed%3), Cuts: seed%2 == 0}
		over := make([]time.Duration, o.Servers)
		last := time.Duration(0)
		plan := NewPlan(o)
		if len(plan) == 0 {
			t.Errorf("seed %d: no fault in a minute", seed)
		}
		for _, f := range plan {
			kinds[f.Kind]++
			if f.At < last || f.At < over[f.Server] || f.At+f.For > o.Length {
				t.Errorf("seed %d: %v comes before %v or %v, or lasts beyond the end", seed, f, last, over[f.Server])
			}
			last = f.At
			over[f.Server] = f.At + f.For
			if f.Kind == Freeze && f.For <= lease {
				t.Errorf("seed %d: %v is not longer than a lease", seed, f)
			}
			if f.Kind == Cut && !o.Cuts {
				t.Errorf("seed %d: %v, and there is no connection to cut", seed, f)
			}
		}
	}
	for _, k := range []FaultKind{Kill, Restart, Freeze, Cut} {
		if kinds[k] < 50 {
			t.Errorf("%d faults %s in 200 plans", kinds[k], k)
		}
	}
}

// TestShortPlanHasNoFreeze looks at plans that are shorter than a lease.
func TestShortPlanHasNoFreeze(t *testing.T) {
	for seed := range uint64(100) {
		for _, f := range NewPlan(PlanOptions{Seed: seed, Length: 10 * time.Second, Servers: 2}) {
			if f.Kind != Kill && f.Kind != Restart {
				t.Errorf("seed %d: %v", seed, f)
			}
		}
	}
}
