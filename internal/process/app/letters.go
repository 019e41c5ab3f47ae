package app

import (
	"context"
	"errors"
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
	mu    sync.Mutex
	runs  map[string]*Run // by id
	leave func()          // ends the looks, and waits for that; nil: no run is driven
}

// serveRun brings the letters of a run until release is called.
func (m *postman) serveRun(p *Process, r *Run) (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs == nil {
		m.runs = map[string]*Run{}
	}
	m.runs[r.ID] = r
	if m.leave == nil {
		m.leave = m.start(p)
	}
	return func() { m.forgetRun(r) }
}

// forgetRun brings no more letters of a run. When it returns, none is being brought that comes later.
func (m *postman) forgetRun(r *Run) {
	m.mu.Lock()
	delete(m.runs, r.ID)
	leave := m.leave
	if len(m.runs) == 0 {
		m.leave = nil
	} else {
		leave = func() {}
	}
	m.mu.Unlock()
	leave()
}

// start looks for letters now and then, until leave is called.
func (m *postman) start(p *Process) (leave func()) {
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
			if err := m.deliverLetters(ctx, p); err != nil && ctx.Err() == nil && p.Log != nil {
				p.Log.Warn("letters to runs cannot be read", "error", err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// deliverLetters gives the runs of this process the letters to them.
func (m *postman) deliverLetters(ctx context.Context, p *Process) error {
	box, err := p.openMail()
	if err != nil {
		return err
	}
	letters, err := box.ListLetters(ctx)
	if err != nil {
		return err
	}
	var failed error
	for i := range letters {
		l := &letters[i]
		m.mu.Lock()
		r := m.runs[l.Run]
		m.mu.Unlock()
		if r == nil || l.Fault != nil {
			continue
		}
		failed = errors.Join(failed, r.takeLetter(ctx, box, l))
	}
	return failed
}

// takeLetter does what a letter asks. What cannot be done yet stays: its sender looks after it.
func (r *Run) takeLetter(ctx context.Context, box mail.Box, l *mail.Letter) error {
	if l.Stop {
		_, err := box.RemoveLetter(ctx, l)
		if end := r.end.Load(); err == nil && end != nil {
			(*end)()
		}
		return err
	}
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

// An asking is a call of Driver.Ask, which ends when answers come from elsewhere.
type asking struct {
	mu     sync.Mutex
	over   bool         // nothing is accepted any more
	letter *mail.Letter // the first one that was offered
	cancel func()
}

// offer gives the answers of a letter, unless others came first.
func (a *asking) offer(l *mail.Letter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.letter != nil {
		return
	}
	a.letter = l
	a.cancel()
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
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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

// SendAnswers gives answers, each with the id of its question, to the process that drives a run with an id, and returns when that
// has recorded them. handed is false if no process drives the run any more: then the caller continues it with the
// answers. The error is that of the answers, or of the kind [failure.Stale] if the run did not ask in time; then none
// is recorded.
func (p *Process) SendAnswers(ctx context.Context, run string, answers []graph.Answer) (handed bool, err error) {
	box, err := p.openMail()
	if err != nil {
		return false, err
	}
	l := &mail.Letter{Run: run}
	if l.Answers, err = mail.PackAnswers(answers); err != nil {
		return false, err
	}
	return p.sendLetter(ctx, box, l)
}

// stopElsewhere asks the process that drives a run to stop it, and returns when that has begun to, or when no process
// drives the run any more.
func (p *Process) stopElsewhere(ctx context.Context, run string) error {
	box, err := p.openMail()
	if err == nil {
		_, err = p.sendLetter(ctx, box, &mail.Letter{Run: run, Stop: true})
	}
	return err
}

// sendLetter leaves a letter and waits until it is taken, as SendAnswers does.
func (p *Process) sendLetter(ctx context.Context, box mail.Box, l *mail.Letter) (handed bool, err error) {
	l.ID = graph.NewID(time.Now())
	if err := box.PutLetter(ctx, l); err != nil {
		return false, err
	}
	handed, err = p.awaitLetter(ctx, box, l)
	if !handed {
		taken, failed := box.RemoveLetter(context.WithoutCancel(ctx), l)
		if failed == nil && !taken && err == nil {
			return true, nil // it was taken in the last moment
		}
		err = errors.Join(err, failed)
	}
	return handed, err
}

// awaitLetter waits until a letter is taken. handed is false, without an error, if no process drives the run any more.
func (p *Process) awaitLetter(ctx context.Context, box mail.Box, l *mail.Letter) (handed bool, err error) {
	for end := time.Now().Add(letterPatience); ; {
		now, found, err := box.ReadLetter(ctx, l.Run, l.ID)
		switch {
		case err != nil:
			return false, err
		case !found:
			return true, nil
		case now.Fault != nil:
			return false, &graph.AnswerError{ID: now.Fault.Question, Open: now.Fault.Open, Reason: now.Fault.Reason}
		case time.Now().After(end):
			return false, failure.NewStale("try again when it waits: raddle inbox", "run %s is still working in another process, which did not take this", l.Run)
		}
		driven, err := runs.IsDriven(ctx, p.Runs, l.Run)
		if err != nil || !driven {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(replyPoll):
		}
	}
}
