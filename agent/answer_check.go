package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph"
)

// checkAnswer returns why an answer to a question about a call is rejected: see
// graph.Node.CheckAnswer. It does not repeat the checks that follow from the
// type of the question.
func checkAnswer(q graph.Question, a graph.Answer) error {
	if q.Kind == KindPermission {
		return checkPermission(q, a)
	}
	var d CallData
	if json.Unmarshal(q.Data, &d) != nil {
		return nil
	}
	for i := range userTools {
		if u := &userTools[i]; u.name == d.Tool && u.kind == q.Kind {
			if _, problem := u.answer(u, userArgs{Question: q.Prompt, Options: q.Options}, a.Value); problem != "" {
				return errors.New(problem)
			}
		}
	}
	return nil
}

// checkPermission accepts every text as an answer to the question that the
// answer names: a text that is not one of the options is a refusal with its
// reason. An answer that names no question may be meant for a different
// question, so it must be one of the options.
func checkPermission(q graph.Question, a graph.Answer) error {
	switch v := a.Value.(type) {
	case bool:
		return nil
	case string:
		if a.ID != "" || slices.Contains(q.Options, v) {
			return nil
		}
	}
	return fmt.Errorf("it must be one of %s", strings.Join(q.Options, ", "))
}
