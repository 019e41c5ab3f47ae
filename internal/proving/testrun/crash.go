package testrun

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/internal/proving/testcase"
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
	Point string   `json:"killed"` // when the run was killed
	What  []string `json:"what"`   // what differs
	// Cause is the effect that causes it, and what to do; empty: raddle itself is wrong.
	Cause string `json:"culprit,omitempty"`
}

// HasPassed reports whether every run ended as the one without a crash.
func (r *CrashResult) HasPassed() bool { return r.Reason == "" && len(r.Differences) == 0 }

// RunCrashes runs a case once without a crash. Then it runs the case again for each append to the journal, twice:
// killed before the append, so that an effect has happened and its record is missing, and killed after it. Each killed
// run is resumed until it ends. It must have the same end, output, state and files as the run without a crash, and make
// no effect again whose result was recorded. jobs is how many runs work at the same time; 0: one for each processor.
func (r *Runner) RunCrashes(ctx context.Context, c *testcase.Case, jobs int) (*CrashResult, error) {
	out := &CrashResult{Case: c}
	search := &disturb.Explorer[*killedRun]{Jobs: jobs, Compare: (*killedRun).explain,
		Run: func(ctx context.Context, t *disturb.Trial) (*killedRun, error) { return r.runKilled(ctx, c, t) }}
	reference, again, err := search.RunUndisturbed(ctx)
	if err != nil {
		return nil, err
	}
	if failed := reference.End.result.Failures; len(failed) > 0 {
		out.Reason = "the case fails without a crash: " + failed[0].What + ": " + failed[0].Message
		return out, nil
	}
	if len(again.What) > 0 {
		out.Reason = "two runs without a crash differ: " + strings.Join(again.What, "; ")
		return out, nil
	}
	points := disturb.ListSingles(reference.Trial.ListMilestones(), []disturb.Kind{disturb.CrashBefore, disturb.CrashAfter})
	trials, err := search.TryAll(ctx, points)
	if err != nil {
		return nil, err
	}
	trials = slices.DeleteFunc(trials, func(t *crashTrial) bool { return t == nil })
	out.Points = len(trials)
	out.Missed = len(points) - len(trials)
	out.Differences = nameCulprits(trials)
	return out, nil
}

// crashTrial is a run that was killed at its crash point.
type crashTrial = disturb.Found[*killedRun]

// nameCulprits returns the differences of runs, each with the effects that cause it: those that were made twice in
// every run that differs in the same way. An effect that was completed, made again and changed nothing in another run
// is not one of them, unless no other is left.
func nameCulprits(trials []*crashTrial) (list []Difference) {
	harmless := map[string]bool{}
	for _, t := range trials {
		if len(t.What) == 0 {
			for path, m := range t.End.kill.made {
				harmless[path] = harmless[path] || m.n > 1 && m.completed
			}
		}
	}
	repeated := map[*crashTrial][]string{}
	common := map[string][]string{} // by what differs: the effects that were repeated in all runs with this difference
	for _, t := range trials {
		if len(t.What) == 0 {
			continue
		}
		repeated[t] = t.End.kill.listRepeated(harmless)
		for _, what := range t.What {
			if before, known := common[what]; known {
				common[what] = keepCommon(before, repeated[t])
			} else {
				common[what] = repeated[t]
			}
		}
	}
	for _, t := range trials {
		if len(t.What) == 0 {
			continue
		}
		d := Difference{Point: describePoint(t.Trial), What: t.What}
		if len(t.End.kill.repeated) == 0 {
			var causes []string
			for _, what := range t.What {
				causes = append(causes, common[what]...)
			}
			slices.Sort(causes)
			if causes = slices.Compact(causes); len(causes) == 0 {
				causes = repeated[t]
			}
			d.Cause = t.End.kill.describeCauses(causes)
		}
		list = append(list, d)
	}
	return list
}

// describePoint returns when a run was killed.
func describePoint(t *disturb.Trial) string {
	entries, saved := t.LastAppend()
	var parts []string
	for _, e := range entries {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("record %d (%s %s%s)", e.Seq, e.Kind, e.Path, e.What)))
	}
	if saved {
		return "after " + strings.Join(parts, ", ")
	}
	return "before " + strings.Join(parts, ", ")
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

// killedRun is a run of a case that was killed once, and resumed.
type killedRun struct {
	result    *Result
	questions []graph.Question  // that are open at its end
	files     map[string]string // in the scratch directory, by path: their content
	kill      *killer
	scratch   string // its directory, which has another name in each run

	over bool // its end was saved before it was killed, and nothing was left to do: its result has no state
}

// runKilled runs a case, which its trial kills at a point, and resumes it.
func (r *Runner) runKilled(ctx context.Context, c *testcase.Case, trial *disturb.Trial) (*killedRun, error) {
	k := newKiller(trial)
	out := &killedRun{kill: k}
	res, err := r.RunCase(ctx, c, Setup{
		Journal: k.wrapStore,
		Adjust:  k.adjustHost,
		Drive: func(ctx context.Context, t *Trial) (res graph.Result, err error) {
			k.names = t.seen.names
			if res, err = k.drive(ctx, t); k.isKilled() {
				if trial.IsEmpty() {
					t.RunID = "" // its start was not saved: the caller starts it again
				}
				if out.over = trial.HasEnded(); out.over {
					res, err = t.readEnd(ctx)
				} else {
					res, err = k.drive(ctx, t)
					out.over = res.Status == graph.Waiting && trial.HasWaited()
				}
			}
			out.questions = res.Questions
			out.scratch = t.Scratch
			out.files, _ = readTree(t.Scratch, agentsDir, "home")
			return res, err
		},
	})
	out.result = res
	return out, err
}
