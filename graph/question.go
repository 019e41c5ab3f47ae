package graph

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Ask is what a node wants to know.
type Ask struct {
	Name    string   // tells questions of one node apart while several are open; "" is a name too
	Kind    string   // for whoever shows it: "select", "input", "confirm", …
	Prompt  string   // the question itself
	Options []string // answers to choose from
	Free    bool     // other answers than Options are welcome; implied without Options
	Default string   // the answer to propose, and to take where nobody can be asked
	Data    any      // whatever else the asker's surroundings need; stored as JSON
}

// Question is an open question as everybody else sees it.
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
}

// Answer answers one question.
type Answer struct {
	ID      string // of the question; in Input.Ahead a node's name, or "" for whatever is asked next
	Value   any    // stored as JSON
	Refused string // not empty: no answer will come, and this is the reason; Interrupt returns a *RefusedError
}

// Interrupt asks and returns the answer. While there is none it returns
// ErrWaiting, and the node must return that: the run ends as Waiting, and when it
// is resumed with an answer the node runs again from its top, so do what must not
// happen twice inside Do. Each call is a question of its own, told apart by
// Ask.Name and order. It needs a store.
func Interrupt[A any](ctx context.Context, ask Ask) (A, error) {
	var zero A
	t := taskOf(ctx)
	if t == nil {
		return zero, errors.New("graph: Interrupt needs the context of a node")
	}
	raw, err := t.ask(ask, jsonType(reflect.TypeFor[A]()))
	if err != nil {
		return zero, err
	}
	var a A
	if err := json.Unmarshal(raw, &a); err != nil {
		return zero, fmt.Errorf("the answer %s does not fit %T: %w", raw, zero, err)
	}
	return a, nil
}

// jsonType names the JSON type that decodes into a Go type, where there is one.
func jsonType(t reflect.Type) string {
	switch p := reflect.PointerTo(t); {
	case p.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "" // it reads whatever it likes
	case p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), t == reflect.TypeFor[[]byte]():
		return "string"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	}
	return ""
}

// ask returns the JSON of the answer, or ErrWaiting.
func (t *task) ask(ask Ask, typ string) ([]byte, error) {
	x, f := t.drive, t.frame
	if x.j == nil {
		return nil, errors.New("graph: a question needs a store to wait in; give the Runner one")
	}
	if err := t.returned(); err != nil {
		return nil, err
	}
	key := t.local() + "\x00" + ask.Name + "\x00" + t.ordinal("?"+ask.Name)
	if q := t.asked(key); q != nil {
		return t.recalled(q)
	}
	q := Question{Node: t.node().Name, Kind: ask.Kind, Prompt: ask.Prompt, Options: ask.Options,
		Free: ask.Free || len(ask.Options) == 0, Default: ask.Default, Type: typ}
	if ask.Data != nil {
		b, err := json.Marshal(ask.Data)
		if err != nil {
			return nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
		q.Data = b
	}
	base := t.public()
	ahead := x.open(&q, base)
	head := putString(putString(putString(nil, f.path), key), base)
	if ahead == nil {
		t.wait(q)
		if err := x.j.add(KindQuestion, head, q.encode(), false); err != nil {
			return nil, err
		}
		return nil, ErrWaiting
	}
	a := &x.ahead[*ahead]
	if err := x.j.gather(x.j.level == EveryEffect, Record{Kind: KindQuestion, Head: head, Data: q.encode()},
		Record{Kind: KindAnswer, Head: answerHead(f.path, key, *ahead+1, a.refused), Data: a.value}); err != nil {
		return nil, err
	}
	t.answeredNow(key, &rawQuestion{q: q, answered: true, answer: a.value, refused: a.refused})
	return answerOf(a.value, a.refused)
}

// asked finds a question of the task that this or an earlier drive has recorded.
func (t *task) asked(key string) *rawQuestion {
	t.mu.Lock()
	q := t.in().asks[key]
	t.mu.Unlock()
	if q == nil && t.frame.raw != nil {
		q = t.frame.raw.asks[key]
	}
	return q
}

// answeredNow keeps a question that was answered ahead, for the events of the
// step and for the next attempt.
func (t *task) answeredNow(key string, q *rawQuestion) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in := t.in()
	if in.asks == nil {
		in.asks = map[string]*rawQuestion{}
	}
	in.asks[key] = q
	in.notes = append(in.notes, Asked{q.q}, Answered{ID: q.q.ID, Ahead: true, Refused: q.refused})
}

// recalled is what the journal knows of a question.
func (t *task) recalled(q *rawQuestion) ([]byte, error) {
	if !q.answered {
		t.wait(q.q)
		return nil, ErrWaiting
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
	return putString(putInt(putString(putString(nil, path), key), ahead), refused)
}

// open numbers a question, and finds the answer that was given ahead, if any:
// first one that names it, then the first that names nothing.
func (x *drive) open(q *Question, base string) (ahead *int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked[base]++
	q.ID = base
	if n := x.asked[base]; n > 1 {
		q.ID = fmt.Sprintf("%s#%d", base, n)
	}
	find := func(match func(a *aheadAnswer) bool) *int {
		for i := range x.ahead {
			if a := &x.ahead[i]; !a.used && match(a) && fits(q, a.value, a.refused) == "" {
				a.used = true
				return &i
			}
		}
		return nil
	}
	if i := find(func(a *aheadAnswer) bool { return a.id == q.ID }); i != nil {
		return i
	}
	if i := find(func(a *aheadAnswer) bool { return a.id == base || a.id == q.Node }); i != nil {
		return i
	}
	return find(func(a *aheadAnswer) bool { return a.id == "" })
}

// fits says why an answer does not fit a question, or nothing.
func fits(q *Question, value []byte, refused string) string {
	if refused != "" {
		return ""
	}
	if got := jsonTypeOf(value); q.Type != "" && got != q.Type {
		return fmt.Sprintf("it must be a %s, not a %s", q.Type, got)
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

// jsonTypeOf names the type of a JSON text.
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

// answers checks the answers given to a resume, all before any is recorded. Then
// it gathers the drive's claim and their records: the claim first, because the
// time before it is nobody's.
func (x *drive) answers(s *replay, answers []Answer) error {
	open := s.open()
	var ids []string
	for _, o := range open {
		ids = append(ids, o.q.q.ID)
	}
	values := make([][]byte, len(answers))
	for i, a := range answers {
		at := slices.Index(ids, a.ID)
		if at < 0 {
			return &AnswerError{ID: a.ID, Open: ids, Reason: "no such question is open"}
		}
		if slices.ContainsFunc(answers[:i], func(b Answer) bool { return b.ID == a.ID }) {
			return &AnswerError{ID: a.ID, Open: ids, Reason: "answered twice"}
		}
		b, err := json.Marshal(a.Value)
		if err != nil {
			return &AnswerError{ID: a.ID, Open: ids, Reason: err.Error()}
		}
		if why := fits(&open[at].q.q, b, a.Refused); why != "" {
			return &AnswerError{ID: a.ID, Open: ids, Reason: why}
		}
		values[i] = b
	}
	if err := x.j.add(KindClaim, putString(nil, x.run), nil, false); err != nil {
		return err
	}
	for i, a := range answers {
		o := open[slices.Index(ids, a.ID)]
		o.q.answered, o.q.now, o.q.answer, o.q.refused = true, true, values[i], a.Refused
		if err := x.j.add(KindAnswer, answerHead(o.path, o.key, 0, a.Refused), values[i], false); err != nil {
			return err
		}
		x.answered = append(x.answered, Answered{ID: a.ID, Refused: a.Refused})
	}
	return nil
}

// encode is the question as records hold it.
func (q *Question) encode() []byte {
	b := make([]byte, 0, 64+len(q.Prompt)+len(q.Data))
	for _, part := range []string{q.ID, q.Node, q.Kind, q.Prompt, q.Default, q.Type} {
		b = putString(b, part)
	}
	return putString(putBool(putStrings(b, q.Options), q.Free), q.Data)
}

func (q *Question) decode(r *reader) {
	for _, part := range []*string{&q.ID, &q.Node, &q.Kind, &q.Prompt, &q.Default, &q.Type} {
		*part = r.string()
	}
	q.Options, q.Free, q.Data = r.strings(), r.bool(), some(bytes.Clone(r.bytes()))
}
