package runs

import (
	"context"
	"slices"
	"time"

	"raddle.dev/graph/journal"
)

// An Answer is an answer that was given to a question of a run.
type Answer struct {
	ID      string    `json:"id"`           // of the question
	By      string    `json:"by,omitempty"` // name of the token that was used; absent: it was given at a terminal, or by a program
	At      time.Time `json:"at"`
	Ahead   bool      `json:"ahead,omitempty"`   // it was given with the start of the run
	Refused string    `json:"refused,omitempty"` // why there will be no answer
}

// AnswersOf returns the answers among what happened in a run, oldest first.
func AnswersOf(story []Moment) []Answer {
	list := []Answer{}
	for _, m := range story {
		if m.Kind == journal.KindAnswer && m.Question != nil {
			list = append(list, Answer{m.Question.ID, m.By, m.Time.UTC(), m.Ahead, m.Refused})
		}
	}
	return list
}

// FindAnswer returns the answer that a run has recorded to a question, or nil if there is none or it was asked again.
func (a *Archive) FindAnswer(ctx context.Context, run, question string) (*Answer, error) {
	story, err := a.ReadStory(ctx, run, 0)
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(story) {
		switch m := &story[i]; {
		case m.Question == nil || m.Question.ID != question:
		case m.Kind == journal.KindAnswer:
			return &AnswersOf(story[i : i+1])[0], nil
		default:
			return nil, nil
		}
	}
	return nil, nil
}
