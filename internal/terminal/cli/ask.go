package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/tool"
)

// An asker finds answers to questions: on the command line, from the person at the
// terminal, or in the default of the file.
type asker struct {
	console    *console.Console
	given      question.GivenAnswers
	inDoubt    tool.Doubt    // for every call that was interrupted; if unset, the person is asked
	prompter   term.Prompter // nil if there is no person to ask
	stopped    func() bool
	check      func(a graph.Answer) error          // why an answer would be refused; nil if the caller reports it
	onDefault  func(q graph.Question, text string) // called with every answer that comes from the file's default
	usedAnswer bool                                // an answer of the command line was used

	// skip is called with the reason when the person leaves a question open. Then the others are
	// still asked, unless the person pressed Ctrl-C. If it is nil, no more questions are asked.
	skip    func(err error)
	skipped map[string]bool // ids of the questions that were left open; they are not asked again
	shown   map[string]bool // ids of the questions that the person has seen
}

// answerQuestions is an app.AskFunc. Answers of the command line that name a question go to
// it, the others to the open questions in the order in which they were asked.
func (a *asker) answerQuestions(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	open = graph.ForPeople(open)
	values, err := a.takeFlagAnswers(open)
	if err != nil {
		return nil, false, err
	}
	left := 0
	nth := 0
	for _, v := range values {
		if v == nil {
			left++
		}
	}
	for i, q := range open {
		if values[i] == nil && !park && !a.skipped[q.ID] {
			nth++
			if values[i], park, err = a.askPerson(ctx, q, question.FormatAskerLine(q, nth, left)); err != nil {
				return nil, false, err
			}
		}
		if values[i] != nil {
			answers = append(answers, graph.Answer{ID: q.ID, Value: values[i]})
		}
	}
	return answers, park, nil
}

// takeFlagAnswers returns the answers of the command line to open questions, nil if
// there are none. If it has only answers that no question takes, it returns an error.
func (a *asker) takeFlagAnswers(open []graph.Question) (values []any, err error) {
	values = make([]any, len(open))
	var passed error // why the first answer was not used
	for _, bare := range []bool{false, true} {
		for i, q := range open {
			if values[i] != nil {
				continue
			}
			text, ok, wrong := a.given.Take(q, bare, func(text string, distance int) error {
				why := a.checkFlagAnswer(q, text, distance)
				if passed == nil {
					passed = why
				}
				return why
			})
			if wrong != nil {
				return nil, wrong
			}
			if ok {
				values[i], a.usedAnswer = text, true
			}
		}
	}
	for i, q := range open {
		if values[i] == nil && q.Kind == agent.KindDoubt && slices.Contains(q.Options, string(a.inDoubt)) {
			values[i] = string(a.inDoubt)
		}
	}
	if passed != nil && a.prompter == nil && !a.usedAnswer && !slices.ContainsFunc(values, func(v any) bool { return v != nil }) {
		return nil, passed
	}
	return values, nil
}

// checkFlagAnswer returns why a text of the command line is not an answer to a question, or nil. distance
// is the distance of the question from what the answer names.
func (a *asker) checkFlagAnswer(q graph.Question, text string, distance int) error {
	refuse := func(reason string) error { return &graph.AnswerError{ID: q.ID, Open: []string{q.ID}, Reason: reason} }
	switch {
	case q.Kind == flow.KindTrust && text != "no":
		return refuse("consent is given at a terminal, never by --answer")
	case q.Kind == agent.KindPermission && distance > 0 && !slices.Contains(q.Options, text):
		return refuse("it must be one of " + strings.Join(q.Options, ", ") + "; to refuse with a reason, name the question: --answer " + wording.QuoteWord(q.ID+"=REASON"))
	}
	return a.checkAnswer(q, text)
}

// checkAnswer returns why the run would refuse an answer, or nil.
func (a *asker) checkAnswer(q graph.Question, answer any) error {
	if a.check == nil {
		return nil
	}
	return a.check(graph.Answer{ID: q.ID, Value: answer})
}

// askPerson asks the person, below a line that says who asks. Without a person it takes the
// question's default. It asks again if the question does not accept the answer.
func (a *asker) askPerson(ctx context.Context, q graph.Question, from string) (answer any, park bool, err error) {
	switch {
	case a.stopped():
		return nil, true, nil
	case a.prompter == nil && q.Default != "" && q.Rejected == "" && takesDefault(q):
		a.onDefault(q, q.Default)
		return q.Default, false, nil
	case a.prompter == nil:
		return nil, false, nil
	}
	a.console.Screen.ClearLive()
	if a.shown == nil {
		a.shown = map[string]bool{}
	}
	a.shown[q.ID] = true
	if from != "" {
		a.console.Screen.PrintLine(a.console.Screen.Paint(term.Cyan, from))
	}
	q.Rejected = flow.AnswerHeadline(q.Rejected)
	for answer, err = question.Ask(ctx, a.prompter, q, a.console.Screen.Colors); err == nil; answer, err = question.AskAgain(ctx, a.prompter, q, answer, a.console.Screen.Colors) {
		why := (*graph.AnswerError)(nil)
		if err := a.checkAnswer(q, answer); !errors.As(err, &why) {
			return answer, false, err
		}
		a.console.Screen.PrintLine(a.console.Screen.Paint(term.Yellow, term.CleanText(flow.AnswerHeadline(why.Reason))))
	}
	switch {
	case errors.Is(err, term.ErrLeftOpen) && a.skip != nil:
		if a.skipped == nil {
			a.skipped = map[string]bool{}
		}
		a.skipped[q.ID] = true
		a.skip(err)
		return nil, errors.Is(err, term.ErrInterrupted), nil
	case errors.Is(err, term.ErrLeftOpen) || ctx.Err() != nil:
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("question %s cannot be asked on this terminal: %w", q.ID, err)
}

// takesDefault reports whether the default of a question answers it if there is no
// person. The default of a question for consent is only what a person chooses with Enter.
func takesDefault(q graph.Question) bool {
	return q.Kind != agent.KindPermission && q.Kind != agent.KindDoubt && q.Kind != flow.KindTrust
}
