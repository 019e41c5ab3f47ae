package agent

import (
	"encoding/json"
	"errors"

	"raddle.dev/graph"
)

// checkAnswer returns why an answer to a question about a call is rejected: see
// graph.Node.CheckAnswer. It does not repeat the checks that follow from the
// type of the question.
func (a *Act) checkAnswer(q graph.Question, given graph.Answer) error {
	if q.Kind == KindPermission {
		return a.checkPermission(q, given)
	}
	var d CallData
	if json.Unmarshal(q.Data, &d) != nil {
		return nil
	}
	for i := range userTools {
		if u := &userTools[i]; u.name == d.Tool && u.kind == q.Kind {
			if _, problem := u.answer(u, userArgs{Question: q.Prompt, Options: q.Options}, given.Value); problem != "" {
				return errors.New(problem)
			}
		}
	}
	return nil
}
