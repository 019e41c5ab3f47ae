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
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/changed"
	"raddle.dev/internal/storage/runs"
)

// The verdicts about how a run continues with the files of its agent as they are now.
const (
	VerdictSame     = "unchanged"     // nothing has changed since it started
	VerdictCovered  = "migration"     // the migrations of the agent cover what has changed
	VerdictMigrated = "migrated"      // they have been done
	VerdictAccept   = "accept"        // it continues with --accept-changes
	VerdictRefused  = "needs lines"   // it needs lines in the agent's migrations
	VerdictBroken   = "cannot be run" // the agent cannot be loaded, or the run cannot be read
)

// An ExaminedRun says how a run continues with the files of its agent as they are now.
type ExaminedRun struct {
	Run     string         `json:"run"`
	Agent   string         `json:"agent"`
	Status  string         `json:"status"`
	Verdict string         `json:"verdict"`
	Changes []graph.Change `json:"changes"`         // keys, nodes, edges, prompts, schemas, models and the like
	Files   []string       `json:"files"`           // the files that have changed, each with what
	Done    []string       `json:"done"`            // what the migrations change
	Needs   []graph.Need   `json:"needs"`           // what is in the way of the run
	Lines   string         `json:"lines,omitempty"` // of graph.yaml, which the run needs
	Error   string         `json:"error,omitempty"`
}

// compareDefinitions returns what has changed in an agent since a run was started with it: in detail if the run has the text of then,
// otherwise what the graphs differ in.
func compareDefinitions(rec *runs.Record, agent *flow.Agent, plan *graph.MigrationPlan) (changes []graph.Change) {
	if rec.Definition != "" {
		changes = changed.CompareDefinitions(rec.Definition, agent.Definition())
		now := flow.ChildDefinitions(agent)
		for path, text := range rec.Definitions {
			if is, there := now[path]; there {
				for _, c := range changed.CompareDefinitions(text, is) {
					c.Graph = path
					changes = append(changes, c)
				}
			}
		}
	}
	if len(changes) == 0 {
		changes = slices.DeleteFunc(slices.Clone(plan.Changes), func(c graph.Change) bool { return c.Kind == "version" })
	}
	return changes
}

// judge sets the verdict about a run.
func (e *ExaminedRun) judge(plan *graph.MigrationPlan) {
	e.Done = append([]string{}, plan.Done...)
	e.Needs = append([]graph.Need{}, plan.Needs...)
	switch {
	case plan.Same && len(e.Files) == 0:
		e.Verdict = VerdictSame
	case plan.Covered:
		e.Verdict = VerdictCovered
	case len(plan.Needs) > 0:
		e.Verdict = VerdictRefused
		e.Lines = changed.Lines(plan.Needs)
	default:
		e.Verdict = VerdictAccept
	}
}

// ExamineRun says what has changed in the agent of a run since it started, and how the run continues. If migrate is true, it does what the migrations of the
// agent say, if they cover everything, and if no process works on the run; otherwise nothing is written.
func (p *Process) ExamineRun(ctx context.Context, id string, migrate bool) (*ExaminedRun, error) {
	st, thread, err := p.Runs.FindThread(ctx, id)
	if err != nil {
		return nil, err
	}
	if migrate {
		lock, err := st.LockRun(thread)
		if err != nil {
			return nil, err
		}
		defer lock.Release()
	}
	snap, err := history.Inspect(ctx, st.Store, thread, 0)
	if err != nil {
		return nil, err
	}
	e := &ExaminedRun{Run: runs.RunOf(thread, snap.Run), Status: snap.Status.String(), Changes: []graph.Change{}, Files: []string{}, Done: []string{}, Needs: []graph.Need{}}
	rec, err := runs.DecodeRecord(snap.Meta)
	if err != nil {
		return nil, fmt.Errorf("run %s cannot be compared: %w", e.Run, err)
	}
	e.Agent = rec.Agent
	meta := snap.Meta
	if err := p.relocateAgent(e.Run, rec, ""); err != nil {
		return nil, err
	}
	if err := p.restoreVariables(rec, "set %s to it first"); err != nil {
		return nil, err
	}
	agent, g, err := p.loadAgain(rec, UIHooks{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = agent.Close() }() // it has not run
	var none *agentFiles
	e.Files = append(e.Files, none.describeChanges(rec, agent)...)
	runner := p.newRunner(g, st, UIHooks{})
	plan, err := runner.PlanMigration(ctx, thread)
	if err != nil {
		return nil, err
	}
	e.Changes = append(e.Changes, compareDefinitions(rec, agent, &plan)...)
	if e.judge(&plan); !migrate || !plan.Covered || snap.Status.Final() {
		return e, nil
	}
	if meta, err = acceptedRecord(meta, agent, p.Tools.SecretSet()); err != nil {
		return nil, err
	}
	if _, err = runner.Migrate(ctx, thread, meta); err != nil {
		return nil, err
	}
	e.Verdict = VerdictMigrated
	return e, nil
}

// ExamineRuns is ExamineRun for all runs of an agent that have not ended and that no process works on; an empty name: for those of every agent. What is in
// the way of one run is its Error.
func (p *Process) ExamineRuns(ctx context.Context, agent string, migrate bool, each func(*ExaminedRun) error) error {
	list, err := p.Runs.ListRuns(ctx, "")
	if err != nil {
		return err
	}
	for i := range list {
		info := &list[i]
		if info.Final || agent != "" && info.Agent != agent || info.Status == graph.Running.String() {
			continue
		}
		e, err := p.ExamineRun(ctx, info.Run, migrate)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e = &ExaminedRun{Run: info.Run, Agent: info.Agent, Status: info.Status, Verdict: VerdictBroken, Error: err.Error()}
		}
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// newChangedError returns the error about a run whose agent has changed in some files, which its migrations do not cover.
func newChangedError(plan *graph.MigrationPlan, id string, rec *runs.Record, agent *flow.Agent, files []string) error {
	text := fmt.Sprintf("the files of agent '%s' have changed since run %s was started:\n  %s", rec.Agent, id, strings.Join(files, "\n  "))
	for _, c := range compareDefinitions(rec, agent, plan) {
		text += "\n  " + describeChange(c)
	}
	return newChangedFailure(id, text, plan.Missing, plan.Needs, "to continue with the files as they are now: raddle resume "+id+" --accept-changes")
}

// describeChange says in one line what has changed.
func describeChange(c graph.Change) string { return strings.ReplaceAll(c.String(), "\n", " ") }

// newChangedFailure returns the error about a run whose agent has changed: with the lines that it needs, or what to do otherwise.
func newChangedFailure(id, text string, missing []string, needs []graph.Need, otherwise string) error {
	for _, n := range needs {
		text += fmt.Sprintf("\n  %s %s: %s", n.Kind, n.Name, n.Why)
	}
	lines := changed.Lines(needs)
	switch {
	case lines == "":
		return &failure.Error{Kind: failure.Stale, Err: errors.New(text), Next: otherwise}
	case len(missing) == 0:
		lines += "\n(" + otherwise + ")"
	}
	return &failure.Error{Kind: failure.Stale, Err: errors.New(text), Next: "write into its graph.yaml, then resume the run again:\n" + lines}
}
