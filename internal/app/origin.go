package app

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/foreign"
	"raddle.dev/internal/runs"
	"raddle.dev/tool/permission"
)

// A runOrigin is what is known about a run that came from elsewhere. A nil one, or one without a mark, is that of a run that was
// started here.
type runOrigin struct {
	mark     *foreign.Mark
	question *graph.Question // that a person must answer before anything of the run happens; nil: it was answered
	process  *Process
	store    *runs.Store
	head     int64         // the newest record, as the question describes it
	work     string        // the workspace that the run names
	options  ResumeOptions // with which the run was rebuilt
}

// readOrigin reads where a run came from, and the question that is still open about that.
func readOrigin(ctx context.Context, p *Process, st *runs.Store, snap *history.Snapshot) (*runOrigin, error) {
	mark, err := foreign.Find(ctx, st, snap.Thread)
	if mark == nil || err != nil {
		return nil, err
	}
	q, err := runs.AskAboutOrigin(ctx, st, snap, p.Dirs.Work)
	if q != nil {
		mark.Accepted = nil // what someone accepted was another run
	}
	return &runOrigin{mark: mark, question: q, process: p, store: st, head: snap.Head}, err
}

// asks reports whether a person has to decide before the run may continue.
func (o *runOrigin) asks() bool { return o != nil && o.question != nil }

// isLimited reports whether nothing counts of what the run brought but its prompt and its state.
func (o *runOrigin) isLimited() bool {
	return o != nil && o.mark != nil && (o.mark.Accepted == nil || !o.mark.Accepted.Whole)
}

// limitRecord removes from the start record of a run what does not count, because the run came from elsewhere. What it says about
// other runs never counts. here is the workspace of a run about which no one has decided yet.
func (o *runOrigin) limitRecord(rec *runs.Record, here string) {
	if o == nil || o.mark == nil {
		return
	}
	o.work = rec.Workspace
	rec.Named, rec.Parent, rec.Remote, rec.TraceParent = "", nil, false, ""
	if a := o.mark.Accepted; a != nil {
		here = a.Workspace
	}
	if o.isLimited() {
		*rec = runs.Record{Agent: rec.Agent, Dir: rec.Dir, Definition: rec.Definition, Definitions: rec.Definitions, Sources: rec.Sources,
			Prompt: rec.Prompt, Files: rec.Files, Version: rec.Version, Strict: rec.Strict, Mode: string(permission.ModeAsk),
			Distribution: runs.Distribution{Input: rec.Input}}
	}
	rec.Workspace = here
}

// checkAnswers returns why answers to the question would be refused, or nil.
func (o *runOrigin) checkAnswers(answers []graph.Answer) error {
	for _, a := range answers {
		refuse := func(reason string) error {
			return &graph.AnswerError{ID: a.ID, Open: []string{o.question.ID}, Reason: reason}
		}
		choice, _ := a.Value.(string)
		switch {
		case a.ID != "" && a.ID != o.question.ID:
			return refuse("there is no such question: first decide whether the run may continue here")
		case a.Refused == "" && !slices.Contains(o.question.Options, choice):
			return refuse("it must be one of " + strings.Join(o.question.Options, ", "))
		}
	}
	return nil
}

// askOrigin asks a person whether the run may continue. decided is false if it stays as it is.
func (r *Run) askOrigin(ctx context.Context, d *Driver) (decided bool, err error) {
	if d.Ask == nil {
		return false, nil
	}
	answers, park, err := d.ask(ctx, r.Questions)
	if err != nil || len(answers) == 0 {
		return false, err
	}
	if park {
		d.Ask = nil
	}
	return r.decideOrigin(ctx, answers)
}

// decideOrigin records what a person has decided about a run that came from elsewhere, and makes the run what the decision says.
func (r *Run) decideOrigin(ctx context.Context, answers []graph.Answer) (decided bool, err error) {
	o := r.origin
	if err := o.checkAnswers(answers); err != nil {
		return false, err
	}
	if len(answers) == 0 || answers[0].Refused != "" || answers[0].Value == runs.OriginNo {
		return false, nil
	}
	whole := answers[0].Value == runs.OriginAccept
	mark := *o.mark
	mark.Accepted = &foreign.Acceptance{Whole: whole, Workspace: o.process.Dirs.Work, By: answers[0].By, At: time.Now().UTC().Truncate(time.Second)}
	if whole && config.IsDir(o.work) {
		mark.Accepted.Workspace = o.work
	}
	if !whole { // what its steps have recorded, and what was allowed, does not count
		err = r.editOrigin(ctx)
	} else if last, failed := r.lastRecord(ctx); failed != nil || last.Seq != o.head {
		err = errors.Join(failed, failure.NewStale("look at it again: raddle resume "+r.ID, "run %s has changed since it was shown", r.ID))
	}
	if err != nil {
		return false, err
	}
	last, err := r.lastRecord(ctx)
	if err != nil {
		return false, err
	}
	mark.Accepted.Head, mark.Accepted.Sum = last.Seq, last.Sum
	if err := foreign.Put(ctx, o.store, r.Thread, mark); err != nil {
		return false, err
	}
	return true, r.rebuild(ctx)
}

// editOrigin resets what an agent may do because of what was recorded elsewhere, in all parts of the run.
func (r *Run) editOrigin(ctx context.Context) error {
	_, err := r.runner.EditAll(ctx, r.Thread, agent.Grants.Reset(nil), agent.Overrides.Reset(nil), agent.Spent.Reset(agent.Spend{}), agent.Continued.Reset(0))
	return err
}

// lastRecord returns the newest record of the run, without its data.
func (r *Run) lastRecord(ctx context.Context) (last journal.Record, err error) {
	for rec, err := range r.runner.Store.Read(ctx, r.Thread, journal.Range{After: r.origin.head - 1, Heads: true}) {
		if err != nil {
			return last, err
		}
		last = rec
	}
	return last, nil
}

// rebuild makes the run again after a decision. Its lock stays, and so does its switch of modes.
func (r *Run) rebuild(ctx context.Context) error {
	c := r.origin.options
	c.sameMode = r.Mode
	again, err := r.origin.process.rebuildRun(ctx, r.origin.store, r.Thread, c)
	if err != nil {
		return err
	}
	_ = r.Agent.Close() // it has not run
	r.Agent, r.Record, r.Questions, r.runner, r.files, r.status, r.origin = again.Agent, again.Record, again.Questions, again.runner, again.files, again.status, again.origin
	return nil
}

// publishMark lets the start of a run that works for another one give it the mark of that one.
func (r *Run) publishMark(p *Process, above string) {
	next := r.publish
	r.publish = func(ctx context.Context) error {
		st, err := p.Runs.OpenStore()
		if err == nil {
			err = foreign.Copy(ctx, st, above, 0, r.ID)
		}
		if err != nil || next == nil {
			return err
		}
		return next(ctx)
	}
}
