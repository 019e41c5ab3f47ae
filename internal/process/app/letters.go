package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/storage/runs"
)

const (
	// letterPoll is the time between two looks for letters to the runs of this process.
	letterPoll = time.Second

	// replyPoll is the time between two looks of a sender whether its letter was taken.
	replyPoll = 100 * time.Millisecond

	// letterPatience is how long a sender waits for that. A drive may be between two steps, or not ask yet.
	letterPatience = 5 * time.Second
)

// A postman brings letters to the runs that this process drives. The zero postman has none. It is safe for concurrent
// use.
type postman struct {
	mu     sync.Mutex
	served map[string]served // by the id of the run
	leave  func()            // ends the looks, and waits for that; nil: no run is driven
}

// served is a run that gets its letters.
type served struct {
	run  *Run
	stop func() // stops its drive, which can be continued
}

// serveRun brings the letters of a run until release is called. On a store that keeps no letters it brings none.
func (m *postman) serveRun(p *Process, r *Run, stop func()) (release func()) {
	box, err := p.openMail()
	if err != nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served == nil {
		m.served = map[string]served{}
	}
	m.served[r.ID] = served{r, stop}
	if m.leave == nil {
		m.leave = m.start(box, p.Log)
	}
	return func() { m.forgetRun(r) }
}

// forgetRun brings no more letters of a run. When it returns, none is being brought that comes later.
func (m *postman) forgetRun(r *Run) {
	leave := func() {}
	m.mu.Lock()
	delete(m.served, r.ID)
	if len(m.served) == 0 {
		leave = m.leave
		m.leave = nil
	}
	m.mu.Unlock()
	leave()
}

// start looks for letters now and then, until leave is called.
func (m *postman) start(box mail.Box, log *slog.Logger) (leave func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(letterPoll)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if err := m.deliverLetters(ctx, box); err != nil && ctx.Err() == nil && log != nil {
				log.Warn("letters to runs cannot be read", "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// deliverLetters gives the runs of this process the letters to them.
func (m *postman) deliverLetters(ctx context.Context, box mail.Box) error {
	letters, err := box.ListLetters(ctx)
	if err != nil {
		return err
	}
	var failed error
	for i := range letters {
		l := &letters[i]
		m.mu.Lock()
		to, known := m.served[l.Run]
		m.mu.Unlock()
		switch {
		case !known || l.Fault != nil:
		case l.Message != nil:
			failed = errors.Join(failed, to.run.takeMessage(ctx, box, l))
		case l.Stop:
			if _, err := box.RemoveLetter(ctx, l); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			to.stop()
		default:
			failed = errors.Join(failed, to.run.takeAnswers(ctx, box, l))
		}
	}
	return failed
}

// takeAnswers gives a run the answers of a letter. What cannot be done yet stays: its sender looks after it.
func (r *Run) takeAnswers(ctx context.Context, box mail.Box, l *mail.Letter) error {
	_, _, err := r.AnswerNow(l.UnpackAnswers())
	if a := r.asking.Load(); a != nil && errors.Is(err, graph.ErrNotDriven) {
		if err = r.CheckAnswers(ctx, l.UnpackAnswers()...); err == nil {
			a.offer(l)
			return nil
		}
	}
	wrong, refused := errors.AsType[*graph.AnswerError](err)
	switch {
	case err == nil:
		_, err = box.RemoveLetter(ctx, l)
		return err
	case refused && (len(wrong.Open) > 0 || r.hasAnswer(ctx, wrong.ID)):
		l.Fault = &mail.Fault{Question: wrong.ID, Open: wrong.Open, Reason: wrong.Reason}
		return box.PutLetter(ctx, l)
	}
	return nil
}

// hasAnswer reports whether a question of the run was answered.
func (r *Run) hasAnswer(ctx context.Context, question string) bool {
	given, err := r.process.Runs.FindAnswer(ctx, r.ID, question)
	return err == nil && given != nil
}

// ErrAnsweredElsewhere is the cause of the end of the context of Driver.Ask when answers have come from elsewhere.
var ErrAnsweredElsewhere = errors.New("answered elsewhere")

// ErrStoppedElsewhere is in the error of Drive when another process has stopped it, because it ends the run.
var ErrStoppedElsewhere = errors.New("another process has stopped it, to end it")

// An asking is a call of Driver.Ask, which ends when answers come from elsewhere.
type asking struct {
	mu     sync.Mutex
	over   bool         // nothing is accepted any more
	letter *mail.Letter // the first one that was offered
	cancel context.CancelCauseFunc
}

// offer gives the answers of a letter, unless others came first.
func (a *asking) offer(l *mail.Letter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.letter != nil {
		return
	}
	a.letter = l
	a.cancel(ErrAnsweredElsewhere)
}

// end returns the letter that was offered, nil for none, and accepts no other.
func (a *asking) end() *mail.Letter {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.letter
}

// ask asks with Driver.Ask, until answers come from elsewhere. Then they count, and the letter that has brought them is
// to be removed when they are recorded; otherwise it is nil.
func (r *Run) ask(ctx context.Context, d *Driver, open []graph.Question) (answers []graph.Answer, park bool, from *mail.Letter, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &asking{cancel: cancel}
	r.asking.Store(a)
	defer r.asking.Store(nil)
	answers, park, err = d.ask(ctx, open)
	if l := a.end(); l != nil {
		return l.UnpackAnswers(), false, l, nil
	}
	return answers, park, nil, err
}

// removeRecorded returns a Driver that removes a letter when the answers with which the drive begins are recorded. The
// letter may be nil.
func (r *Run) removeRecorded(ctx context.Context, d Driver, l *mail.Letter) Driver {
	if l == nil {
		return d
	}
	d.Topics |= graph.TopicRun
	d.Recorded = func(runs.Point) {
		if box, err := r.process.openMail(); err == nil {
			_, _ = box.RemoveLetter(ctx, l) // else its sender finds the answers in the journal
		}
	}
	return d
}

// openMail returns the mail of the store.
func (p *Process) openMail() (mail.Box, error) {
	st, err := p.Runs.OpenMemory()
	return mail.Box{Store: st}, err
}

// SendAnswers gives answers, each with the id of its question, to the process that drives a run, which is named by its
// whole id, and returns when that has recorded them. handed is false if no process drives the run any more: then the
// caller continues it with the answers. The error is that of the answers, or of the kind [failure.Stale] if the run did
// not ask in time; then none is recorded.
func (p *Process) SendAnswers(ctx context.Context, run string, answers []graph.Answer) (handed bool, err error) {
	l := &mail.Letter{Run: run}
	if l.Answers, err = mail.PackAnswers(answers); err != nil {
		return false, err
	}
	handed, err = p.sendLetter(ctx, l)
	if late, ok := errors.AsType[*failure.Error](err); ok && late.Kind == failure.Stale && p.haveRecorded(ctx, l) {
		return true, nil // in the last moment
	}
	return handed, err
}

// haveRecorded reports whether a run has recorded all answers of a letter.
func (p *Process) haveRecorded(ctx context.Context, l *mail.Letter) bool {
	for _, a := range l.Answers {
		given, err := p.Runs.FindAnswer(ctx, l.Run, a.ID)
		if err != nil || given == nil || given.By != a.By || !bytes.Equal(given.Value, a.Value) {
			return false
		}
	}
	return true
}

// sendLetter leaves a letter and waits until it is taken. handed is false, without an error, if no process drives the
// run any more.
func (p *Process) sendLetter(ctx context.Context, l *mail.Letter) (handed bool, err error) {
	box, err := p.openMail()
	if err != nil {
		return false, err
	}
	l.ID = graph.NewID(time.Now())
	if err := box.PutLetter(ctx, l); err != nil {
		return false, err
	}
	driven := true
	taken, err := poll(ctx, func() (bool, error) {
		now, found, err := box.ReadLetter(ctx, l.Run, l.ID)
		if err != nil || !found {
			return !found, err
		}
		if now.Fault != nil {
			return false, &graph.AnswerError{ID: now.Fault.Question, Open: now.Fault.Open, Reason: now.Fault.Reason}
		}
		driven, err = runs.IsDriven(ctx, p.Runs, l.Run)
		return !driven, err
	})
	if taken && driven {
		return true, nil
	}
	if !taken && err == nil {
		err = failure.NewStale("try again when it waits: raddle inbox", "run %s is still working in another process, which did not take this", l.Run)
	}
	left, failed := box.RemoveLetter(context.WithoutCancel(ctx), l)
	if failed == nil && !left && err == nil {
		return true, nil // it was taken in the last moment
	}
	return false, errors.Join(err, failed)
}

// stopElsewhere stops the drive of a run in another process, which may drive others, and returns when it has ended, or
// when it does not end in time.
func (p *Process) stopElsewhere(ctx context.Context, run string) {
	if _, err := p.sendLetter(ctx, &mail.Letter{Run: run, Stop: true}); err != nil {
		return
	}
	_, _ = poll(ctx, func() (bool, error) {
		driven, err := runs.IsDriven(ctx, p.Runs, run)
		return !driven, err
	})
}

// poll calls done now and then until it returns true or an error, for at most letterPatience. The end of ctx is an error.
func poll(ctx context.Context, done func() (bool, error)) (ok bool, err error) {
	end := time.After(letterPatience)
	every := time.NewTicker(replyPoll)
	defer every.Stop()
	for {
		if ok, err = done(); ok || err != nil {
			return ok, err
		}
		select {
		case <-end:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-every.C:
		}
	}
}
