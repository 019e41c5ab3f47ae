package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/foreign"
)

// An Answer is an answer that was given to a question of a run.
type Answer struct {
	ID string `json:"id"` // of the question
	// By is the name of the token that was used; absent: it was given at a terminal, or by a program.
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
	Ahead   bool      `json:"ahead,omitempty"`   // it was given with the start of the run
	Refused string    `json:"refused,omitempty"` // why there will be no answer

	Value json.RawMessage `json:"answer,omitempty"` // what was answered; absent: it was refused

	Run string `json:"run,omitempty"` // in which it was given, if this one is a copy of that; absent: in this one
}

// AnswersOf returns the answers among what happened in a run, oldest first.
func AnswersOf(story []Moment) []Answer {
	list := []Answer{}
	for _, m := range story {
		if m.Kind == journal.KindAnswer && m.Question != nil && m.Question.Kind != graph.KindTimer {
			list = append(list, Answer{ID: m.Question.ID, By: m.By, At: m.Time.UTC(), Ahead: m.Ahead, Refused: m.Refused})
			if m.Refused == "" && json.Valid(m.Content.Answer) {
				list[len(list)-1].Value = m.Content.Answer
			}
		}
	}
	return list
}

// ListAnswers returns the answers on which a run rests, oldest first: those of its story, and for a copy also those
// that were given before the record that was copied. complete is false if a part of the history is not in the store any
// more, or damaged.
func ListAnswers(ctx context.Context, a *Archive, story []Moment) (list []Answer, complete bool, err error) {
	list = AnswersOf(story)
	seen := map[string]bool{}
	for {
		// its beginning was pruned, or lost
		if len(story) == 0 || story[0].Kind != journal.KindStart && story[0].Kind != journal.KindFork {
			return list, false, nil
		}
		from := story[0].Entry.From
		if from.Thread == "" || seen[from.Thread] {
			return list, true, nil
		}
		seen[from.Thread] = true
		story, err = a.ReadStory(ctx, from.Thread, from.Seq)
		// it was removed, or cannot be read
		if errors.As(err, new(*UnknownError)) || errors.Is(err, journal.ErrNoThread) || IsDamage(err) {
			return list, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		before := AnswersOf(story)
		for i := range before {
			before[i].Run = from.Thread
		}
		list = append(before, list...)
	}
}

// RestsOnAnswers reports whether people have answered questions before RUN or RUN@N: what the run does from there rests
// on that. It is true if that is not known.
func RestsOnAnswers(ctx context.Context, a *Archive, point string) (bool, error) {
	_, at, err := a.resolvePoint(ctx, point)
	if err != nil {
		return false, err
	}
	story, err := a.ReadStory(ctx, at.Thread, at.Seq)
	if err != nil {
		return false, err
	}
	list, complete, err := ListAnswers(ctx, a, story)
	return len(list) > 0 || !complete, err
}

// Describe says what was answered, by whom and when: `was answered "no" by ann at 2026-11-25T10:00:00Z`.
func (a *Answer) Describe() string {
	text := "was answered"
	switch {
	case a.Refused != "":
		text = "was refused (" + wording.CutText(a.Refused, maxAnswerText, "…") + ")"
	case len(a.Value) > 0:
		text += " " + wording.CutText(string(a.Value), maxAnswerText, "…")
	}
	if a.By != "" {
		text += " by " + a.By
	}
	return text + " at " + a.At.Format(time.RFC3339)
}

// maxAnswerText is how many characters of an answer are in a text about it.
const maxAnswerText = 80

// An AnsweredError reports a question that was answered before.
type AnsweredError struct {
	Run    string
	Answer Answer
	Err    error // why the other answer was refused
}

// Unwrap returns why the other answer was refused.
func (e *AnsweredError) Unwrap() error { return e.Err }

// Error says which question was answered, how, by whom and when.
func (e *AnsweredError) Error() string {
	return fmt.Sprintf("question %q of run %s %s", e.Answer.ID, e.Run, e.Answer.Describe())
}

// ExplainAnswered returns an [*AnsweredError] if answers were refused because a question has an answer already.
// questions are the ids that were answered; "" means the only one that is open, or the last one that was.
func ExplainAnswered(ctx context.Context, a *Archive, run string, questions []string, err error) error {
	wrong, refused := errors.AsType[*graph.AnswerError](err)
	ended := errors.As(err, new(*EndedError))
	if !refused && !ended {
		return err
	}
	for _, id := range questions {
		if id == "" && refused && len(wrong.Open) > 0 {
			continue // it was about a question that is open
		}
		if given, failed := a.FindAnswer(ctx, run, id); failed == nil && given != nil {
			return &AnsweredError{Run: run, Answer: *given, Err: err}
		}
	}
	return err
}

// FindAnswer returns the answer that a run has recorded to a question, or nil if there is none or it was asked again.
// "" is the question that was answered last.
func (a *Archive) FindAnswer(ctx context.Context, run, question string) (*Answer, error) {
	if question == OriginQuestion {
		return findDecision(ctx, a, run)
	}
	story, err := a.ReadStory(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(story) {
		switch m := &story[i]; {
		case m.Question == nil || m.Question.Kind == graph.KindTimer:
		case m.Question.ID != question && (question != "" || m.Kind != journal.KindAnswer):
		case m.Kind == journal.KindAnswer:
			return &AnswersOf(story[i : i+1])[0], nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}

// findDecision returns the answer to the question whether a run that came from elsewhere may continue, or nil if it is
// open.
func findDecision(ctx context.Context, a *Archive, run string) (*Answer, error) {
	st, thread, err := a.FindThread(ctx, run)
	if err != nil {
		return nil, err
	}
	mark, err := foreign.FindCurrent(ctx, st, thread, 0)
	if mark == nil || mark.Accepted == nil || err != nil {
		return nil, err
	}
	return &Answer{ID: OriginQuestion, By: mark.Accepted.By, At: mark.Accepted.At}, nil
}
