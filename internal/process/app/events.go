package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/storage/runs"
)

// An EventRequest is an event to send.
type EventRequest struct {
	Name string
	Data json.RawMessage // any JSON; nil: null
	Key  string          // distinguishes it from other events with its name, so that sending it again does nothing; "": a new one
	Run  string          // the only run that may take it; "": every run
	Life time.Duration   // how long it is kept for runs that wait later; 0: mail.EventLife
}

// An EventSent says what has become of an event.
type EventSent struct {
	Name  string   `json:"name"`
	Key   string   `json:"key"`
	Runs  []string `json:"runs"`  // that have taken it
	Kept  bool     `json:"kept"`  // no run has: it waits for one
	Again bool     `json:"again"` // it was sent before with this key

	// Data is the data of the event as it is kept, without secrets; nil: it is not kept, because it was refused.
	Data json.RawMessage `json:"-"`
}

// A ContinueFunc continues a run with answers to its open questions, or has that done, and returns when the answers are
// recorded.
type ContinueFunc func(ctx context.Context, run string, answers []graph.Answer) error

// SendEvent gives an event to all runs that wait for it. If none does, it is kept for the first run that waits. Sending
// it again with its key completes what was left, and otherwise does nothing. The error is the first one of a run that
// did not take the event; the others have taken it.
func (p *Process) SendEvent(ctx context.Context, req EventRequest, resume ContinueFunc) (sent EventSent, err error) {
	e, err := p.prepareEvent(ctx, &req)
	if err != nil {
		return sent, err
	}
	sent = EventSent{Name: req.Name, Key: e.Key, Runs: []string{}}
	box, err := p.openMail()
	if err != nil {
		return sent, err
	}
	before, again, err := box.ReadEvent(ctx, e.Name, e.Key)
	switch {
	case err != nil:
		return sent, err
	case again && !bytes.Equal(before.Data, e.Data):
		return sent, failure.NewUsage("use another key, or the same data", "the event %s with the key %q was sent before with other data", e.Name, e.Key)
	case again:
		e = &before
		sent.Again = true
	default:
		if err := box.PutEvent(ctx, e, e.RestOfLife(time.Now())); err != nil {
			return sent, err
		}
	}
	sent.Data = e.Data
	var failed error
	if !e.Delivered {
		failed = p.deliverEvent(ctx, box, e, resume)
		if now, ok, err := box.ReadEvent(ctx, e.Name, e.Key); err == nil && ok {
			e.Taken = mergeTaken(e.Taken, now.Taken) // a run that began to wait meanwhile has taken it
		}
		e.Delivered = failed == nil
		failed = errors.Join(failed, box.PutEvent(ctx, e, e.RestOfLife(time.Now())))
	}
	for _, taken := range e.Taken {
		run, _, _ := strings.Cut(taken, " ")
		if !slices.Contains(sent.Runs, run) {
			sent.Runs = append(sent.Runs, run)
		}
	}
	sent.Kept = len(e.Taken) == 0
	return sent, failed
}

// FindNearEvent returns the name of an event that runs wait for and that someone may have meant who has sent another one;
// "" if there is none.
func (p *Process) FindNearEvent(ctx context.Context, name string) (string, error) {
	box, err := p.openMail()
	if err != nil {
		return "", err
	}
	waits, err := box.ListWaits(ctx, "")
	if err != nil {
		return "", err
	}
	names := map[string]bool{}
	for _, w := range waits {
		names[w.Event] = true
	}
	if names[name] { // its runs want other data
		return "", nil
	}
	return wording.FindNearest(name, slices.Sorted(maps.Keys(names))), nil
}

const (
	maxEventLife = 365 * 24 * time.Hour // for which an event is kept
	maxEventKey  = 300                  // bytes
)

// prepareEvent checks a request and returns its event, without secrets.
func (p *Process) prepareEvent(ctx context.Context, req *EventRequest) (*mail.Event, error) {
	data := cmp.Or(string(req.Data), "null")
	life := cmp.Or(req.Life, mail.EventLife)
	switch {
	case strings.TrimSpace(req.Name) == "":
		return nil, failure.NewUsage("name it as `event:` of the node does that waits for it", "the event has no name")
	case len(req.Name) > graph.MaxEventName || len(req.Key) > maxEventKey:
		return nil, failure.NewUsage("shorten them", "the name of an event has at most %d bytes, and its key %d", graph.MaxEventName, maxEventKey)
	case !json.Valid([]byte(data)):
		return nil, failure.NewUsage(`write it for example as '{"order": 7}'`, "the data of the event is not JSON")
	case life < time.Second || life > maxEventLife:
		return nil, failure.NewUsage("", "an event is kept for a second to a year, not %v", life)
	}
	if req.Run != "" {
		detail, err := p.Runs.ReadRunDetail(ctx, req.Run)
		if err != nil {
			return nil, err
		}
		req.Run = detail.Run
	}
	now := time.Now()
	var compact bytes.Buffer
	if err := json.Compact(&compact, redact.RedactJSON(json.RawMessage(data), p.Tools.SecretSet().Text)); err != nil {
		return nil, err
	}
	return &mail.Event{
		Name:  req.Name,
		Key:   cmp.Or(req.Key, graph.NewID(now)),
		Data:  compact.Bytes(),
		Run:   req.Run,
		Sent:  now,
		Until: now.Add(life),
	}, nil
}

// deliverEvent gives an event to the runs that wait for it.
func (p *Process) deliverEvent(ctx context.Context, box mail.Box, e *mail.Event, resume ContinueFunc) (failed error) {
	waits, err := box.ListWaits(ctx, e.Name)
	if err != nil {
		return err
	}
	for i := range waits {
		w := &waits[i]
		// what is noted for this question may not have reached it: the sender may have been killed
		if e.Run != "" && e.Run != w.Run || hasTaken(e, w.Run) && !slices.Contains(e.Taken, w.Run+" "+w.Question) {
			continue
		}
		accepts, over, err := p.checkWait(ctx, w, e)
		switch {
		case err != nil:
			failed = cmp.Or(failed, err)
			continue
		case over:
			failed = cmp.Or(failed, box.RemoveWait(ctx, w))
			continue
		case !accepts:
			continue
		}
		if err := p.giveEvent(ctx, box, e, w, resume); err != nil {
			failed = cmp.Or(failed, fmt.Errorf("run %s: %w", w.Run, err))
		}
	}
	return failed
}

// giveEvent gives an event to a question. That it is taken is noted first: the run may wait for the next event before
// the caller has its answer.
func (p *Process) giveEvent(ctx context.Context, box mail.Box, e *mail.Event, w *mail.Wait, resume ContinueFunc) error {
	mine := w.Run + " " + w.Question
	before := slices.DeleteFunc(slices.Clone(e.Taken), func(taken string) bool { return taken == mine })
	e.Taken = append(slices.Clip(before), mine)
	if err := box.PutEvent(ctx, e, e.RestOfLife(time.Now())); err != nil {
		return err
	}
	err := p.continueOrSend(ctx, w.Run, []graph.Answer{{ID: w.Question, Value: e.Data, By: "event " + e.Key}}, resume)
	err = runs.ExplainAnswered(ctx, p.Runs, w.Run, []string{w.Question}, err)
	if err == nil {
		return box.RemoveWait(ctx, w)
	}
	if given, answered := errors.AsType[*runs.AnsweredError](err); answered {
		if given.Answer.By == "event "+e.Key {
			return nil // a sender that was killed had given it
		}
		err = nil // something else was faster
	}
	e.Taken = before
	return errors.Join(err, box.PutEvent(ctx, e, e.RestOfLife(time.Now())))
}

// checkWait reports whether a question waits for an event like this one, and whether its run is over. A question that is
// not recorded yet finds the event itself: see takeEvent.
func (p *Process) checkWait(ctx context.Context, w *mail.Wait, e *mail.Event) (accepts, over bool, err error) {
	detail, err := p.Runs.ReadRunDetail(ctx, w.Run)
	if _, gone := errors.AsType[*runs.UnknownError](err); gone {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	for i := range detail.Snapshot.Questions {
		q := &detail.Snapshot.Questions[i]
		if wanted, ok := graph.EventWaitOf(q); ok && q.ID == w.Question {
			return wanted.Accepts(e.Name, e.Data), false, nil
		}
	}
	return false, detail.Snapshot.Status.Final(), nil
}

// continueOrSend continues a run with answers, or gives them to the process that drives it.
func (p *Process) continueOrSend(ctx context.Context, run string, answers []graph.Answer, resume ContinueFunc) error {
	for {
		err := resume(ctx, run, answers)
		if !errors.As(err, new(*runs.BusyError)) && !errors.As(err, new(*graph.BusyError)) {
			return err
		}
		if handed, err := p.SendAnswers(ctx, run, answers); handed || err != nil {
			return err
		}
	}
}

// hasTaken reports whether a run has taken an event.
func hasTaken(e *mail.Event, run string) bool {
	return slices.ContainsFunc(e.Taken, func(t string) bool { return strings.HasPrefix(t, run+" ") })
}

// mergeTaken returns what is in either of two lists.
func mergeTaken(a, b []string) []string {
	for _, t := range b {
		if !slices.Contains(a, t) {
			a = append(a, t)
		}
	}
	return a
}

// withEvents returns a Reply that answers with next, which may be nil, and the questions of Await that it leaves out with
// events that came before.
func (r *Run) withEvents(ctx context.Context, p *Process, next graph.Reply) graph.Reply {
	return func(q graph.Question) (any, bool) {
		if next != nil {
			if v, ok := next(q); ok {
				return v, true
			}
		}
		w, ok := graph.EventWaitOf(&q)
		if !ok {
			return nil, false
		}
		wait := mail.Wait{Event: w.Name, Run: r.ID, Question: q.ID}
		r.waits.add(wait)
		data, ok, err := p.takeEvent(ctx, &wait, &w)
		if err != nil && p.Log != nil {
			p.Log.Warn("events that came before cannot be read", "run", r.ID, "event", w.Name, "error", err)
		}
		return data, ok
	}
}

// takeEvent notes that a question waits, and takes the oldest event for it that was kept. ok is false if there is none.
func (p *Process) takeEvent(ctx context.Context, wait *mail.Wait, w *graph.EventWait) (data json.RawMessage, ok bool, err error) {
	box, err := p.openMail()
	if err != nil {
		return nil, false, err
	}
	if err := box.PutWait(ctx, wait); err != nil { // first: an event may be sent while the kept ones are read
		return nil, false, err
	}
	kept, err := box.ListEvents(ctx, w.Name)
	if err != nil {
		return nil, false, err
	}
	slices.SortStableFunc(kept, func(a, b mail.Event) int { return a.Sent.Compare(b.Sent) })
	mine := wait.Run + " " + wait.Question
	for i := range kept {
		e := &kept[i]
		before := slices.Contains(e.Taken, mine) // the process was killed before it recorded that
		if !before && len(e.Taken) > 0 || e.Run != "" && e.Run != wait.Run || !w.Accepts(e.Name, e.Data) {
			continue
		}
		if !before {
			e.Taken = append(e.Taken, mine)
			if err := box.PutEvent(ctx, e, e.RestOfLife(time.Now())); err != nil {
				return nil, false, err
			}
			// another run may have been faster; if the store does not say that, the event is this one's
			if now, _, err := box.ReadEvent(ctx, e.Name, e.Key); err == nil && !slices.Contains(now.Taken, mine) {
				continue
			}
		}
		return e.Data, true, box.RemoveWait(ctx, wait)
	}
	return nil, false, nil
}

// A waitList holds the events for which a run waits. It is safe for concurrent use.
type waitList struct {
	mu   sync.Mutex
	list []mail.Wait
}

func (l *waitList) add(w mail.Wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, w)
}

// forgetWaits removes the notes of questions that wait no more after a drive with this result. What it does not remove
// goes when an event with the name is sent after the end of the run.
func (r *Run) forgetWaits(ctx context.Context, res graph.Result) {
	if res.Status != graph.Waiting && !res.Status.Final() {
		return
	}
	r.waits.mu.Lock()
	defer r.waits.mu.Unlock()
	list := r.waits.list
	for i := range r.Questions {
		if w, ok := graph.EventWaitOf(&r.Questions[i]); ok {
			list = append(list, mail.Wait{Event: w.Name, Run: r.ID, Question: r.Questions[i].ID})
		}
	}
	if len(list) == 0 {
		return
	}
	r.waits.list = nil
	box, err := r.process.openMail()
	if err != nil {
		return
	}
	for i := range list {
		w := &list[i]
		if slices.ContainsFunc(res.Questions, func(q graph.Question) bool { return q.ID == w.Question }) {
			r.waits.list = append(r.waits.list, *w)
			continue
		}
		_ = box.RemoveWait(context.WithoutCancel(ctx), w)
	}
}

// ListEvents returns the events with a name that are kept, the newest first; with an empty name, all.
func (p *Process) ListEvents(ctx context.Context, name string) ([]mail.Event, error) {
	st, err := p.Runs.OpenExistingMemory()
	if err != nil {
		return nil, err
	}
	list, err := mail.Box{Store: st}.ListEvents(ctx, name)
	slices.SortStableFunc(list, func(a, b mail.Event) int { return b.Sent.Compare(a.Sent) })
	return append([]mail.Event{}, list...), err
}

// ContinueQuietly returns a ContinueFunc for a command: a server of the store continues the run, or else this process
// does, until the run ends or waits, and asks nothing.
func (p *Process) ContinueQuietly(hooks UIHooks) ContinueFunc {
	return func(ctx context.Context, id string, answers []graph.Answer) error {
		run, err := p.ResumeRun(ctx, id, ResumeOptions{UIHooks: hooks})
		if err != nil {
			return err
		}
		defer run.Close()
		recording, served := runs.WithServers(ctx, p.Runs, run.Thread, run.ID)
		if served {
			_, err = RecordChange(recording, p, RunChange{Run: run, Answers: answers})
			return err
		}
		var at runs.Point
		_, err = run.Drive(ctx, Driver{
			Begin:    answers,
			Topics:   graph.TopicRun,
			Recorded: func(p runs.Point) { at = p },
		})
		return ignoreLater(at, err) // how the run ends afterwards is its own matter
	}
}
