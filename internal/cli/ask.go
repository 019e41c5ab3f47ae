package cli

import (
	"context"
	"errors"
	"fmt"

	"raddle.dev/graph"
)

// errParked says that the person at the terminal did not answer now.
var errParked = errors.New("parked")

// asker finds answers to questions: on the command line, from the person at the
// terminal, or in what the file proposes.
type asker struct {
	sh       *shell
	given    []given
	prompter prompter // nil: nobody can be asked
	stopped  func() bool
	seen     func(q graph.Question, text string) // told of every answer that the file's default gives
}

// prompter asks a person. It returns errParked when the person leaves the
// question open, and the context's error when that ends.
type prompter interface {
	ask(ctx context.Context, q graph.Question) (any, error)
	text(ctx context.Context, prompt string) (string, error)
}

// answer is an app.Ask. Answers of the command line that name a question go to
// it, the others to the open questions in the order of their asking.
func (a *asker) answer(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	values := make([]any, len(open)) // nil: no answer
	for _, bare := range []bool{false, true} {
		for i, q := range open {
			if values[i] != nil {
				continue
			}
			if text, ok := take(a.given, q, bare); ok {
				values[i] = text
			}
		}
	}
	left, nth := 0, 0
	for _, v := range values {
		if v == nil {
			left++
		}
	}
	for i, q := range open {
		if values[i] == nil && !park {
			nth++
			if values[i], park, err = a.ask(ctx, q, asks(q, nth, left)); err != nil {
				return nil, false, err
			}
		}
		if values[i] != nil {
			answers = append(answers, graph.Answer{ID: q.ID, Value: values[i]})
		}
	}
	return answers, park, nil
}

// ask asks the person, under a line that says who asks, or takes the question's
// default where there is nobody.
func (a *asker) ask(ctx context.Context, q graph.Question, who string) (answer any, park bool, err error) {
	switch {
	case a.stopped():
		return nil, true, nil
	case a.prompter == nil && q.Default != "":
		a.seen(q, q.Default)
		return q.Default, false, nil
	case a.prompter == nil:
		return nil, false, nil
	}
	a.sh.err.still()
	if who != "" {
		a.sh.err.line(a.sh.err.paint(cyan, who))
	}
	answer, err = a.prompter.ask(ctx, q)
	switch {
	case err == nil:
		return answer, false, nil
	case errors.Is(err, errParked) || ctx.Err() != nil:
		return nil, true, nil
	}
	return nil, false, fmt.Errorf("question %s cannot be asked on this terminal: %w", q.ID, err)
}

// prompter returns who can be asked: a person, if standard input and standard
// error are a terminal.
func (sh *shell) prompter() prompter {
	switch {
	case !isTerminal(sh.in) || !isTerminal(sh.err.file):
		return nil
	case dumb():
		return &linePrompter{sh: sh}
	}
	return &formPrompter{sh: sh}
}
