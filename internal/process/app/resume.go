package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool/permission"
)

// ResumeOptions says how to continue a run.
type ResumeOptions struct {
	Agent         string // name or path of the agent, if it has moved; "": at its old place
	AcceptChanges bool   // continue although the agent's files have changed
	Takeover      bool   // continue although a process of another machine holds the lease
	// Budget and Deadline replace limits that the run was started with; those that are 0 stay. The deadline counts from now.
	Budget   agent.Limits
	Deadline time.Duration
	UIHooks

	sameMode *permission.ModeSwitch // of the run before a decision: it gets the recorded mode; nil: there is none
}

// ResumeRun prepares to continue a run: it takes the run's lock, rebuilds the agent
// from the start record, and ends what a killed process left behind. id may be a
// unique prefix.
func (p *Process) ResumeRun(ctx context.Context, id string, c ResumeOptions) (*Run, error) {
	st, thread, err := p.Runs.FindThread(ctx, id)
	if err != nil {
		return nil, err
	}
	lock, err := st.LockRun(thread)
	if err != nil {
		if driven, ok := errors.AsType[*runs.BusyError](err); ok {
			return nil, &failure.Error{Kind: failure.Stale, Err: driven, Next: "wait for it, or stop it"}
		}
		return nil, err
	}
	var run *Run
	if err = st.CheckNoLease(thread); err == nil || c.Takeover {
		run, err = p.rebuildRun(ctx, st, thread, c)
	}
	if err != nil {
		lock.Release()
		return nil, leasedElsewhere(id, err)
	}
	run.lock = lock
	return run, nil
}

// leasedElsewhere returns the error for a run whose lease another process holds, with what to do about it.
func leasedElsewhere(id string, err error) error {
	driven, ok := errors.AsType[*runs.BusyError](err)
	if !ok {
		return err
	}
	return &failure.Error{
		Kind: failure.Stale,
		Err:  driven,
		Next: "wait for it, or stop it. If that process is gone, the lease ends by itself at that time; to continue without waiting: raddle resume " + id + " --takeover",
	}
}

// endedError returns the error for a run that is over, with its output.
func endedError(id string, snap *history.Snapshot) error {
	over := &runs.EndedError{
		ID:     id,
		Status: snap.Status,
		Output: flow.OutcomeOf(graph.Result{Value: snap.Result}).Output,
	}
	return &failure.Error{
		Kind: failure.Stale,
		Err:  over,
		Next: "see all of it with: raddle runs show " + id,
	}
}

// endSurvivors ends the processes that an earlier drive of a run has left.
func endSurvivors(ctx context.Context, st *runs.Store, id string, snap *history.Snapshot) error {
	inDoubt, err := st.ListInDoubt(ctx, snap)
	if err != nil {
		return err
	}
	if errs := flow.EndSurvivors(inDoubt); len(errs) > 0 {
		return failure.NewStale("end them by hand, then resume", "processes that an earlier drive of run %s started cannot be ended: %v", id, errors.Join(errs...))
	}
	return nil
}

// loadAgain loads the agent of a run that continues, and compiles it.
func (p *Process) loadAgain(rec *runs.Record, hooks UIHooks) (*flow.Agent, *graph.Graph, error) {
	host, err := p.newHost(rec, hooks)
	if err != nil {
		return nil, nil, err
	}
	agent, err := flow.Load(rec.Dir, host)
	if err != nil {
		return nil, nil, err
	}
	g, err := compileGraph(agent, host)
	return agent, g, err
}

// rebuildRun creates a run from its journal.
func (p *Process) rebuildRun(ctx context.Context, st *runs.Store, thread string, c ResumeOptions) (*Run, error) {
	snap, err := history.Inspect(ctx, st.Store, thread, 0)
	if err != nil {
		return nil, err
	}
	id := runs.RunOf(thread, snap.Run)
	if snap.Status.Final() {
		return nil, endedError(id, snap)
	}
	rec, err := runs.DecodeRecord(snap.Meta)
	if err != nil {
		return nil, failure.NewStale("", "run %s cannot be continued from here: %v", id, err)
	}
	origin, err := readOrigin(ctx, p, st, snap)
	if err != nil {
		return nil, err
	}
	if origin.asks() {
		origin.options = c
	}
	given := c
	c.setLimits(rec)
	origin.limitRecord(rec, p.Dirs.Work)
	c.unnamed = origin.isLimited() && c.Agent == ""
	rec.Model = cmp.Or(rec.Model, p.Config.Model) // for nodes that failed because no model was set
	if c.files, err = p.useBundle(ctx, st, id, rec, c); err != nil {
		return nil, err
	}
	if c.files == nil && c.Agent == "" {
		c.approved = listApproved(rec)
	}
	if err := p.relocateAgent(id, rec, c.Agent); err != nil {
		return nil, err
	}
	if err := p.restoreVariables(rec, "set %s to it, then resume the run again"); err != nil {
		return nil, err
	}
	c.recorded = func() ([]string, error) { // only transcripts need to know their position
		return st.ListReplyIDs(context.WithoutCancel(ctx), thread, snap.Head)
	}
	if err := c.restoreMode(id, rec.Mode); err != nil {
		return nil, err
	}
	agent, g, err := p.loadAgain(rec, c.UIHooks)
	if err != nil {
		return nil, err
	}
	runner := p.newRunner(g, st, c.UIHooks)
	changes := c.files.describeChanges(rec, agent)
	var plan graph.MigrationPlan
	if len(changes) > 0 && !c.AcceptChanges {
		if plan, err = runner.PlanMigration(ctx, thread); err != nil {
			return nil, err
		} else if !plan.Covered {
			return nil, newChangedError(&plan, id, rec, agent, changes)
		}
	}
	if err := endSurvivors(ctx, st, id, snap); err != nil {
		return nil, err
	}
	traced, _ := p.trace.openTelemetry()
	run := &Run{
		reachable: reachable{process: p},
		jobs:      p.Tools.Jobs,
		ID:        id,
		Thread:    thread,
		Agent:     agent,
		Record:    rec,
		Mode:      c.Mode,
		Resumed:   true,
		Kept:      st.Location.KeepsRuns(),
		runner:    runner,
		files:     c.files,
		accept:    c.AcceptChanges,
		takeover:  c.Takeover,
		moved:     c.Agent,
		parked:    parked{snap.Questions, snap.Timers, snap.Due, snap.Status},
		telemetry: traced,
		origin:    origin,
	}
	if origin.isPending() {
		return run.rebuildAgain(ctx, p, st, given)
	}
	if len(changes) > 0 && c.files == nil && (origin == nil || origin.mark == nil) {
		if run.accepted, err = acceptedRecord(snap.Meta, agent, p.Tools.SecretSet()); err != nil {
			return nil, err
		}
	}
	if run.accepted, err = limitedRecord(run.accepted, snap.Meta, c); err != nil {
		return nil, err
	}
	if origin.asks() {
		run.parked = parked{Questions: []graph.Question{*origin.question}, status: graph.Waiting}
	}
	run.noteFiles(p, c.files)
	run.noteMigration(p, plan.Done)
	return run, nil
}

// rebuildAgain creates the run once more, after what was to be decided about its origin was recorded.
func (r *Run) rebuildAgain(ctx context.Context, p *Process, st *runs.Store, given ResumeOptions) (*Run, error) {
	err := r.clearOrigin(ctx)
	_ = r.Agent.Close() // it has not run
	if err != nil {
		return nil, err
	}
	return p.rebuildRun(ctx, st, r.Thread, given)
}

// noteMigration says what migrations change in a run.
func (r *Run) noteMigration(p *Process, done []string) {
	if len(done) > 0 {
		r.addNotice(p, fmt.Sprintf("run %s continues with the agent as it is now: %s", r.ID, strings.Join(done, "; ")))
	}
}

// noteFiles says that a run continues with the files that it started with; nil: with those of the directory.
func (r *Run) noteFiles(p *Process, files *agentFiles) {
	if files == nil {
		return
	}
	r.addNotice(p, fmt.Sprintf("run %s continues with the files of agent '%s' that it started with (bundle %.12s)%s", r.ID, r.Record.Agent, r.Record.Bundle, files.describeChoice()))
	if files.empty {
		r.addNotice(p, "its working directory is not on this machine; it works in "+p.Dirs.ShortPath(r.Record.Workspace))
	}
}

// restoreMode sets the mode of permissions that a run has recorded, unless the caller has chosen one.
func (c *ResumeOptions) restoreMode(id, name string) error {
	if c.Mode != nil {
		return nil
	}
	recorded, ok := permission.ParseMode(name)
	if !ok {
		return failure.NewStale("choose one: raddle resume "+id+" --mode "+strings.Join(permission.Modes, "|"), "run %s has the permission mode %q, which this version does not know", id, name)
	}
	c.Mode = cmp.Or(c.sameMode, permission.NewModeSwitch(recorded))
	c.Mode.SetMode(recorded)
	return nil
}

// Waits reports whether the last drive of a resumed run has stopped because only answers, or a time, can continue the
// run.
func (r *Run) Waits() bool { return r.Resumed && r.status == graph.Waiting }

// IsDue reports whether the time has come for which a resumed run has waited.
func (r *Run) IsDue() bool {
	if !r.Waits() || r.Due.IsZero() {
		return false
	}
	now := time.Now()
	if c := r.runner.Clock; c != nil {
		now = c.Now()
	}
	return !now.Before(r.Due)
}

// relocateAgent finds the agent's directory at its old place, or where the caller says
// that it is now.
func (p *Process) relocateAgent(id string, rec *runs.Record, agent string) error {
	if agent != "" {
		place, err := p.FindAgent(agent)
		if err != nil {
			return err
		}
		rec.Dir = place.Dir
		return nil
	}
	if isInside(rec.Dir, p.Dirs.Bundled) { // a cache may have been emptied
		if dir, err := p.Bundled.Unpack(); err == nil && !config.IsDir(rec.Dir) {
			rec.Dir = filepath.Join(dir, filepath.Base(rec.Dir))
		}
	}
	if filepath.Dir(rec.Dir) == p.openedRoles() && !config.IsDir(rec.Dir) {
		_, _ = p.openRole(filepath.Base(rec.Dir)) // a role that is gone is reported like every other agent
	}
	switch _, err := os.Stat(rec.Dir); {
	case errors.Is(err, fs.ErrNotExist):
		return failure.NewStale("if it has moved: raddle resume "+id+" --agent PATH", "the agent '%s' of run %s is gone: there is no directory %s", rec.Agent, id, rec.Dir)
	case err != nil:
		return &failure.Error{
			Kind: failure.Stale,
			Msg:  fmt.Sprintf("the agent '%s' of run %s cannot be read", rec.Agent, id),
			Err:  err,
		}
	}
	return nil
}

type eventSeq = iter.Seq2[graph.Event, error]

func (r *Run) resumeDrive(ctx context.Context, d Driver, answers []graph.Answer) (graph.Result, error) {
	takeover := r.takeover
	r.takeover = false // later drives follow a drive of this process
	return r.consumeEvents(d, func() eventSeq {
		return r.runner.Resume(ctx, graph.Resume{
			Thread:        r.Thread,
			Answers:       r.redactAnswers(answers),
			AcceptChanges: r.accept,
			Cancel:        d.cancel,
			Meta:          r.accepted,
			Takeover:      takeover,
			IgnoreAhead:   r.origin.isLimited(),
			Reply:         r.redactReply(d.Reply),
			Topics:        d.Topics,
			Pause:         d.Pause,
			Break:         d.Break,
			Grace:         d.grace,
			Until:         r.Record.Deadline,
			Handle:        &r.handle,
		})
	})
}

// redactReply returns a Reply whose answers contain no secrets.
func (r *Run) redactReply(answer graph.Reply) graph.Reply {
	if answer == nil {
		return nil
	}
	return func(q graph.Question) (any, bool) {
		v, ok := answer(q)
		return redactAnswer(v, r.Agent.Redact), ok
	}
}

// redactAnswers returns answers without secrets, in the form that the journal gets.
func (r *Run) redactAnswers(answers []graph.Answer) []graph.Answer {
	clean := slices.Clone(answers)
	for i, a := range clean {
		clean[i].Value, clean[i].Refused = redactAnswer(a.Value, r.Agent.Redact), r.Agent.Redact(a.Refused)
	}
	return clean
}

func redactAnswer(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = text(s)
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = redactAnswer(item, text)
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, member := range v {
			members[text(name)] = redactAnswer(member, text)
		}
		return members
	case json.RawMessage:
		return redact.RedactJSON(v, text)
	}
	return v
}

// AnswerNow records answers to open questions while other parts of the run work in this process, and returns the
// questions that are still open, and the place of the record. If no drive works, or it waits, the error is
// [graph.ErrNotDriven].
func (r *Run) AnswerNow(answers []graph.Answer) (open []graph.Question, at runs.Point, err error) {
	open, err = r.handle.Answer(r.redactAnswers(answers)...)
	if err != nil && !errors.Is(err, graph.ErrNotDriven) {
		err = r.explainError(err)
	}
	return open, runs.Point{Run: r.ID, At: r.handle.ReadLastRecord()}, err
}

// CheckAnswers returns why answers would be refused, in the words of the file format,
// or nil. It records nothing.
func (r *Run) CheckAnswers(ctx context.Context, answers ...graph.Answer) error {
	if r.origin.asks() {
		return r.origin.checkAnswers(answers)
	}
	if err := r.runner.CheckAnswers(ctx, r.Thread, r.redactAnswers(answers)...); err != nil {
		return r.explainError(err)
	}
	return nil
}

// GraphStructure returns the run's graph with all its parts, including those that pictures leave out.
func (r *Run) GraphStructure() graph.Structure { return r.runner.Graph.Structure() }

// consumeEvents passes on the events of one drive and returns how the drive ended.
func (r *Run) consumeEvents(d Driver, drive func() eventSeq) (graph.Result, error) {
	res := graph.Result{Run: r.ID, Thread: r.Thread, Status: graph.Failed}
	var failed error
	for ev, err := range drive() {
		if err != nil {
			failed = err
			break
		}
		if d.Recorded != nil { // the first event comes when what the drive begins with is saved
			d.Recorded(runs.Point{Run: r.ID, At: ev.Record})
			d.Recorded = nil
		}
		if end, ok := ev.Body.(graph.RunEnded); ok {
			res = end.Result
		}
		if d.Event != nil {
			d.Event(ev)
		}
	}
	if failed != nil {
		failed = r.explainError(failed)
		res.Err = failed
	}
	return res, failed
}

// nextAfterDisplacement says what to do about a run whose drive was ended from elsewhere.
func (r *Run) nextAfterDisplacement(by *graph.DisplacedError) string {
	switch by.Status {
	case graph.Abandoned:
		return "see how far it came: raddle runs show " + r.ID
	case graph.Paused:
		return "continue with: " + r.ResumeCommand()
	}
	return "let the other process continue; see: raddle runs ls"
}

// explainError returns an error in words for people.
func (r *Run) explainError(err error) error {
	changed, ok := errors.AsType[*graph.ChangedError](err)
	switch {
	case ok && len(changed.Needs) > 0:
		text := fmt.Sprintf("the graph of agent '%s' has changed since run %s was started", r.Record.Agent, r.ID)
		return newChangedFailure(r.ID, text, changed.Missing, changed.Needs, "to continue with the graph as it is now: raddle resume "+r.ID+" --accept-changes")
	case ok && changed.Child != "":
		return failure.NewStale("to continue with its graph as it is now: raddle resume "+r.ID+" --accept-changes", "%s, which works in run %s, has changed since it was started, or no longer exists", changed.Child, r.ID)
	case ok:
		return failure.NewStale("to continue with the graph as it is now: raddle resume "+r.ID+" --accept-changes", "the graph of agent '%s' has changed since run %s was started", r.Record.Agent, r.ID)
	case errors.As(err, new(*graph.BusyError)):
		busy, _ := errors.AsType[*graph.BusyError](err)
		return leasedElsewhere(r.ID, &runs.BusyError{Run: r.Thread, Lease: busy.Lease})
	case errors.As(err, new(*graph.DisplacedError)):
		by, _ := errors.AsType[*graph.DisplacedError](err)
		return &failure.Error{Kind: failure.Stale, Err: err, Next: r.nextAfterDisplacement(by)}
	case errors.Is(err, graph.ErrLeaseLost) && !errors.Is(err, journal.ErrConflict):
		return &failure.Error{
			Kind: failure.Stale,
			Msg:  "run " + r.ID + " was stopped: the store could not be reached for so long that another process may have taken it over",
			Err:  err,
			Next: "continue with: " + r.ResumeCommand(),
		}
	case errors.Is(err, journal.ErrConflict):
		return &failure.Error{
			Kind: failure.Stale,
			Msg:  "another process also drives run " + r.ID,
			Err:  err,
			Next: "let the other process continue; see: raddle runs ls",
		}
	}
	if answer, ok := errors.AsType[*graph.AnswerError](err); ok {
		return &failure.Error{Kind: failure.Usage, Err: r.Agent.Explain(answer)}
	}
	return r.Agent.Explain(err)
}
