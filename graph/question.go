package graph

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// Ask is a question of a node.
type Ask struct {
	Name    string   // distinguishes questions of one node while several are open; may be ""
	Kind    string   // for the program that shows it: "select", "input", "confirm", …
	Prompt  string   // the question itself
	Options []string // answers to choose from
	Free    bool     // answers other than Options are accepted; always so without Options
	Default string   // the answer to propose, and to use if there is no one to ask
	Data    any      // additional data for the program that shows it; stored as JSON
}

// Question is an open question as the caller of a run sees it.
type Question struct {
	ID      string          `json:"id"`   // the nodes above it and its node; "#n" from the node's second question on
	Node    string          `json:"node"` // the node that asks
	Kind    string          `json:"kind,omitempty"`
	Prompt  string          `json:"prompt"`
	Options []string        `json:"options,omitempty"`
	Free    bool            `json:"free,omitempty"`
	Default string          `json:"default,omitempty"`
	Type    string          `json:"type,omitempty"` // JSON type of the answer: string, number, boolean, array, object; "": any
	Data    json.RawMessage `json:"data,omitempty"`

	Integer  string `json:"integer,omitempty"`  // of a number that must be an integer, the Go type: int, uint8, …
	Rejected string `json:"rejected,omitempty"` // why the last answer did not fit, if it was recorded: the question is open again
}

// Answer answers one question.
type Answer struct {
	ID      string // of the question; "" if only one is open. In Input.Ahead also the name or the path of its node or of a node above that, or "" for the next question, in the order of tasks
	Value   any    // stored as JSON
	Refused string // not empty: there will be no answer, and this is the reason; Interrupt returns a *RefusedError
	Ahead   bool   // for Node.CheckAnswer: it was given with Input.Ahead. Resume ignores it
}

// Interrupt asks a question and returns the answer. As long as there is none, it
// returns ErrWaiting, and the node must return that: the run ends as Waiting, and when
// it is resumed with an answer the node runs again from its top, so do what must not
// happen twice inside Do. Each call is a separate question, identified by Ask.Name and
// order. An answer that cannot be decoded into an A is not an error of the node: the
// question is open again, and Question.Rejected says why. If no JSON can be decoded
// into an A, the error is a *TypeError, and nothing is asked. Interrupt needs a store.
func Interrupt[A any](ctx context.Context, ask Ask) (A, error) {
	var zero A
	c := callerOf(ctx)
	if c == nil {
		return zero, errors.New("graph: Interrupt needs the context of a node")
	}
	if f := value.StorageOf(reflect.TypeFor[A]()).Reply; f != nil {
		return zero, fmt.Errorf("question %q: its answer: %w", ask.Name, f)
	}
	t := c.holdTask()
	key, raw, err := t.askQuestion(int(c.attempt), ask, reflect.TypeFor[A]())
	if err != nil {
		return zero, err
	}
	a, err := decodeAnswer[A](raw)
	if err != nil {
		return zero, t.askAgain(int(c.attempt), key, err)
	}
	return a, nil
}

// decodeAnswer decodes the JSON of an answer; a panic in a decoder is an error.
func decodeAnswer[A any](raw []byte) (a A, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the decoder of %T: %v", a, p)
		}
	}()
	if err = json.Unmarshal(raw, &a); err != nil {
		err = fmt.Errorf("the answer %s does not fit %T: %w", raw, a, err)
	}
	return a, err
}

// jsonType returns the JSON type that can be decoded into a Go type, or "" if any may
// be.
func jsonType(t reflect.Type) string {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "" // it decodes any JSON that it accepts
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), t == reflect.TypeFor[[]byte]():
		return "string"
	}
	if value.IntegerSizes[t.Kind().String()] > 0 {
		return "number"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return ""
}

// askQuestion returns the JSON of the answer, or ErrWaiting. key identifies the question in the
// frame.
func (t *task) askQuestion(attempt int, ask Ask, typ reflect.Type) (key string, answer []byte, err error) {
	x, f := t.drive, t.frame
	if x.j == nil {
		return "", nil, errors.New("graph: a question needs a store to wait in; give the Runner one")
	}
	n, err := t.nextOrdinal(attempt, "?"+ask.Name)
	if err != nil {
		return "", nil, err
	}
	key = t.localID() + "\x00" + ask.Name + "\x00" + n
	if q := t.findQuestion(key); q != nil {
		answer, err = t.recallAnswer(attempt, q)
		return key, answer, err
	}
	q := Question{Node: t.node().Name, Kind: ask.Kind, Prompt: ask.Prompt, Options: ask.Options,
		Free: ask.Free || len(ask.Options) == 0, Default: ask.Default, Type: jsonType(typ)}
	if q.Type == "number" && value.IntegerSizes[typ.Kind().String()] > 0 {
		q.Integer = typ.Kind().String()
	}
	if ask.Data != nil {
		b, err := json.Marshal(ask.Data)
		if err != nil {
			return "", nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
		q.Data = b
	}
	base := t.publicPath()
	ahead, wrong := x.registerQuestion(&q, base, t.node(), t.hasConcurrentTasks())
	head := wire.PutTexts(nil, f.path, key, base)
	given := presetAnswer{}
	switch {
	case ahead > 0:
		given = x.ahead[ahead-1]
	default:
		given.value = x.replyTo(&q, t.node())
	}
	if ahead == 0 && given.value == nil {
		if err := t.markWaiting(attempt, q); err != nil {
			return "", nil, err
		}
		if err := x.j.addRecord(KindQuestion, head, q.encode(), false); err != nil {
			return "", nil, err
		}
		return "", nil, ErrWaiting
	}
	records := []Record{{Kind: KindQuestion, Head: head, Data: q.encode()}, {Kind: KindAnswer, Head: answerHead(f.path, key, ahead, given.refused), Data: given.value}}
	if wrong != nil {
		q.Rejected = wrong.Error()
		records = append(records, Record{Kind: KindQuestion, Head: head, Data: q.encode()})
	}
	if err := x.j.addRecords(x.j.level == EveryEffect, records...); err != nil {
		return "", nil, err
	}
	if wrong != nil {
		return "", nil, cmp.Or(t.markWaiting(attempt, q), ErrWaiting)
	}
	if err := t.answeredNow(attempt, key, &rawQuestion{q: q, base: base, answered: true, ahead: ahead, answer: given.value, refused: given.refused}); err != nil {
		return "", nil, err
	}
	answer, err = answerOf(given.value, given.refused)
	return key, answer, err
}

// askAgain opens a question again after an answer that did not fit.
func (t *task) askAgain(attempt int, key string, why error) error {
	was := t.findQuestion(key)
	q := was.q
	q.Rejected = why.Error()
	t.mu.Lock()
	setEntry(&t.ensureInner().asks, key, &rawQuestion{q: q, base: was.base})
	t.mu.Unlock()
	if err := t.markWaiting(attempt, q); err != nil {
		return err
	}
	if err := t.drive.j.addRecord(KindQuestion, wire.PutTexts(nil, t.frame.path, key, was.base), q.encode(), false); err != nil {
		return err
	}
	return ErrWaiting
}

// findQuestion finds a question of the task that this or an earlier drive has recorded.
func (t *task) findQuestion(key string) *rawQuestion {
	t.mu.Lock()
	q := t.ensureInner().asks[key]
	t.mu.Unlock()
	if q == nil && t.raw != nil {
		q = t.raw.asks[key]
	}
	return q
}

// answeredNow keeps a question with an answer given ahead, for the events of the step
// and for the next attempt.
func (t *task) answeredNow(attempt int, key string, q *rawQuestion) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkNotHungLocked(attempt); err != nil {
		return err
	}
	in := t.ensureInner()
	if in.asks == nil {
		in.asks = map[string]*rawQuestion{}
	}
	in.asks[key] = q
	in.notes = append(in.notes, QuestionAsked{q.q}, QuestionAnswered{ID: q.q.ID, Ahead: q.ahead > 0, Refused: q.refused})
	return nil
}

// recallAnswer returns the answer that the journal holds for a question, if any.
func (t *task) recallAnswer(attempt int, q *rawQuestion) ([]byte, error) {
	if !q.answered {
		return nil, cmp.Or(t.markWaiting(attempt, q.q), ErrWaiting)
	}
	return answerOf(q.answer, q.refused)
}

func answerOf(value []byte, refused string) ([]byte, error) {
	if refused != "" {
		return nil, &RefusedError{refused}
	}
	return value, nil
}

func answerHead(path, key string, ahead int, refused string) []byte {
	return wire.PutString(wire.PutInt(wire.PutTexts(nil, path, key), ahead), refused)
}

// describeMismatch returns why an answer does not fit a question, or "".
func describeMismatch(q *Question, value []byte, refused string) string {
	if refused != "" {
		return ""
	}
	switch got := jsonTypeOf(value); {
	case q.Integer != "" && got == "number" && isInteger(string(value), q.Integer):
	case q.Integer != "":
		return fmt.Sprintf("it must be an integer (%s), not %s", q.Integer, value)
	case q.Type != "" && got != q.Type:
		return fmt.Sprintf("it must be %s, not %s", withArticle(q.Type), withArticle(got))
	}
	if q.Free || q.Type != "string" {
		return ""
	}
	var s string
	if json.Unmarshal(value, &s) == nil && slices.Contains(q.Options, s) {
		return ""
	}
	return "it must be one of " + strings.Join(q.Options, ", ")
}

// isInteger reports whether a JSON number is a value of a Go type of integers.
func isInteger(number, typ string) bool {
	var err error
	if bits := value.IntegerSizes[typ]; typ[0] == 'u' {
		_, err = strconv.ParseUint(number, 10, bits)
	} else {
		_, err = strconv.ParseInt(number, 10, bits)
	}
	return err == nil
}

// withArticle puts an article before the name of a type.
func withArticle(typ string) string {
	switch typ {
	case "array", "object":
		return "an " + typ
	case "null", "nothing":
		return typ
	}
	return "a " + typ
}

// jsonTypeOf returns the name of the type of a JSON text.
func jsonTypeOf(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case '[':
		return "array"
	case '{':
		return "object"
	case 'n':
		return "null"
	}
	return "number"
}

// recordAnswers checks the answers given to a resume, all before any is recorded. Then it
// gathers the drive's claim and their records: the claim first, because the time before
// it does not count as active.
func (x *drive) recordAnswers(s *replay, answers []Answer, claim Record) error {
	open, values, err := x.r.Graph.checkAnswers(s, answers)
	if err != nil {
		return err
	}
	if err := x.j.addRecords(false, claim); err != nil {
		return err
	}
	for i, a := range answers {
		o := open[i]
		o.q.answered, o.q.now, o.q.answer, o.q.refused = true, true, values[i], a.Refused
		if err := x.j.addRecord(KindAnswer, answerHead(o.path, o.key, 0, a.Refused), values[i], false); err != nil {
			return err
		}
		x.answered = append(x.answered, QuestionAnswered{ID: o.q.q.ID, Refused: a.Refused})
	}
	return nil
}

// encode returns the question as records hold it.
func (q *Question) encode() []byte {
	b := make([]byte, 0, 64+len(q.Prompt)+len(q.Data))
	for _, part := range []string{q.ID, q.Node, q.Kind, q.Prompt, q.Default, q.Type} {
		b = wire.PutString(b, part)
	}
	b = wire.PutString(wire.PutBool(wire.PutStrings(b, q.Options), q.Free), q.Data)
	return wire.PutTexts(b, q.Integer, q.Rejected)
}

func (q *Question) decode(r *wire.Reader) {
	for _, part := range []*string{&q.ID, &q.Node, &q.Kind, &q.Prompt, &q.Default, &q.Type} {
		*part = r.Text()
	}
	q.Options, q.Free, q.Data = r.Texts(), r.Bool(), nilIfEmpty(bytes.Clone(r.Bytes()))
	if q.Integer, q.Rejected = "", ""; len(r.Rest) > 0 { // older records do not have them
		q.Integer, q.Rejected = r.Text(), r.Text()
	}
	if value.IntegerSizes[q.Integer] == 0 {
		q.Integer = ""
	}
}
