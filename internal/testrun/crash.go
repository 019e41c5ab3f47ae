package testrun

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"raddle.dev/graph"
	"raddle.dev/internal/testcase"
)

// CrashResult is what happened when the run of a case was killed at each of its crash points and resumed.
type CrashResult struct {
	Case        *testcase.Case
	Points      int // at which the run was killed
	Missed      int // which no run reached again, because of the timing of nodes that work at the same time
	Differences []Difference
	Reason      string // why the case could not be checked: it fails, or two runs without a crash already differ
}

// Difference is a run that was killed, resumed, and did not end as the run without a crash.
type Difference struct {
	Point string   `json:"killed"`            // when the run was killed
	What  []string `json:"what"`              // what differs
	Cause string   `json:"culprit,omitempty"` // the effect that causes it, and what to do; empty: raddle itself is wrong
}

// HasPassed reports whether every run ended as the one without a crash.
func (r *CrashResult) HasPassed() bool { return r.Reason == "" && len(r.Differences) == 0 }

// RunCrashes runs a case once without a crash. Then it runs the case again for each append to the journal, twice: killed before the
// append, so that an effect has happened and its record is missing, and killed after it. Each killed run is resumed until it ends. It must
// have the same end, output, state and files as the run without a crash, and make no effect again whose result was recorded. jobs is how many
// runs work at the same time; 0: one for each processor.
func (r *Runner) RunCrashes(ctx context.Context, c *testcase.Case, jobs int) (*CrashResult, error) {
	out := &CrashResult{Case: c}
	reference, err := r.runKilled(ctx, c, killPoint{})
	if err != nil {
		return nil, err
	}
	if failed := reference.result.Failures; len(failed) > 0 {
		out.Reason = "the case fails without a crash: " + failed[0].What + ": " + failed[0].Message
		return out, nil
	}
	again, err := r.runKilled(ctx, c, killPoint{})
	if err != nil {
		return nil, err
	}
	if differ := reference.compare(again); len(differ) > 0 {
		out.Reason = "two runs without a crash differ: " + strings.Join(differ, "; ")
		return out, nil
	}
	points := reference.kill.listPoints()
	trials := make([]*crashTrial, len(points))
	err = forEach(ctx, len(points), jobs, func(i int) error {
		for range maxAttempts {
			run, err := r.runKilled(ctx, c, points[i])
			if err != nil {
				return err
			}
			if run.kill.isKilled() {
				trials[i] = &crashTrial{run.kill, reference.explain(run)}
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	trials = slices.DeleteFunc(trials, func(t *crashTrial) bool { return t == nil })
	out.Points, out.Missed = len(trials), len(points)-len(trials)
	out.Differences = nameCulprits(trials)
	return out, nil
}

// maxAttempts is how often a run is made to reach one crash point. What nodes save while others work may depend on their timing.
const maxAttempts = 3

// crashTrial is a run that was killed at its crash point.
type crashTrial struct {
	kill *killer
	diff *Difference // nil: it ended as the run without a crash
}

// nameCulprits returns the differences of runs, each with the effects that cause it: those that were made twice in every run that differs in the
// same way. An effect that was completed, made again and changed nothing in another run is not one of them, unless no other is left.
func nameCulprits(trials []*crashTrial) (list []Difference) {
	harmless := map[string]bool{}
	for _, t := range trials {
		if t.diff == nil {
			for path, m := range t.kill.made {
				harmless[path] = harmless[path] || m.n > 1 && m.completed
			}
		}
	}
	repeated := map[*crashTrial][]string{}
	common := map[string][]string{} // by what differs: the effects that were repeated in all runs with this difference
	for _, t := range trials {
		if t.diff == nil {
			continue
		}
		repeated[t] = t.kill.listRepeated(harmless)
		for _, what := range t.diff.What {
			if before, known := common[what]; known {
				common[what] = keepCommon(before, repeated[t])
			} else {
				common[what] = repeated[t]
			}
		}
	}
	for _, t := range trials {
		if t.diff == nil {
			continue
		}
		if len(t.kill.repeated) == 0 {
			var causes []string
			for _, what := range t.diff.What {
				causes = append(causes, common[what]...)
			}
			slices.Sort(causes)
			if causes = slices.Compact(causes); len(causes) == 0 {
				causes = repeated[t]
			}
			t.diff.Cause = t.kill.describeCauses(causes)
		}
		list = append(list, *t.diff)
	}
	return list
}

// keepCommon returns what is in both lists.
func keepCommon(x, y []string) (both []string) {
	for _, each := range x {
		if slices.Contains(y, each) {
			both = append(both, each)
		}
	}
	return both
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

// A killPoint is an append to the journal at which a run is killed: the first one with a record.
type killPoint struct {
	record recordName // zero: the run is not killed
	saved  bool       // the append has been saved
}

// killedRun is a run of a case that was killed once, and resumed.
type killedRun struct {
	result    *Result
	questions []graph.Question  // that are open at its end
	files     map[string]string // in the scratch directory, by path: their content
	kill      *killer
	scratch   string // its directory, which has another name in each run

	over bool // its end was saved before it was killed, and nothing was left to do: its result has no state
}

// runKilled runs a case, kills it at a point and resumes it.
func (r *Runner) runKilled(ctx context.Context, c *testcase.Case, at killPoint) (*killedRun, error) {
	k := &killer{at: at, seen: map[recordName]int{}, agents: map[string][]string{}, recorded: map[string]bool{}, made: map[string]*madeEffect{}}
	out := &killedRun{kill: k}
	res, err := r.RunCase(ctx, c, Setup{
		Journal: k.wrapStore,
		Adjust:  k.adjustHost,
		Drive: func(ctx context.Context, t *Trial) (res graph.Result, err error) {
			k.names = t.seen.names
			if res, err = k.drive(ctx, t); k.endDrive() {
				if k.isEmpty() {
					t.RunID = "" // its start was not saved: the caller starts it again
				}
				if out.over = k.hasEnded(); out.over {
					res, err = t.readEnd(ctx)
				} else {
					res, err = k.drive(ctx, t)
					out.over = res.Status == graph.Waiting && k.hasWaited()
				}
			}
			out.questions, out.scratch = res.Questions, t.Scratch
			out.files, _ = readTree(t.Scratch, agentsDir, "home")
			return res, err
		},
	})
	out.result = res
	return out, err
}
