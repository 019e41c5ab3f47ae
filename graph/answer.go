package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/journal"
)

// recordAnsweredQuestion records a question with the answer that was given within the drive. If wrong says why the
// node refuses that answer, the question is open again and the error is ErrWaiting.
func (a attempt) recordAnsweredQuestion(key string, asked *record.AskedQuestion, wrong error) error {
	j, path := a.drive.journal, a.frame.path
	asks := &record.Parts{Path: path, ID: key, Base: asked.Base, Question: &asked.Question}
	answers := &record.Parts{Path: path, ID: key, Ahead: asked.Ahead, Refused: asked.Refused, Value: asked.Answer}
	if asked.Question.Expired {
		answers.Due = asked.Question.Due.UnixMicro()
	}
	records := []journal.Record{fold.NewRecord(journal.KindQuestion, asks), fold.NewRecord(journal.KindAnswer, answers)}
	if wrong != nil {
		asked.Question.Rejected = wrong.Error()
		records = append(records, fold.NewRecord(journal.KindQuestion, asks))
	}
	if err := j.AddRecords(a.drive.savesEach(), records...); err != nil {
		return err
	}
	if wrong != nil {
		return cmp.Or(a.markWaiting(Question(asked.Question)), ErrWaiting)
	}
	return a.answeredNow(key, asked)
}

// answeredNow keeps a question with an answer given ahead, for the events of the step
// and for the next attempt.
func (a attempt) answeredNow(key string, q *record.AskedQuestion) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotHungLocked(); err != nil {
		return err
	}
	in := a.ensureInner()
	fold.SetEntry(&in.asks, key, q)
	if q.Question.Kind != KindTimer {
		in.notes = append(in.notes, QuestionAsked{Question(q.Question)}, QuestionAnswered{ID: q.Question.ID, Ahead: q.Ahead > 0, Refused: q.Refused})
	}
	return nil
}

// recallAnswer returns the answer that the journal holds for a question, if any.
func (a attempt) recallAnswer(q *record.AskedQuestion) ([]byte, error) {
	if !q.Answered {
		return nil, cmp.Or(a.markWaiting(Question(q.Question)), ErrWaiting)
	}
	return answerOf(q)
}

// FindAnswer returns the answer that the journal holds to the next question of the node with a name: the one that
// [Interrupt] with this Ask.Name would return at once. ok is false if that question was not asked yet, or is open:
// FindAnswer asks nothing, and the next call of Interrupt stays the same question. So a node that asks only under some
// circumstances keeps to what a person has answered after they have changed. The error is a *RefusedError as for
// Interrupt, with ok, or says why the answer cannot be decoded into an A.
func FindAnswer[A any](ctx context.Context, name string) (answer A, ok bool, err error) {
	a, inNode := attemptOf(ctx)
	if !inNode {
		return answer, false, errors.New("graph: FindAnswer needs the context of a node")
	}
	a.mu.Lock()
	key := EffectID{Task: a.localIDLocked(), Name: name, Call: a.ensureInner().ordinals.PeekOrdinal("?" + name)}.String()
	a.mu.Unlock()
	q := a.findQuestion(key)
	if q == nil || !q.Answered {
		return answer, false, nil
	}
	raw, err := answerOf(q)
	if err != nil {
		return answer, true, err
	}
	given, err := value.DecodeAnswer[A](raw)
	if err != nil {
		return answer, false, err
	}
	return value.ClipAs(given), true, nil
}

func answerOf(q *record.AskedQuestion) ([]byte, error) {
	if q.Refused == "" {
		return q.Answer, nil
	}
	e := &RefusedError{Reason: q.Refused, Value: q.Answer}
	if q.Question.Expired {
		e.Due = q.Question.Due
	}
	return nil, e
}

// recordAnswers checks the answers given to a resume, all before any is recorded. Then it
// gathers the drive's claim and their records: the claim, with what stands before it, first, because the time before
// it does not count as active.
func (d *drive) recordAnswers(s *fold.Thread, answers []Answer, claim ...journal.Record) error {
	now := d.now()
	open, values, err := d.settings.Graph.checkAnswers(s, answers, now)
	if err != nil {
		return err
	}
	recs := append(claim, newAnswerRecords(open, values, answers)...)
	due, expiries := s.ExpireQuestions(now)
	if err := d.journal.AddRecords(false, append(recs, expiries...)...); err != nil {
		return err
	}
	d.deliverExpiry(due)
	for i, a := range answers {
		o := open[i]
		o.Asked.Answered, o.Asked.Now, o.Asked.Answer, o.Asked.Refused = true, true, values[i], a.Refused
		d.questions.answered = append(d.questions.answered, QuestionAnswered{ID: o.Asked.Question.ID, Refused: a.Refused, By: a.By})
	}
	return nil
}

// replyTo asks the Reply of the input or resume for an answer within the drive. The value is JSON; if nil,
// the question stays open.
func (s *questionState) replyTo(q *Question, n *compiledNode) []byte {
	if s.reply == nil || !q.takesAnswers() && q.Kind != KindEvent {
		return nil
	}
	v, ok := s.reply(*q)
	if !ok {
		return nil
	}
	b, err := value.MarshalAnswer(v)
	if err != nil || (*record.Question)(q).DescribeMismatch(b, "") != "" || n.checkAnswer(q, Answer{ID: q.ID}, b) != nil {
		return nil
	}
	return b
}

// deliverAnswers delivers the answers that the drive itself has recorded.
func (d *drive) deliverAnswers(f *frame) {
	if d.topics&TopicQuestion != 0 {
		for _, a := range d.questions.answered {
			d.out.deliverEvent(Event{Step: f.step, Body: a})
		}
	}
	d.questions.answered = nil
}

// CheckAnswers reports whether Resume would accept the answers. The error is the one
// that Resume would return, usually an *AnswerError. Nothing is recorded.
func (r *Runner) CheckAnswers(ctx context.Context, thread string, answers ...Answer) error {
	if !r.Graph.isCompiled() {
		return errNoGraph
	}
	if r.Store == nil {
		return errors.New("graph: checking answers needs a store; give the Runner one")
	}
	s, err := fold.LoadThread(ctx, r.Store, thread, 0)
	switch {
	case err != nil:
		return err
	case s.Head == 0:
		return fmt.Errorf("%w: %s", journal.ErrNoThread, thread)
	case s.Run.Status.Final() && len(answers) > 0:
		return &AnswerError{ID: answers[0].ID, Reason: fmt.Sprintf("run %s is over (%s)", s.Run.ID, Status(s.Run.Status))}
	}
	_, _, err = r.Graph.checkAnswers(s, answers, r.newDrive(0).now())
	return err
}

// checkAnswers returns the question of each answer and the JSON of its value. The
// error is an *AnswerError, also for an answer that comes after the deadline of its question.
func (g *Graph) checkAnswers(s *fold.Thread, answers []Answer, now time.Time) (asked []fold.OpenQuestion, values [][]byte, err error) {
	open := s.OpenQuestions()
	var ids []string
	for _, o := range open {
		ids = append(ids, o.Asked.Question.ID)
	}
	wrong := func(a Answer, why error) error {
		return &AnswerError{ID: a.ID, Open: ids, Reason: why.Error(), Err: why}
	}
	for _, a := range answers {
		if a.ID == "" {
			at, n := fold.FindOnlyQuestion(open, func(q *record.Question) bool { return (*Question)(q).takesAnswers() })
			if n != 1 {
				return nil, nil, wrong(a, fmt.Errorf("it names no question, and %d are open", n))
			}
			a.ID = ids[at]
		}
		at := slices.Index(ids, a.ID)
		if at < 0 {
			return nil, nil, wrong(a, s.DescribeUnknown(a.ID))
		}
		if due := open[at].Asked.Question.Due; !due.IsZero() && !now.Before(due) {
			return nil, nil, wrong(a, fold.ErrLate(due))
		}
		if slices.ContainsFunc(asked, func(o fold.OpenQuestion) bool { return o.Asked == open[at].Asked }) {
			return nil, nil, wrong(a, errors.New("answered twice"))
		}
		b, err := value.MarshalAnswer(a.Value)
		if err != nil {
			return nil, nil, wrong(a, err)
		}
		q := (*Question)(&open[at].Asked.Question)
		if why := (*record.Question)(q).DescribeMismatch(b, a.Refused); why != "" {
			return nil, nil, wrong(a, errors.New(why))
		}
		if err := g.findAskingNode(s, open[at]).checkAnswer(q, a, b); err != nil {
			return nil, nil, wrong(a, err)
		}
		asked, values = append(asked, open[at]), append(values, b)
	}
	return asked, values, nil
}

// checkAnswer returns why the node refuses an answer with a value in JSON, or nil. If n
// is nil, every answer is accepted.
func (n *compiledNode) checkAnswer(q *Question, a Answer, value []byte) (err error) {
	if n == nil || n.CheckAnswer == nil || a.Refused != "" {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("CheckAnswer of node "+n.Name, p)
		}
	}()
	a.Value = nil
	if err := json.Unmarshal(value, &a.Value); err != nil {
		return err
	}
	return n.CheckAnswer(*q, a)
}
