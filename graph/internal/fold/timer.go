package fold

import (
	"errors"
	"fmt"
	"time"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// ExpireQuestions lets time answer the open questions and timers that are due, and returns them with the records of
// the answers, which the caller must append.
func (s *Thread) ExpireQuestions(now time.Time) (due []OpenQuestion, recs []journal.Record) {
	for _, o := range s.ListOpen() {
		q := &o.Asked.Question
		if q.Due.IsZero() || now.Before(q.Due) {
			continue
		}
		b := &record.Parts{Path: o.Path, ID: o.Key, Due: q.Due.UnixMicro()}
		b.Value, b.Refused = q.AnswerOfTime(q.Kind == KindTimer)
		o.Asked.Answered = true
		o.Asked.Now = true
		o.Asked.Answer = b.Value
		o.Asked.Refused = b.Refused
		q.Expired = true
		due = append(due, o)
		recs = append(recs, NewRecord(journal.KindAnswer, b))
	}
	return due, recs
}

// ErrLate says that an answer has come after the deadline of its question.
func ErrLate(due time.Time) error {
	return fmt.Errorf("it is too late: the deadline was %s, and the run continues without an answer", due.Format(time.RFC3339))
}

// DescribeUnknown returns why an answer to a question that is not open is refused.
func (s *Thread) DescribeUnknown(id string) error {
	for _, f := range s.Frames {
		for _, q := range f.Asks {
			switch {
			case q.Question.ID != id:
			case q.Question.Kind == KindTimer:
				return errors.New("it waits for a time, not for an answer")
			case q.Question.Expired:
				return ErrLate(q.Question.Due)
			}
		}
	}
	return errors.New("no such question is open")
}
