package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool/permission"
)

// A runOrigin is what is known about a run that came from elsewhere. A nil one, or one without a mark, is that of a run
// that was started here.
type runOrigin struct {
	mark     *foreign.Mark
	question *graph.Question // that a person must answer before anything of the run happens; nil: it was answered
	process  *Process
	store    *runs.Store
	head     int64         // the newest record, as the question describes it
	work     string        // the workspace that the run names
	options  ResumeOptions // with which the run was rebuilt
	decided  bool          // the mark says what a person has decided since; the run is still what it was before
}

// readOrigin reads where a run came from, and the question that is still open about that.
func readOrigin(ctx context.Context, p *Process, st *runs.Store, snap *history.Snapshot) (*runOrigin, error) {
	mark, err := foreign.FindCurrent(ctx, st, snap.Thread, 0)
	if mark == nil || err != nil {
		return nil, err
	}
	q, err := runs.AskAboutOrigin(ctx, st, snap, p.Dirs.Work)
	return &runOrigin{mark: mark, question: q, process: p, store: st, head: snap.Head}, err
}

// asks reports whether a person has to decide before the run may continue.
func (o *runOrigin) asks() bool { return o != nil && o.question != nil }

// isLimited reports whether nothing counts of what the run brought but its prompt and its state.
func (o *runOrigin) isLimited() bool {
	return o != nil && o.mark.IsLimited()
}

// isPending reports whether what was allowed elsewhere must be removed from the state of the run.
func (o *runOrigin) isPending() bool {
	return o.isLimited() && o.mark.Accepted != nil && o.mark.Accepted.Pending
}

// limitRecord removes from the start record of a run what does not count, because the run came from elsewhere. What it
// says about other runs never counts. here is the workspace of a run about which no one has decided yet.
func (o *runOrigin) limitRecord(rec *runs.Record, here string) {
	if o == nil || o.mark == nil {
		return
	}
	o.work = rec.Workspace
	rec.Named = ""
	rec.Parent = nil
	rec.Remote = false
	rec.TraceParent = ""
	if a := o.mark.Accepted; a != nil {
		here = a.Workspace
	}
	if o.isLimited() {
		*rec = runs.Record{
			Agent:        rec.Agent,
			Dir:          rec.Dir,
			Recorded:     rec.Recorded,
			Prompt:       rec.Prompt,
			Files:        rec.Files,
			Attached:     rec.Attached,
			Version:      rec.Version,
			Strict:       rec.Strict,
			Mode:         string(permission.ModeAsk),
			Distribution: runs.Distribution{Input: rec.Input},
		}
	}
	rec.Workspace = here
}

// checkAnswers returns why answers to the question would be refused, or nil.
func (o *runOrigin) checkAnswers(answers []graph.Answer) error {
	for i, a := range answers {
		refuse := func(reason string) error {
			return &graph.AnswerError{ID: a.ID, Open: []string{o.question.ID}, Reason: reason}
		}
		choice, _ := a.Value.(string)
		switch {
		case i > 0:
			return refuse("there is one question, and it needs one answer")
		case a.ID != "" && a.ID != o.question.ID:
			return refuse("there is no such question: first decide whether the run may continue here")
		case a.Refused == "" && !slices.Contains(o.question.Options, choice):
			return refuse("it must be one of " + strings.Join(o.question.Options, ", "))
		}
	}
	return nil
}

// ListOpenAfter returns which of the open questions of a resumed run stay open when answers are recorded.
func (r *Run) ListOpenAfter(answers []graph.Answer) []graph.Question {
	return slices.DeleteFunc(slices.Clone(r.Questions), func(q graph.Question) bool {
		return slices.ContainsFunc(answers, func(given graph.Answer) bool {
			return (given.ID == q.ID || given.ID == "") && !(r.origin.asks() && isRefusal(given))
		})
	})
}

// isRefusal reports whether an answer leaves a run that came from elsewhere as it is.
func isRefusal(a graph.Answer) bool { return a.Refused != "" || a.Value == runs.OriginNo }

// settleOrigin lets a person decide whether the run may continue, with the answers of a drive or by asking, and makes
// the run what the decision says. decided is false if it stays as it is.
func (r *Run) settleOrigin(ctx context.Context, d *Driver) (decided bool, err error) {
	if !r.origin.decided {
		answers := d.Begin
		d.Begin = nil
		if len(answers) == 0 && d.Ask != nil {
			park := false
			if answers, park, err = d.ask(ctx, r.Questions); err != nil {
				return false, err
			}
			if park {
				d.Ask = nil
			}
		}
		if len(answers) == 0 {
			return false, nil
		}
		at, err := r.decideOrigin(ctx, answers)
		if err != nil {
			return false, err
		}
		if d.Recorded != nil {
			d.Recorded(at)
			d.Recorded = nil
		}
	}
	if !r.origin.decided {
		return false, nil
	}
	return true, r.rebuild(ctx)
}

// decideOrigin records in the mark of a run that came from elsewhere what a person has decided, and nothing else. It
// returns the newest record of what the person has decided about.
func (r *Run) decideOrigin(ctx context.Context, answers []graph.Answer) (at runs.Point, err error) {
	o := r.origin
	if err := o.checkAnswers(answers); err != nil {
		return at, err
	}
	last, err := r.lastRecord(ctx)
	if err == nil && last.Seq != o.head {
		err = failure.NewStale("look at it again: raddle resume "+r.ID, "run %s has changed since it was shown", r.ID)
	}
	if err != nil {
		return at, err
	}
	mark := *o.mark
	given := answers[0]
	now := time.Now().UTC().Truncate(time.Second)
	accepted := !isRefusal(given)
	if accepted {
		whole := given.Value == runs.OriginAccept
		mark.Accepted = &foreign.Acceptance{
			Whole:     whole,
			Pending:   !whole,
			Workspace: o.process.Dirs.Work,
			By:        given.By,
			At:        now,
			Head:      last.Seq,
			Sum:       last.Sum,
		}
		if whole && config.IsDir(o.work) {
			mark.Accepted.Workspace = o.work
		}
	} else {
		mark.Declined = &foreign.Refusal{By: given.By, At: now}
	}
	if err := foreign.Put(ctx, o.store, r.Thread, mark); err != nil {
		return at, err
	}
	o.decided = accepted
	return runs.Point{Run: r.ID, At: last.Seq}, nil
}

// clearOrigin removes, in all parts of a run that continues without what it brought, what an agent may do because of
// what was recorded elsewhere. Until the mark says that this is done, each resume does it again.
func (r *Run) clearOrigin(ctx context.Context) error {
	if _, err := r.runner.EditAll(ctx, r.Thread, agent.Grants.Reset(nil), agent.Overrides.Reset(nil), agent.Spent.Reset(agent.Spend{}), agent.Continued.Reset(0)); err != nil {
		return err
	}
	last, err := r.lastRecord(ctx)
	if err != nil {
		return err
	}
	mark := *r.origin.mark
	accepted := *mark.Accepted
	accepted.Pending = false
	accepted.Head = last.Seq
	accepted.Sum = last.Sum
	mark.Accepted = &accepted
	return foreign.Put(ctx, r.origin.store, r.Thread, mark)
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
	r.Agent = again.Agent
	r.Record = again.Record
	r.runner = again.runner
	r.files = again.files
	r.parked = again.parked
	r.origin = again.origin
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
