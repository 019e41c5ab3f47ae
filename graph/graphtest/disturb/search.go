package disturb

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"raddle.dev/graph/journal"
)

// An Explorer runs something under schedules. E is how a run ends.
type Explorer[E any] struct {
	// Run runs it once, from its start to its end, and calls Trial.ReleaseAll before it returns. An error ends the
	// search.
	Run func(ctx context.Context, t *Trial) (E, error)

	// Compare returns in words how a run that was disturbed has ended otherwise than one that was not.
	Compare func(undisturbed, disturbed E) []string

	// Around calls run, in the surroundings of one run under a schedule. It may be nil.
	Around func(s Schedule, run func())

	// Jobs is how many runs work at the same time. 0: one for each processor.
	Jobs int

	reference E
	runs      atomic.Int64
}

// A Found is a run under a schedule.
type Found[E any] struct {
	// Trial is the run, and End its end.
	Trial *Trial
	End   E

	// What says in words what differs from the undisturbed run, and what must not happen. It is empty if all is well.
	What []string
}

// RunCount returns how many runs there were.
func (s *Explorer[E]) RunCount() int { return int(s.runs.Load()) }

// maxAttempts is how often a run is made to reach one schedule. What parallel goroutines store may depend on their
// timing.
const maxAttempts = 3

// RunUndisturbed runs twice without a disturbance. The first run is what others are compared with; What of the second
// is how two such runs differ.
func (s *Explorer[E]) RunUndisturbed(ctx context.Context) (first, second *Found[E], err error) {
	if first, err = s.runOnce(ctx, nil); err != nil {
		return nil, nil, err
	}
	s.reference = first.End
	first.What = first.Trial.Faults()
	second, err = s.runAndCompare(ctx, nil)
	return first, second, err
}

// TrySchedule runs under a schedule. Without an error, it returns nil if no run has reached the schedule.
func (s *Explorer[E]) TrySchedule(ctx context.Context, schedule Schedule) (*Found[E], error) {
	for range maxAttempts {
		f, err := s.runAndCompare(ctx, schedule)
		if err != nil || f.Trial.HasFired() {
			return f, err
		}
	}
	return nil, nil
}

// runAndCompare runs once, and compares.
func (s *Explorer[E]) runAndCompare(ctx context.Context, schedule Schedule) (*Found[E], error) {
	f, err := s.runOnce(ctx, schedule)
	if err == nil {
		f.What = append(s.Compare(s.reference, f.End), f.Trial.Faults()...)
	}
	return f, err
}

// runOnce runs once.
func (s *Explorer[E]) runOnce(ctx context.Context, schedule Schedule) (*Found[E], error) {
	s.runs.Add(1)
	f := &Found[E]{}
	var err error
	run := func() { // what the trial waits with belongs to the surroundings
		f.Trial = newTrial(schedule)
		f.End, err = s.Run(ctx, f.Trial)
	}
	if s.Around != nil {
		s.Around(schedule, run)
	} else {
		run()
	}
	return f, err
}

// TryAll runs under each of these schedules. Those that no run has reached are nil.
func (s *Explorer[E]) TryAll(ctx context.Context, schedules []Schedule) ([]*Found[E], error) {
	list := make([]*Found[E], len(schedules))
	err := forEach(ctx, len(schedules), s.Jobs, func(i int) (err error) {
		list[i], err = s.TrySchedule(ctx, schedules[i])
		return err
	})
	return list, err
}

// ShrinkSchedule returns the run under the smallest schedule that it finds in that of f and that still makes a
// difference.
func (s *Explorer[E]) ShrinkSchedule(ctx context.Context, f *Found[E]) (*Found[E], error) {
	for again := true; again; {
		again = false
		for _, smaller := range f.Trial.Schedule.listSmaller() {
			less, err := s.TrySchedule(ctx, smaller)
			if err != nil {
				return nil, err
			}
			if less != nil && len(less.What) > 0 {
				f = less
				again = true
				break
			}
		}
	}
	return f, nil
}

// listSmaller returns the schedules with one disturbance less, and those with a simpler order.
func (s Schedule) listSmaller() (list []Schedule) {
	for i, d := range s {
		if len(s) > 1 {
			list = append(list, slices.Delete(slices.Clone(s), i, i+1))
		}
		if d.Kind == Order && d.At != Reversed {
			simple := slices.Clone(s)
			simple[i].At = Reversed
			list = append(list, simple)
		}
	}
	return list
}

// perRecord are the kinds that happen at records, in the order in which they are tried.
var perRecord = []Kind{CrashBefore, CrashAfter, FailBefore, FailAfter, AnswerLost, Takeover, Fork, Pause, Busy, Away, LeaseLost}

// orders is the number of orders that are tried, after the reversed one.
const orders = 4

// ListSingles returns the schedules with one disturbance of these kinds that happen to a run with these milestones.
func ListSingles(milestones []Milestone, kinds []Kind) (list []Schedule) {
	add := func(k Kind, at string) {
		if slices.Contains(kinds, k) {
			list = append(list, Schedule{{k, at}})
		}
	}
	add(Poison, "")
	add(Order, Reversed)
	for n := range orders {
		add(Order, strconv.Itoa(n+1))
	}
	for i, m := range milestones {
		switch {
		case m.IsOfLease():
			for _, k := range []Kind{FailBefore, FailAfter, AnswerLost, Busy, Away} {
				add(k, m.Label)
			}
		case m.Kind == 0:
			if !isRecordedNext(milestones[i+1:]) { // else it is the same as CrashBefore of its record
				add(CrashMade, m.Label)
			}
		case m.First:
			for _, k := range perRecord {
				if k == Pause && m.Kind != journal.KindStart && m.Kind != journal.KindStep || k == Takeover && m.Kind == journal.KindStart {
					continue // a pause waits for the end of its step, and a run that is not stored cannot be taken over
				}
				add(k, m.Label)
			}
		case m.Kind == journal.KindEffect: // stored together with others: they may be stored otherwise in the next run
			add(CrashBefore, m.Label)
			add(CrashAfter, m.Label)
		}
	}
	return list
}

// isRecordedNext reports whether the next that happens is that the result of an effect is stored, alone.
func isRecordedNext(rest []Milestone) bool {
	return len(rest) > 0 && rest[0].Kind == journal.KindEffect && rest[0].First && (len(rest) == 1 || rest[1].Kind == 0 || rest[1].First)
}

// CombineSingles returns at most n schedules of the disturbances of single ones: first two kills at each record, then
// two or three disturbances at random, half of them at one record. A run that is resumed reaches the record again.
func CombineSingles(singles []Schedule, n int, rnd *rand.Rand) (list []Schedule) {
	places := map[string][]Disturbance{}
	for _, s := range singles {
		places[s[0].At] = append(places[s[0].At], s[0])
		if s[0].Kind == CrashBefore && len(list) < n {
			list = append(list, Schedule{s[0], s[0]})
		}
	}
	for len(list) < min(n, len(singles)*len(singles)) {
		s := Schedule{singles[rnd.IntN(len(singles))][0]}
		for range 1 + rnd.IntN(2) {
			d := singles[rnd.IntN(len(singles))][0]
			if same := places[s[0].At]; rnd.IntN(2) == 0 {
				d = same[rnd.IntN(len(same))]
			}
			if _, twice := s.FindKind(d.Kind); !twice || d.Kind == CrashBefore || d.Kind == CrashAfter {
				s = append(s, d)
			}
		}
		list = append(list, s)
	}
	return list
}

// forEach calls do for 0 to n-1, as many at the same time as jobs says, and returns the first error.
func forEach(ctx context.Context, n, jobs int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, cmp.Or(jobs, runtime.GOMAXPROCS(0))) {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
