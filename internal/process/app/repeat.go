package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
)

// RepeatFailed prepares to continue a run so that only the failed items of a map run again. If the run has failed at
// them, it continues. If it continued without them, a copy of it continues at the map, and the run stays as it is: what
// follows the map runs again with the whole list. said says for people what will be repeated, and where.
func (p *Process) RepeatFailed(ctx context.Context, id string, c ResumeOptions) (run *Run, said string, err error) {
	v, err := p.Runs.ReadView(ctx, id)
	if err != nil {
		return nil, "", err
	}
	if v.Status == runs.Running {
		return nil, "", failure.NewStale("wait for it, or stop it", "run %s is being worked on", v.Run)
	}
	if items, others := failedItems(v); len(items) > 0 {
		if len(others) > 0 {
			return nil, "", failure.NewStale("repeat all of it: raddle resume "+v.Run, "run %s has failed at items of a map and also at %s", v.Run, strings.Join(others, ", "))
		}
		run, err := p.ResumeRun(ctx, id, c)
		return run, fmt.Sprintf("run %s repeats %s", v.Run, wording.FormatCount(len(items), "failed item")), err
	}
	node, at, n, err := p.findFailedMap(ctx, v)
	if err != nil {
		return nil, "", err
	}
	if node == "" {
		next := "see what happened: raddle runs show " + v.Run
		if !v.Final {
			next = "continue it: raddle resume " + v.Run
		}
		return nil, "", failure.NewStale(next, "run %s has no failed items of a map that could be repeated", v.Run)
	}
	run, err = p.repeatInCopy(ctx, runs.Point{Run: v.Run, At: at}, node, c)
	if err != nil {
		return nil, "", err
	}
	return run, fmt.Sprintf("run %s is a copy of %s@%d, and repeats %s of '%s'; %s stays as it is", run.ID, v.Run, at, wording.FormatCount(n, "failed item"), node, v.Run), nil
}

// failedItems returns the items of maps at which a run has failed, and the other nodes at which it has.
func failedItems(v *runs.View) (items, others []string) {
	if v.Snapshot.Status != graph.Failed {
		return nil, nil
	}
	moments := v.Moments()
	last := len(moments) - 1
	if last < 0 || moments[last].Kind != journal.KindEnd {
		return nil, nil
	}
	for _, node := range moments[last].FailedNodes {
		if strings.HasSuffix(node, "]") {
			items = append(items, node)
		}
	}
	for _, node := range moments[last].FailedNodes {
		above := func(item string) bool { return strings.HasPrefix(item, node+"/") }
		if !strings.HasSuffix(node, "]") && !slices.ContainsFunc(items, above) {
			others = append(others, node)
		}
	}
	return items, others
}

// findFailedMap returns the map of a run that has most recently continued without n items, and the record of its step; "":
// there is none.
func (p *Process) findFailedMap(ctx context.Context, v *runs.View) (node string, at int64, n int, err error) {
	maps := map[string]bool{}
	for _, f := range v.Failures() {
		if above, item, ok := strings.Cut(f.Node, "/"); ok && strings.HasSuffix(item, "]") && !strings.Contains(item, "/") {
			maps[above] = true
		}
	}
	moments := v.Moments()
	for _, m := range slices.Backward(moments) {
		if m.Kind != journal.KindStep || m.Path != "" {
			continue
		}
		for _, node := range m.From {
			if !maps[node] {
				continue
			}
			delete(maps, node) // an earlier visit does not count
			d, err := p.Runs.ReadRunDetail(ctx, runs.Point{Run: v.Run, At: m.Entry.Seq}.String())
			if err != nil {
				return "", 0, 0, err
			}
			if n := flow.CountFailedItems(d.Snapshot.Values, node); n > 0 {
				return node, m.Entry.Seq, n, nil
			}
		}
	}
	return "", 0, 0, nil
}

// repeatInCopy makes a copy of a run at the step of a map, in which the map repeats its failed items.
func (p *Process) repeatInCopy(ctx context.Context, from runs.Point, node string, c ResumeOptions) (*Run, error) {
	id, _, err := p.Runs.ForkRun(ctx, from.String(), runs.ForkChanges{})
	if err != nil {
		return nil, err
	}
	run, err := p.ResumeRun(ctx, id, c)
	if err == nil {
		if err = run.repeatItems(ctx, node); err == nil {
			return run, nil
		}
		run.Close()
		err = failure.NewStale("repeat all items: raddle runs fork "+from.String()+" --resume", "%v", err)
	}
	_, removeErr := p.Runs.RemoveRun(ctx, id)
	return nil, errors.Join(err, removeErr)
}

// repeatItems records that a map is to repeat its failed items.
func (r *Run) repeatItems(ctx context.Context, node string) error {
	s, err := r.runner.State(ctx, r.Thread, 0)
	if err != nil {
		return err
	}
	snap, err := history.Inspect(ctx, r.runner.Store, r.Thread, 0)
	if err != nil {
		return err
	}
	writes, next, err := r.Agent.RepeatFailedItems(node, s, snap.Next)
	if err != nil {
		return err
	}
	_, err = r.runner.EditNext(ctx, r.Thread, next, writes...)
	return err
}

// ResumeAtCause is [Process.ResumeRun], but a run that has failed for want of a value continues at the node that was to
// write it and had failed: that node runs again, with the state before it, and so does what follows it. said says so for
// people; "": the run continues where it has stopped.
func (p *Process) ResumeAtCause(ctx context.Context, id string, c ResumeOptions) (run *Run, said string, err error) {
	run, err = p.ResumeRun(ctx, id, c)
	if err != nil || run.status != graph.Failed || run.Agent.File == nil {
		return run, "", err
	}
	v, err := p.Runs.ReadView(ctx, run.ID)
	if err == nil {
		cause := v.FindCause()
		if cause == nil || run.Agent.File.Node(cause.Node) == nil {
			return run, "", nil
		}
		said = fmt.Sprintf("%s: %s runs again", cause, cause.Node)
		err = run.goBack(ctx, cause.From)
	}
	if err != nil {
		run.Close()
		return nil, "", err
	}
	return run, said, nil
}

// goBack records that the run continues with the nodes that ran after a checkpoint, and with the state that it had there.
func (r *Run) goBack(ctx context.Context, at int64) error {
	snap, err := history.Inspect(ctx, r.runner.Store, r.Thread, at)
	if err != nil {
		return err
	}
	before, err := r.runner.State(ctx, r.Thread, at)
	if err != nil {
		return err
	}
	now, err := r.runner.State(ctx, r.Thread, 0)
	if err != nil {
		return err
	}
	_, err = r.runner.EditNext(ctx, r.Thread, snap.Next, r.Agent.RestoreState(before, now)...)
	return err
}
