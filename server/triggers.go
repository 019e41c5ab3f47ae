package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/internal/storage/runs"
)

// How a service drives the triggers of its store.
const (
	triggerEvery = time.Second      // how often it looks for ticks
	settleEvery  = 5 * time.Second  // how often it looks for runs that have ended
	ticksAtOnce  = 10               // ticks that it takes at once
	queueDelay   = 2 * time.Second  // until a tick is looked at again that waits for the end of a run
	failDelay    = 10 * time.Second // until a tick is tried again that could not start its run
	maxFailures  = 3                // tries of a tick that fail until it ends
	lateTicks    = 100              // ticks of one schedule that are caught up at most
	leastCatchUp = 10 * time.Second // how late a tick is always in time: a service looks only now and then
	endsRead     = 200              // newest runs of an agent whose ends are looked at
	ticksRead    = 1000             // newest ticks of a trigger that are looked at
	maxChain     = 8                // runs that start each other by triggers, one after the other
	budgetTime   = 24 * time.Hour   // of the daily budget
)

// tickTTL is for how long a tick belongs to a service that does not say what it has done. It is a variable for tests.
var tickTTL = 90 * time.Second

// triggerWork drives the triggers of a store: every service of the store does, and each tick is done once.
type triggerWork struct {
	service *Service
	set     *trigger.Set
	stop    func()
	stopped sync.WaitGroup

	settled time.Time       // when the runs were looked at last; the loop uses it
	ends    map[string]bool // ends of runs that were noted, by trigger and run; the loop uses it
	away    bool            // the store did not answer at the last look
}

// startTriggers drives the triggers of the store, if it keeps any and the service takes part in its work.
func (s *Service) startTriggers() {
	if !s.options.Recover || s.options.NoWorker {
		return
	}
	set, err := trigger.Open(s.process)
	if err != nil {
		return // a store without triggers
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &triggerWork{service: s, set: set, stop: cancel, ends: map[string]bool{}}
	s.triggers = w
	w.stopped.Go(func() { w.workUntilEnd(ctx) })
}

// endWork ends the work on triggers. A tick that was taken is taken again later, by any service.
func (w *triggerWork) endWork() {
	if w == nil {
		return
	}
	w.stop()
	w.stopped.Wait()
}

// workUntilEnd looks for ticks until ctx ends.
func (w *triggerWork) workUntilEnd(ctx context.Context) {
	every := time.NewTicker(triggerEvery)
	defer every.Stop()
	for {
		err := w.lookForTicks(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != w.away {
			w.away = failed
			if failed {
				w.service.log.Warn("triggers do not fire now: they are tried again", "error", err)
			} else {
				w.service.log.Info("triggers fire again")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// lookForTicks adds the ticks that have come and starts those that are due.
func (w *triggerWork) lookForTicks(ctx context.Context) error {
	list, now, err := w.set.ListAll(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	var failed []error
	if settle := now.Sub(w.settled) >= settleEvery || now.Before(w.settled); settle {
		w.settled = now
		failed = append(failed, w.settleRuns(ctx))
		for i := range list {
			if t := &list[i]; t.Run != nil && t.Status == trigger.On {
				failed = append(failed, w.noteEnds(ctx, t))
			}
		}
	}
	for i := range list {
		t := &list[i]
		if t.Schedule != nil && t.Status == trigger.On && !t.Due().IsZero() && !t.Due().After(now) {
			failed = append(failed, w.set.AddDue(ctx, t, now, trigger.Lateness{Least: leastCatchUp, Ticks: lateTicks}))
		}
	}
	for more := true; more && ctx.Err() == nil && !w.service.IsDraining(); {
		taken, err := w.set.Store.TakeTicks(ctx, ticksAtOnce, tickTTL)
		if err != nil {
			failed = append(failed, err)
			break
		}
		more = len(taken) == ticksAtOnce
		for i := range taken {
			failed = append(failed, w.handleTick(ctx, &taken[i]))
		}
	}
	return errors.Join(failed...)
}

// An outcome is the result of a tick: it ends in a state, or waits again for a delay.
type outcome struct {
	state string
	note  string
	delay time.Duration
}

// waitFor is the outcome of a tick that is looked at again later.
func waitFor(delay time.Duration, note string) outcome {
	return outcome{journal.TickWaiting, note, delay}
}

// skipTick is the outcome of a tick that starts nothing.
func skipTick(format string, args ...any) outcome {
	return outcome{state: trigger.Skipped, note: fmt.Sprintf(format, args...)}
}

// handleTick does what a tick says, and records what it has done. If it cannot record it, the tick is taken again,
// and its run is found.
func (w *triggerWork) handleTick(ctx context.Context, tick *journal.Tick) error {
	in := trigger.InputOf(tick)
	out, err := w.decideTick(ctx, tick, &in)
	switch {
	case err == nil:
	case w.service.IsDraining(), ctx.Err() != nil:
		out = waitFor(0, tick.Note)
	case failure.IsUnavailable(err) || journal.IsUnavailable(err) || errors.Is(err, journal.ErrConflict) || is[*QuotaError](err):
		out = waitFor(queueDelay, err.Error())
	default:
		if in.Failures++; in.Failures < maxFailures {
			out = waitFor(failDelay, err.Error())
		} else {
			out = outcome{state: trigger.Failed, note: err.Error()}
		}
		w.service.log.Warn("a trigger could not start its run", "trigger", tick.Trigger, "tick", tick.Key, "error", err)
	}
	tick.State = out.state
	tick.Note = w.service.redact(out.note)
	if out.state == trigger.Skipped || out.state == trigger.Missed || out.state == trigger.Failed {
		tick.Run = ""
	}
	if err := in.Encode(tick); err != nil {
		return err
	}
	changed, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmWait)
	defer cancel()
	if err := w.set.Store.ChangeTick(changed, *tick, out.delay); !errors.Is(err, journal.ErrConflict) {
		return err
	}
	return nil // someone else has the tick
}

// decideTick starts the run of a tick, or says why not.
func (w *triggerWork) decideTick(ctx context.Context, tick *journal.Tick, in *trigger.Input) (outcome, error) {
	s := w.service
	ctx = withTrigger(ctx, tick.Trigger)
	started, driven, err := findKeyed(ctx, s, keyEntry{Run: tick.Run, Thread: tick.Run})
	if err == nil && driven && !started {
		err = newUnconfirmedError()
	}
	if err != nil || started { // a service was killed after it had started the run
		return outcome{state: trigger.Started}, err
	}
	t, err := w.set.FindOne(ctx, tick.Trigger)
	switch {
	case is[*trigger.UnknownError](err):
		return skipTick("the trigger was disabled"), nil
	case err != nil:
		return outcome{}, err
	case t.Status == trigger.Paused:
		return skipTick("the trigger was paused"), nil
	}
	ok, err := w.set.ConfirmFiles(ctx, t)
	switch {
	case err != nil:
		return outcome{}, err
	case !ok && t.Status == trigger.On: // another machine may have the agent
		if time.Since(tick.Time) > time.Hour {
			return outcome{state: trigger.Failed, note: "no server has the agent " + t.Agent}, nil
		}
		return waitFor(queueDelay, "waits for a server that has the agent "+t.Agent), nil
	case !ok:
		return skipTick("the trigger is off: %s", t.Reason), nil
	case in.Depth > maxChain:
		return skipTick("%d runs have started each other by triggers", in.Depth), nil
	}
	if out, decided, err := w.checkOverlap(ctx, t, tick); decided || err != nil {
		return out, err
	}
	budget, used, err := w.findBudget(ctx, t, tick)
	if err != nil || used != "" {
		return skipTick("%s", used), err
	}
	if t.Overlap != "allow" || t.Budget.Day != (agent.Limits{}) {
		// of several services that start runs of the trigger now, one is not refused here
		if err := w.set.ActivateRun(ctx, t, tick.Run); err != nil {
			return outcome{}, err
		}
	}
	req := StartRequest{Via: "trigger " + t.Name, Agent: t.Agent, Prompt: in.Prompt, Headless: true, ID: tick.Run, State: in.State, Budget: budget, Deadline: t.Budget.Deadline}
	if !t.Graph {
		req.Session = "temp" // its thread is that of the run, which is there once
	}
	if _, err := s.StartRun(ctx, req); err != nil {
		return outcome{}, err
	}
	if budget != nil {
		in.Spent = *budget // until it is known
	}
	s.log.Info("a trigger has started a run", "trigger", tick.Trigger, "tick", tick.Key, "run", tick.Run)
	return outcome{state: trigger.Started}, nil
}

// withTrigger returns a context for what a trigger does.
func withTrigger(ctx context.Context, id string) context.Context {
	return WithCaller(ctx, Caller{Name: "trigger " + id, Scopes: []Scope{ScopeRead, ScopeStart}})
}

// checkOverlap decides about a tick whose trigger has started a run that still works.
func (w *triggerWork) checkOverlap(ctx context.Context, t *trigger.Trigger, tick *journal.Tick) (out outcome, decided bool, err error) {
	if t.Overlap == "allow" {
		return out, false, nil
	}
	ticks, err := w.set.Store.ListTicks(ctx, tick.Trigger, ticksRead)
	if err != nil {
		return out, true, err
	}
	for i := range ticks {
		other := &ticks[i]
		switch {
		case t.Overlap == "queue" && other.State == journal.TickWaiting && other.Time.Before(tick.Time):
			return waitFor(queueDelay, "waits for the ticks before it"), true, nil
		case t.Overlap == "cancel" && other.Run != "" && other.Time.After(tick.Time):
			return skipTick("a newer one has come"), true, nil
		}
	}
	if t.Active == "" || t.Active == tick.Run {
		return out, false, nil
	}
	active, err := w.isWorking(ctx, t.Active, tick.Trigger)
	if !active || err != nil {
		return out, false, err
	}
	switch t.Overlap {
	case "queue":
		return waitFor(queueDelay, "waits for the end of run "+t.Active), true, nil
	case "cancel":
		err := w.service.CancelRun(ctx, t.Active)
		if is[*runs.EndedError](err) {
			err = nil
		}
		if is[*runs.BusyError](err) || is[*runs.UnknownError](err) {
			return waitFor(triggerEvery, "ends run "+t.Active), true, nil
		}
		return out, false, err
	}
	return skipTick("run %s still works", t.Active), true, nil
}

// hasStopped reports whether a run with a status does not continue unless a person wants it.
func hasStopped(status string) bool {
	return !runs.IsWorking(status) && status != runs.Crashed && status != graph.Waiting.String() && status != graph.Paused.String()
}

// matchesEnd reports whether a status is the end of a run that a trigger waits for: a failure is also a limit or a
// timeout, but not what a person has stopped.
func matchesEnd(status, wanted string) bool {
	switch status {
	case graph.Done.String():
		return wanted == "done"
	case graph.Abandoned.String(), graph.Canceled.String():
		return false
	}
	return wanted == "failed" && hasStopped(status)
}

// isWorking reports whether a run that a trigger has started has not ended, or is about to start.
func (w *triggerWork) isWorking(ctx context.Context, run, of string) (bool, error) {
	d, err := w.service.findRun(ctx, run)
	if !is[*runs.UnknownError](err) {
		return err == nil && !hasStopped(d.Status), err
	}
	ticks, err := w.set.Store.ListTicks(ctx, of, ticksRead)
	for i := range ticks {
		if ticks[i].Run == run && ticks[i].State == journal.TickWaiting {
			return true, nil
		}
	}
	return false, err
}

// findBudget returns what the run of a tick may spend, nil for no limit; used says that nothing is left of the day. A
// run that has not ended counts with all that it may spend.
func (w *triggerWork) findBudget(ctx context.Context, t *trigger.Trigger, tick *journal.Tick) (budget *agent.Limits, used string, err error) {
	limit := t.Budget.Run
	if day := t.Budget.Day; day != (agent.Limits{}) {
		ticks, err := w.listSince(ctx, t.ID(), tick.Time.Add(-budgetTime))
		if err != nil {
			return nil, "", err
		}
		var spent agent.Limits
		for i := range ticks {
			if ticks[i].Run == "" || ticks[i].Key == tick.Key || ticks[i].State == journal.TickWaiting || tick.Time.Sub(ticks[i].Time) >= budgetTime {
				continue
			}
			spent = trigger.AddLimits(spent, trigger.InputOf(&ticks[i]).Spent)
		}
		if limit, used = trigger.LimitBy(limit, day, spent); used != "" {
			return nil, used, nil
		}
	}
	if limit == (agent.Limits{}) {
		return nil, "", nil
	}
	return &limit, "", nil
}

// listSince returns the ticks of a trigger since a time, all of them, and perhaps earlier ones.
func (w *triggerWork) listSince(ctx context.Context, id string, since time.Time) ([]journal.Tick, error) {
	for most := ticksRead; ; most *= 2 {
		ticks, err := w.set.Store.ListTicks(ctx, id, most)
		if err != nil || len(ticks) < most || ticks[most-1].Time.Before(since) {
			return ticks, err
		}
	}
}

// settleRuns records how runs of triggers have ended.
func (w *triggerWork) settleRuns(ctx context.Context) error {
	ticks, err := w.set.Store.ListTicks(ctx, "", ticksRead)
	if err != nil {
		return err
	}
	var failed []error
	for i := range ticks {
		if tick := &ticks[i]; tick.State == trigger.Started {
			failed = append(failed, w.settleRun(withTrigger(ctx, tick.Trigger), tick))
		}
	}
	return errors.Join(failed...)
}

// settleRun records how the run of a tick has ended, if it has.
func (w *triggerWork) settleRun(ctx context.Context, tick *journal.Tick) error {
	v, err := w.service.readUsage(ctx, tick.Run)
	switch {
	case is[*runs.UnknownError](err):
		tick.State = "gone"
	case err != nil:
		return err
	case !hasStopped(v.Status):
		return nil
	default:
		models, err := v.ReadModels(ctx)
		if err != nil {
			return err
		}
		in := trigger.InputOf(tick)
		in.Spent = agent.Limits{Calls: models.Count, Tokens: models.Usage.Input + models.Usage.Output}
		for _, m := range models.Models {
			dollars, _ := w.service.process.Models.UsageCost(m.Model, m.Usage)
			in.Spent.Money += dollars
		}
		if err := in.Encode(tick); err != nil {
			return err
		}
		tick.State = v.Status
		tick.Note = w.service.redact(v.Reason)
	}
	if err := w.set.Store.ChangeTick(ctx, *tick, 0); !errors.Is(err, journal.ErrConflict) {
		return err
	}
	return nil // another service was faster
}

// noteEnds adds ticks for the runs of another agent that have ended since a trigger was enabled.
func (w *triggerWork) noteEnds(ctx context.Context, t *trigger.Trigger) error {
	ctx = withTrigger(ctx, t.ID())
	read := 0
	for info, err := range w.service.process.Runs.EachRun(ctx, runs.RunRange{Agent: t.Run.Agent}) {
		if err != nil {
			return err
		}
		if read++; read > endsRead {
			return nil
		}
		key := t.ID() + " " + info.Run
		if !matchesEnd(info.Status, t.Run.Status) || !info.Updated.After(t.Enabled) || w.ends[key] {
			continue
		}
		if err := w.noteEnd(ctx, t, &info); err != nil {
			return err
		}
		w.ends[key] = true
	}
	return nil
}

// noteEnd adds the tick for the end of a run.
func (w *triggerWork) noteEnd(ctx context.Context, t *trigger.Trigger, info *runs.Info) error {
	if ok, err := w.set.ConfirmFiles(ctx, t); err != nil || !ok {
		return err
	}
	state, err := w.service.ReadState(ctx, info.Run)
	if err != nil {
		return err
	}
	depth := 1
	ticks, err := w.set.Store.ListTicks(ctx, "", ticksRead)
	if err != nil {
		return err
	}
	for i := range ticks {
		if ticks[i].Run == info.Run {
			depth = trigger.InputOf(&ticks[i]).Depth + 1
		}
	}
	tick, err := t.NewTick("run:"+info.Run, info.Updated, jsonvalue.NewObject(
		jsonvalue.Member{Key: "run", Value: info.Run},
		jsonvalue.Member{Key: "agent", Value: info.Agent},
		jsonvalue.Member{Key: "status", Value: info.Status},
		jsonvalue.Member{Key: "output", Value: state.Output},
		jsonvalue.Member{Key: "error", Value: state.Error},
	), trigger.Input{Depth: depth})
	if err != nil {
		tick = journal.Tick{Trigger: t.ID(), Key: "run:" + info.Run, Time: info.Updated, State: trigger.Failed, Note: err.Error()}
	}
	_, err = w.set.Store.AddTicks(ctx, nil, []journal.Tick{tick})
	return err
}
