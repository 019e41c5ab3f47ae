package graph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"raddle.dev/graph/internal/value"
)

// KindEvent is the Question.Kind of Await. Answers given ahead are not for such a question.
const KindEvent = "event"

// Await waits for an event, as Interrupt waits for a person, and returns its data: no process needs to live meanwhile.
// What sends the event answers the question, whose Data is an EventWait, at any time and from any process: with a
// resume, with Handle.Answer, or with the Reply of a drive for an event that came before. Data that cannot be decoded
// into a T opens the question again, with Question.Rejected. After w.Deadline the error is a *RefusedError that is
// ErrDeadline. Each call is a separate question, identified by the name of the event and order.
func Await[T any](ctx context.Context, w EventWait) (T, error) {
	var zero T
	a, ok := attemptOf(ctx)
	switch {
	case !ok:
		return zero, errors.New("graph: Await needs the context of a node")
	case w.Name == "" || len(w.Name) > MaxEventName:
		return zero, fmt.Errorf("graph: the name of an event has 1 to %d bytes, not %d", MaxEventName, len(w.Name))
	}
	if f := value.StorageOf(reflect.TypeFor[T]()).Reply; f != nil {
		return zero, fmt.Errorf("the event %q: its data: %w", w.Name, f)
	}
	name := KindEvent + " " + w.Name
	if given, ok := ctx.Value(questionName{}).(string); ok {
		name += " " + given
	}
	return askFor[T](a, Ask{Name: name, Kind: KindEvent, Prompt: "waits for the event " + w.Name, Data: w, Deadline: w.Deadline})
}

// MaxEventName is the length of the longest name of an event, in bytes.
const MaxEventName = 200

// An EventWait says for which event Await waits.
type EventWait struct {
	// Name is the name of the event. It has 1 to MaxEventName bytes.
	Name string `json:"name"`

	// Match holds members that the data of the event must have, with the same values; numbers are the same if they are
	// written alike. A text matches a number or a boolean that is written so. If Match is empty, the data may be any JSON.
	Match map[string]any `json:"match,omitempty"`

	// Deadline is that of an Ask.
	Deadline time.Duration `json:"-"`
}

// EventWaitOf returns what a question of Await waits for, with numbers of Match as json.Number; ok is false for any other
// question.
func EventWaitOf(q *Question) (w EventWait, ok bool) {
	ok = q.Kind == KindEvent && value.UnmarshalExactly(q.Data, &w) == nil && w.Name != ""
	return w, ok
}

// Accepts reports whether an event with a name and data, which are JSON, is one that it waits for.
func (w *EventWait) Accepts(name string, data []byte) bool {
	if name != w.Name {
		return false
	}
	return value.HasMembers(data, w.Match)
}
