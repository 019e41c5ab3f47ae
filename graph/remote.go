package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"raddle.dev/graph/internal/runid"
	"raddle.dev/graph/internal/value"
)

// KindRemote is the Question.Kind of Remote. Answers given ahead and a Reply are not for
// such a question.
const KindRemote = "remote"

// RemoteCall is the Question.Data of Remote.
type RemoteCall struct {
	// Run is the id of the run that answers the question. It is made from the run and the
	// question, so that it is the same after a crash.
	Run string `json:"run"`

	// Queue names the workers that drive the run.
	Queue string `json:"queue"`

	// Group names the tasks that run together: at most Limit of their runs may work at the
	// same time. If Limit is 0, there is no limit.
	Group string `json:"group,omitempty"`
	Limit int    `json:"limit,omitempty"`

	// Input is what the run gets.
	Input json.RawMessage `json:"input"`
}

// Remote returns the result of a run of its own, which workers of a queue drive. It waits
// for it as Interrupt waits for a person: the question is recorded, no drive is needed
// meanwhile, and what starts the run answers the question when the run has ended. Its
// Data is a RemoteCall, with the JSON of what input returns; input is called when the
// question is asked, and not again. If the run fails, the answer is refused, and the
// error is a *RefusedError; when the failed run of the caller is resumed, Remote asks
// again, and so does another attempt of the node. Each call is a separate question,
// identified by order.
func Remote[A any](ctx context.Context, queue string, input func() (any, error)) (A, error) {
	var zero A
	a, ok := attemptOf(ctx)
	if !ok {
		return zero, errors.New("graph: Remote needs the context of a node")
	}
	if f := value.StorageOf(reflect.TypeFor[A]()).Reply; f != nil {
		return zero, fmt.Errorf("the result of a run on queue %s: %w", queue, f)
	}
	name := KindRemote
	if a.n > 1 {
		name = fmt.Sprint(KindRemote, " ", a.n)
	}
	return askFor[A](a, Ask{Name: name, Kind: KindRemote, Data: remoteData{queue, input}})
}

// remoteData is the Ask.Data of Remote.
type remoteData struct {
	queue string
	input func() (any, error)
}

// encodeRemoteCall sets the prompt and the data of the question of a remote child, which name the run that answers it.
// No answer can be given to it ahead.
func (a attempt) encodeRemoteCall(r remoteData, q *Question) error {
	in, err := r.input()
	if err != nil {
		return err
	}
	call := RemoteCall{Run: remoteID(a.drive.run, q.ID), Queue: r.queue, Group: a.frame.path, Limit: a.frame.g.def.Concurrency}
	if call.Input, err = json.Marshal(in); err != nil {
		return err
	}
	q.Prompt = fmt.Sprintf("waits for run %s on queue %s", call.Run, call.Queue)
	q.Data, err = json.Marshal(call)
	return err
}

// remoteID returns the id of the run that answers a question of a run: it sorts by the time of that run.
func remoteID(run, question string) string {
	const length = 10
	return runid.Extend(run, length, question)
}

// RemoteCallOf returns the call of a question of Remote; ok is false for any other question.
func RemoteCallOf(q *Question) (call RemoteCall, ok bool) {
	ok = q.Kind == KindRemote && json.Unmarshal(q.Data, &call) == nil && call.Run != ""
	return call, ok
}

// ForPeople returns the questions that a person may answer: not those of Remote and Await.
func ForPeople(open []Question) []Question {
	return slices.DeleteFunc(slices.Clone(open), func(q Question) bool { return !q.takesAnswers() })
}
