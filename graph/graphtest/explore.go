package graphtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
)

// A Subject is what Explore runs: a graph, what it is given, and what must be true afterwards. A function that makes
// Subjects makes what the graph acts on with it, such as a ledger in memory: that outlives the processes of one run,
// and no other run sees it.
type Subject struct {
	// Runner makes the runner of one process, with a graph of its own: what a graph keeps in memory ends with its
	// process. Explore sets Store, Executor and Debug, and IDs if they are nil.
	Runner func() (*graph.Runner, error)

	// Input starts the run. Explore sets Thread, Run, Pause and Topics.
	Input graph.Input

	// Answer answers a question. If nil, the answer is the default of the question, its first option, or a value of its
	// type. Questions about effects in doubt are answered with "retry".
	Answer func(q graph.Question) any

	// Check looks at the end of a run, and at what the graph acts on. It is not called for a run that was forked: the
	// fork makes effects again, under other keys. It may be nil: the ends of all runs are compared in any case.
	Check func(o EndOfRun) error
}

// An EndOfRun is how a run has ended, after all its drives.
type EndOfRun struct {
	graph.Result

	// Failure is the error of the last drive. It is nil if the end was read from the journal.
	Failure error

	// InDoubt are the effects for which it was unknown, at the end of some drive, whether they had happened.
	InDoubt []string
}

// ExploreOptions are those of Explore. The zero value is good for most graphs.
type ExploreOptions struct {
	// Kinds are the disturbances that are tried. If nil, all of disturb.Kinds.
	Kinds []disturb.Kind

	// Runs is the largest number of runs. If 0, it is 2,000.
	Runs int

	// Seed decides which schedules are tried if there are more, and which are combined.
	Seed uint64

	// Ignore are keys of the state that may differ from run to run.
	Ignore []string

	// Replay is the one schedule that is tried, as Explore has printed it. If empty, it is the environment variable
	// GRAPHTEST_REPLAY, and if that is empty too, all are tried.
	Replay string
}

// replayVar is the environment variable of ExploreOptions.Replay.
const replayVar = "GRAPHTEST_REPLAY"

// defaultRuns is the number of runs if ExploreOptions.Runs is 0.
const defaultRuns = 2000

// minCombined is the least number of schedules with several disturbances.
const minCombined = 200

// Explore runs a graph again and again, each time disturbed in another way, and compares each run with one that nothing
// has disturbed. The process is killed before and after each record; each write fails in turn, before or after it is
// stored, or its store is busy or away; another drive takes the run over; the lease is lost; the run is paused for a
// day; the thread is forked; parallel tasks come in other orders; every function reads copies that it must not change:
// see disturb.Kinds. Then some of these are combined.
//
// A run that was disturbed must have the same end, state and questions, and Check must accept it. No effect whose
// result was stored may be made again, no drive may make an effect after the next one has, and nothing may be in doubt
// unless a drive was cut off in an effect. Only an effect that is in doubt under DoubtSkip or DoubtFail may change the
// end.
//
// If a schedule makes a difference, the test fails, and the smallest one is printed, with a text that replays it.
// newSubject is called for each run. If t is a *testing.T, each run is in a bubble of testing/synctest: time passes at
// once, and functions of the subject may not use what was made outside of newSubject to wait. Otherwise time is real,
// and some disturbances take seconds.
func Explore(t testing.TB, newSubject func() Subject, o ExploreOptions) {
	t.Helper()
	x := newExplorer(newSubject, o)
	if tt, ok := t.(*testing.T); ok {
		x.useBubbles(tt)
	}
	r, err := x.exploreAll()
	if err != nil {
		t.Fatalf("explore: %v", err)
	}
	if r.smallest == nil {
		t.Logf("explored: %d runs, %d schedules of disturbances, no difference", x.search.RunCount(), r.tried)
		return
	}
	t.Error(r.describeFound(t.Name()))
}

// An explorer explores one subject.
type explorer struct {
	options ExploreOptions
	search  *disturb.Explorer[*exploredEnd]
	bubble  bool // time passes at once
}

func newExplorer(newSubject func() Subject, o ExploreOptions) *explorer {
	x := &explorer{options: o}
	x.search = &disturb.Explorer[*exploredEnd]{Jobs: 1, Compare: x.compareEnds,
		Run: func(ctx context.Context, t *disturb.Trial) (*exploredEnd, error) {
			return (&exploredRun{explorer: x, subject: newSubject(), trial: t}).runSubject(ctx)
		}}
	return x
}

// useBubbles makes each run in a bubble of its own.
func (x *explorer) useBubbles(t *testing.T) {
	x.bubble = true
	x.search.Around = func(s disturb.Schedule, run func()) {
		says := func(what any) string { return fmt.Sprintf("graphtest.Explore: %s='%s': %v", replayVar, s, what) }
		stuck := time.AfterFunc(exploredTime, func() {
			panic(says(fmt.Sprintf("the run does not end in %v: something waits that is not in its bubble, such as a mutex, a connection or a channel from outside", exploredTime)))
		})
		defer stuck.Stop()
		defer func() {
			if p := recover(); p != nil {
				panic(says(p))
			}
		}()
		synctest.Test(t, func(*testing.T) { run() })
	}
}

// explored is what an explorer has found.
type explored struct {
	tried    int
	failed   []*disturb.Found[*exploredEnd]
	smallest *disturb.Found[*exploredEnd] // nil: nothing differs
}

// exploreAll runs everything. The error says why the subject cannot be explored.
func (x *explorer) exploreAll() (*explored, error) {
	ctx := context.Background()
	first, second, err := x.search.RunUndisturbed(ctx)
	if err != nil {
		return nil, err
	}
	if first.End.check != nil {
		return nil, fmt.Errorf("the check fails without a disturbance: %w", first.End.check)
	}
	if what := append(first.What, second.What...); len(what) > 0 {
		return nil, fmt.Errorf("two runs differ that nothing has disturbed: %s", strings.Join(what, "; "))
	}
	if text := cmp.Or(x.options.Replay, os.Getenv(replayVar)); text != "" {
		return x.replaySchedule(ctx, text)
	}
	kinds := x.options.Kinds
	runs := cmp.Or(x.options.Runs, defaultRuns)
	if kinds == nil {
		kinds = disturb.Kinds
	}
	rnd := rand.New(rand.NewPCG(x.options.Seed, 0))
	milestones := first.Trial.ListMilestones()
	if !x.bubble { // a lease that is not released lasts for 15 seconds
		milestones = slices.DeleteFunc(milestones, disturb.Milestone.IsOfLease)
	}
	singles := disturb.ListSingles(milestones, kinds)
	r := &explored{}
	if err := x.tryAll(ctx, r, chooseSome(singles, runs, rnd)); err != nil || len(r.failed) > 0 {
		return r, err
	}
	more := disturb.CombineSingles(singles, min(max(0, runs-len(singles)), max(minCombined, 2*len(singles))), rnd)
	return r, x.tryAll(ctx, r, more)
}

// replaySchedule tries one schedule.
func (x *explorer) replaySchedule(ctx context.Context, text string) (*explored, error) {
	schedule, err := disturb.ParseSchedule(text)
	if err != nil {
		return nil, err
	}
	f, err := x.search.TrySchedule(ctx, schedule)
	if err == nil && f == nil {
		err = fmt.Errorf("no run has reached the schedule %s: has the graph changed?", schedule)
	}
	if err != nil {
		return nil, err
	}
	r := &explored{tried: 1}
	if len(f.What) > 0 {
		r.failed = append(r.failed, f)
		r.smallest = f
	}
	return r, nil
}

// tryAll tries schedules, and shrinks the first that makes a difference.
func (x *explorer) tryAll(ctx context.Context, r *explored, schedules []disturb.Schedule) error {
	list, err := x.search.TryAll(ctx, schedules)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f != nil {
			r.tried++
		}
		if f != nil && len(f.What) > 0 {
			r.failed = append(r.failed, f)
		}
	}
	if len(r.failed) > 0 {
		r.smallest, err = x.search.ShrinkSchedule(ctx, r.failed[0])
	}
	return err
}

// chooseSome returns at most n of the schedules, in their order.
func chooseSome(list []disturb.Schedule, n int, rnd *rand.Rand) []disturb.Schedule {
	if len(list) <= n {
		return list
	}
	places := rnd.Perm(len(list))[:n]
	slices.Sort(places)
	chosen := make([]disturb.Schedule, n)
	for i, at := range places {
		chosen[i] = list[at]
	}
	return chosen
}

// listKinds returns the kinds of the disturbances that make a difference alone, in the order of disturb.Kinds.
func (r *explored) listKinds() (list []disturb.Kind) {
	for _, k := range disturb.Kinds {
		if slices.ContainsFunc(r.failed, func(f *disturb.Found[*exploredEnd]) bool {
			return len(f.Trial.Schedule) == 1 && f.Trial.Schedule[0].Kind == k
		}) {
			list = append(list, k)
		}
	}
	return list
}

// describeFound says what was found, and how to run it again.
func (r *explored) describeFound(test string) string {
	var b strings.Builder
	schedule := r.smallest.Trial.Schedule
	fmt.Fprintf(&b, "explore: %d of %d schedules make a difference; the smallest: %s\n", len(r.failed), r.tried, schedule)
	for _, d := range schedule {
		fmt.Fprintf(&b, "  %s\n", d.InWords())
	}
	for _, what := range r.smallest.What {
		fmt.Fprintf(&b, "  %s\n", what)
	}
	if kinds := r.listKinds(); len(kinds) > 1 {
		fmt.Fprintf(&b, "found by: %v\n", kinds)
	}
	fmt.Fprintf(&b, "again: %s='%s' go test -run '%s'", replayVar, schedule, testPattern(test))
	return b.String()
}

// testPattern returns the pattern that selects one test.
func testPattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// errEndless is the cause of the end of a run that does not end by itself.
var errEndless = errors.New("graphtest: the run does not end")
