package graph

import (
	"context"
	"errors"
	"slices"
	"time"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
)

// KindTimer is the Question.Kind of Sleep and SleepUntil. Such a question is no person's: Result.Timers and
// history.Snapshot.Timers have it, Result.Questions has not.
const KindTimer = "timer"

const (
	timerName   = "@time" // the Ask.Name of a timer, before that of NameQuestions
	timerSuffix = "#time" // after the path of its node, in the id of a timer, so that those of questions do not count it
)

// Sleep waits for a duration, as Interrupt waits for a person: it records until when, returns ErrWaiting, which the
// node must return, and the run ends as Waiting. No process needs to live meanwhile, and no timeout counts the time.
// Result.Due says when the run continues: a resume before that waits again, and one from then on runs the node again
// from its top, in which Sleep then returns nil, also in every later attempt. The clock is Runner.Clock. The time of
// each call is recorded once, and its duration is not looked at again; calls are distinguished by their order, and in
// several goroutines by NameQuestions. After a fork or an edit in the same step it begins again. A duration of 0 or less
// has passed already. Sleep needs a store.
func Sleep(ctx context.Context, d time.Duration) error {
	return sleep(ctx, timerData{after: d})
}

// SleepUntil is Sleep until a time. A time that has come already is recorded, too.
func SleepUntil(ctx context.Context, t time.Time) error {
	return sleep(ctx, timerData{at: t})
}

// timerData is the Ask.Data of a timer: the time at, or if that is zero, a duration after now.
type timerData struct {
	at    time.Time
	after time.Duration
}

// dueAt returns when the time of a timer that begins now has come.
func (t timerData) dueAt(now time.Time) time.Time {
	if t.at.IsZero() {
		return now.Add(t.after)
	}
	return t.at
}

func sleep(ctx context.Context, t timerData) error {
	a, ok := attemptOf(ctx)
	if !ok {
		return errors.New("graph: Sleep needs the context of a node")
	}
	if a.drive.journal == nil {
		return errors.New("graph: Sleep needs a store to wait in; give the Runner one")
	}
	name := timerName
	if given, ok := ctx.Value(questionName{}).(string); ok {
		name += " " + given
	}
	_, err := askFor[any](a, Ask{Name: name, Kind: KindTimer, Prompt: "waits for a time", Data: t})
	return err
}

// takesAnswers reports whether people and programs answer the question, not time, an event or another run alone.
func (q *Question) takesAnswers() bool {
	return q.Kind != KindRemote && q.Kind != KindTimer && q.Kind != KindEvent
}

// toDue returns a time as records hold it. It is never the zero time, which says that nothing is due.
func toDue(t time.Time) time.Time {
	if micro := t.UnixMicro(); micro != 0 {
		return record.TimeOf(micro)
	}
	return record.TimeOf(1)
}

// isDue reports whether time answers a question now.
func (q *Question) isDue(d *drive) bool { return !q.Due.IsZero() && !d.now().Before(q.Due) }

// splitTimers tells questions from timers.
func splitTimers(asked []Question) (questions, timers []Question) {
	if !slices.ContainsFunc(asked, func(q Question) bool { return q.Kind == KindTimer }) {
		return asked, nil
	}
	for _, q := range asked {
		if q.Kind == KindTimer {
			timers = append(timers, q)
		} else {
			questions = append(questions, q)
		}
	}
	return questions, timers
}

// firstDue returns when the first of some open questions and timers is due; zero: none ever is.
func firstDue(asked []Question) (due time.Time) {
	for _, q := range asked {
		if !q.Due.IsZero() && (due.IsZero() || q.Due.Before(due)) {
			due = q.Due
		}
	}
	return due
}

// dueTime returns when a root that waits is to be continued; zero: when its questions are answered.
func (d *drive) dueTime(f *frame) time.Time {
	due := firstDue(f.asked)
	if !d.until.IsZero() && (due.IsZero() || d.until.Before(due)) {
		return toDue(d.until)
	}
	return due
}

// deliverExpiry lets the drive deliver that time has answered questions.
func (d *drive) deliverExpiry(due []fold.OpenQuestion) {
	for _, o := range due {
		if q := &o.Asked.Question; q.Kind != KindTimer {
			d.questions.answered = append(d.questions.answered, QuestionAnswered{ID: q.ID, Refused: o.Asked.Refused})
		}
	}
}

// expireQuestions lets time answer what has become due while other tasks of the root's step worked. It reports whether
// there is such a question: then the step continues from what the journal holds of it. If a child has stopped at a
// break, that is left to the resume.
func (d *drive) expireQuestions(f *frame) (bool, error) {
	due := firstDue(f.asked)
	if f.breaks != nil || due.IsZero() || d.now().Before(due) {
		return false, nil
	}
	if err := d.journal.Flush(); err != nil {
		return false, err
	}
	s, err := d.journal.LoadThread()
	if err != nil {
		return false, err
	}
	open, recs := s.ExpireQuestions(d.now())
	if len(open) == 0 {
		return false, nil
	}
	if err := d.journal.AddRecords(true, recs...); err != nil {
		return false, err
	}
	d.deliverExpiry(open)
	d.deliverAnswers(f)
	f.raw = s.EnsureFrame("")
	f.frames = s.Frames
	return true, nil
}
