package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// Ask is a question of a node.
type Ask struct {
	// Name distinguishes questions of one node while several are open. It may be empty,
	// if at most one is: another of its name is refused while the first is open. See
	// NameQuestions.
	Name string

	// Kind is for the program that shows the question: "select", "input", "confirm", …
	Kind string

	// Prompt is the question itself.
	Prompt string

	// Options are the answers to choose from. If nil, every answer of the right type is
	// accepted.
	Options []string

	// Free accepts answers other than Options.
	Free bool

	// Default is the answer to propose, and to use if there is no one to ask.
	Default string

	// Data is for the program that shows the question; it is stored as JSON.
	Data any
}

// Question is an open question as the caller of a run sees it.
type Question struct {
	// ID is the path of the asking node, with "#n" from the node's second question on.
	ID string `json:"id"`

	// Node is the node that asks.
	Node string `json:"node"`

	// Kind, Prompt, Options, Free and Default are those of the Ask. Free is also true
	// without Options.
	Kind    string   `json:"kind,omitempty"`
	Prompt  string   `json:"prompt"`
	Options []string `json:"options,omitempty"`
	Free    bool     `json:"free,omitempty"`
	Default string   `json:"default,omitempty"`

	// Type is the JSON type of the answer: string, number, boolean, array or object; "":
	// any.
	Type string `json:"type,omitempty"`

	// Data is the JSON of Ask.Data.
	Data json.RawMessage `json:"data,omitempty"`

	// Integer is the Go type of a number that must be an integer: int, uint8, …
	Integer string `json:"integer,omitempty"`

	// Rejected says why the last answer did not fit, if it was recorded: the question is
	// open again.
	Rejected string `json:"rejected,omitempty"`
}

// Answer answers one question.
type Answer struct {
	// ID is that of the question; "" if only one is open. In Input.Ahead it may also be
	// the name or the path of its node or of a node above that, or "" for the next
	// question, in the order of tasks.
	ID string

	// Value is the answer. It is stored as JSON.
	Value any

	// Refused says that there will be no answer, and why: Interrupt returns a
	// *RefusedError. If empty, Value is the answer.
	Refused string

	// By is the name of who answers, for those who look at the run later. It is recorded with
	// the answer; "": no name. Answers given with Input.Ahead have none.
	By string

	// Ahead is for Node.CheckAnswer: the answer was given with Input.Ahead. Resume
	// ignores it.
	Ahead bool
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
	a, ok := attemptOf(ctx)
	if !ok {
		return zero, errors.New("graph: Interrupt needs the context of a node")
	}
	if f := value.StorageOf(reflect.TypeFor[A]()).Reply; f != nil {
		return zero, fmt.Errorf("question %q: its answer: %w", ask.Name, f)
	}
	if name, ok := ctx.Value(questionName{}).(string); ok && ask.Name == "" {
		ask.Name = name
	}
	return askFor[A](a, ask)
}

// questionName is the key of NameQuestions in a context.
type questionName struct{}

// NameQuestions returns a context in which a question without an Ask.Name has this one. If
// you call several functions at the same time, give each of them a context of its own, so
// that each gets the answers to its own questions.
func NameQuestions(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, questionName{}, name)
}

// askFor asks a question and returns the answer as an A, into which some JSON can be decoded: see Interrupt.
func askFor[A any](a attempt, ask Ask) (answer A, err error) {
	n, err := a.beginQuestion(ask.Name)
	if err != nil {
		return answer, err
	}
	defer func() { a.endQuestion(ask.Name, err) }()
	key, raw, err := a.askQuestion(ask, n, reflect.TypeFor[A]())
	if err != nil {
		return answer, err
	}
	given, err := decodeAnswer[A](raw)
	if err != nil {
		return answer, a.askAgain(key, err)
	}
	return value.ClipAs(given), nil
}

// beginQuestion starts a call of Interrupt and returns its ordinal. While another question of the name is
// open or asked, the order of the calls says nothing about which is which: then it
// returns an error.
func (a attempt) beginQuestion(name string) (ordinal string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotEndedLocked(); err != nil {
		return "", err
	}
	in, id := a.ensureInner(), "?"+name
	if in.busy[id] {
		return "", fmt.Errorf("graph: question %q is already open in node %s: give questions that are open at the same time distinct names (Ask.Name)", name, a.node().Name)
	}
	fold.SetEntry(&in.busy, id, true)
	return in.ordinals.NextOrdinal(id), nil
}

// endQuestion ends a call of Interrupt: a question that waits for its answer stays open.
func (a attempt) endQuestion(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checkNotHungLocked() == nil && !errors.Is(err, ErrWaiting) {
		delete(a.inner.busy, "?"+name)
	}
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

// askQuestion returns the JSON of the answer, or ErrWaiting. n is the question's ordinal among
// those of its name, and key identifies it in the
// frame.
func (a attempt) askQuestion(ask Ask, n string, typ reflect.Type) (key string, answer []byte, err error) {
	d, f := a.drive, a.frame
	if d.journal == nil {
		return "", nil, errors.New("graph: a question needs a store to wait in; give the Runner one")
	}
	for _, o := range append(slices.Clip(ask.Options), ask.Default) {
		if !utf8.ValidString(o) {
			return "", nil, fmt.Errorf("question of node %s: the option %q is not UTF-8, so no answer could choose it: offer strings.ToValidUTF8 of it", a.node().Name, o)
		}
	}
	key = a.localID() + "\x00" + ask.Name + "\x00" + n
	if q := a.findQuestion(key); q != nil {
		answer, err = a.recallAnswer(q)
		return key, answer, err
	}
	if err := d.checkDriving(a.base); err != nil {
		return "", nil, err
	}
	q, base := newQuestion(&ask, a.node().Name, typ), a.publicPath()
	remote, isRemote := ask.Data.(remoteData)
	if ask.Data != nil && !isRemote {
		if q.Data, err = json.Marshal(ask.Data); err != nil { // before the node checks an answer, which may depend on it
			return "", nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
	}
	ahead, wrong := d.questions.registerQuestion(&q, base, a.node(), a.hasConcurrentTasks())
	if isRemote {
		if err := a.encodeRemoteCall(remote, &q); err != nil {
			return "", nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
	}
	given := fold.PresetAnswer{}
	if ahead > 0 {
		given = d.questions.ahead[ahead-1]
	} else if given.Value = d.questions.replyTo(&q, a.node()); given.Value == nil {
		if err := a.markWaiting(q); err != nil {
			return "", nil, err
		}
		head := wire.PutTexts(nil, f.path, key, base)
		recorded := fold.Question(q)
		return "", nil, cmp.Or(d.journal.AddRecord(journal.KindQuestion, head, recorded.Encode(), a.hasConcurrentTasks()), ErrWaiting) // others may work for a long time
	}
	asked := &fold.AskedQuestion{Question: fold.Question(q), Base: base, Answered: true, Ahead: ahead, Answer: given.Value, Refused: given.Refused}
	if err := a.recordAnsweredQuestion(key, asked, wrong); err != nil {
		return "", nil, err
	}
	answer, err = answerOf(given.Value, given.Refused)
	return key, answer, err
}

// newQuestion returns the question of a node whose answer has a Go type. It has no ID and no Data yet.
func newQuestion(ask *Ask, node string, typ reflect.Type) Question {
	q := Question{Node: node, Kind: ask.Kind, Prompt: ask.Prompt, Options: ask.Options,
		Free: ask.Free || len(ask.Options) == 0, Default: ask.Default, Type: value.JSONTypeFor(typ)}
	if q.Type == "number" && value.IntegerSizes[typ.Kind().String()] > 0 {
		q.Integer = typ.Kind().String()
	}
	return q
}

// recordAnsweredQuestion records a question with the answer that was given within the drive. If wrong says why the
// node refuses that answer, the question is open again and the error is ErrWaiting.
func (a attempt) recordAnsweredQuestion(key string, asked *fold.AskedQuestion, wrong error) error {
	j, path := a.drive.journal, a.frame.path
	head := wire.PutTexts(nil, path, key, asked.Base)
	records := []journal.Record{{Kind: journal.KindQuestion, Head: head, Data: asked.Question.Encode()}, {Kind: journal.KindAnswer, Head: answerHead(path, key, asked.Ahead, asked.Refused), Data: asked.Answer}}
	if wrong != nil {
		asked.Question.Rejected = wrong.Error()
		records = append(records, journal.Record{Kind: journal.KindQuestion, Head: head, Data: asked.Question.Encode()})
	}
	if err := j.AddRecords(a.drive.savesEach(), records...); err != nil {
		return err
	}
	if wrong != nil {
		return cmp.Or(a.markWaiting(Question(asked.Question)), ErrWaiting)
	}
	return a.answeredNow(key, asked)
}

// askAgain opens a question again after an answer that did not fit.
func (a attempt) askAgain(key string, why error) error {
	was := a.findQuestion(key)
	q := was.Question
	q.Rejected = why.Error()
	a.mu.Lock()
	fold.SetEntry(&a.ensureInner().asks, key, &fold.AskedQuestion{Question: q, Base: was.Base})
	a.mu.Unlock()
	if err := a.markWaiting(Question(q)); err != nil {
		return err
	}
	if err := a.drive.journal.AddRecord(journal.KindQuestion, wire.PutTexts(nil, a.frame.path, key, was.Base), q.Encode(), false); err != nil {
		return err
	}
	return ErrWaiting
}

// findQuestion finds a question of the task that this or an earlier drive has recorded.
func (a attempt) findQuestion(key string) *fold.AskedQuestion {
	a.mu.Lock()
	q := a.ensureInner().asks[key]
	a.mu.Unlock()
	if q == nil && a.raw != nil {
		q = a.raw.Asks[key]
	}
	return q
}

// answeredNow keeps a question with an answer given ahead, for the events of the step
// and for the next attempt.
func (a attempt) answeredNow(key string, q *fold.AskedQuestion) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.checkNotHungLocked(); err != nil {
		return err
	}
	in := a.ensureInner()
	fold.SetEntry(&in.asks, key, q)
	in.notes = append(in.notes, QuestionAsked{Question(q.Question)}, QuestionAnswered{ID: q.Question.ID, Ahead: q.Ahead > 0, Refused: q.Refused})
	return nil
}

// recallAnswer returns the answer that the journal holds for a question, if any.
func (a attempt) recallAnswer(q *fold.AskedQuestion) ([]byte, error) {
	if !q.Answered {
		return nil, cmp.Or(a.markWaiting(Question(q.Question)), ErrWaiting)
	}
	return answerOf(q.Answer, q.Refused)
}

func answerOf(value []byte, refused string) ([]byte, error) {
	if refused != "" {
		return nil, &RefusedError{Reason: refused, Value: value}
	}
	return value, nil
}

func answerHead(path, key string, ahead int, refused string) []byte {
	return wire.PutString(wire.PutInt(wire.PutTexts(nil, path, key), ahead), refused)
}

// describeMismatch returns why an answer does not fit a question, or "".
func describeMismatch(q *Question, answer []byte, refused string) string {
	if refused != "" {
		return ""
	}
	switch got := value.JSONTypeOf(answer); {
	case q.Integer != "" && got == "number" && isInteger(string(answer), q.Integer):
	case q.Integer != "":
		return fmt.Sprintf("it must be an integer (%s), not %s", q.Integer, answer)
	case q.Type != "" && got != q.Type:
		return fmt.Sprintf("it must be %s, not %s", withArticle(q.Type), withArticle(got))
	}
	if q.Free || q.Type != "string" {
		return ""
	}
	var s string
	if json.Unmarshal(answer, &s) == nil && slices.Contains(q.Options, s) {
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

// recordAnswers checks the answers given to a resume, all before any is recorded. Then it
// gathers the drive's claim and their records: the claim first, because the time before
// it does not count as active.
func (d *drive) recordAnswers(s *fold.Thread, answers []Answer, claim journal.Record) error {
	open, values, err := d.settings.Graph.checkAnswers(s, answers)
	if err != nil {
		return err
	}
	if err := d.journal.AddRecords(false, append([]journal.Record{claim}, newAnswerRecords(open, values, answers)...)...); err != nil {
		return err
	}
	for i, a := range answers {
		o := open[i]
		o.Asked.Answered, o.Asked.Now, o.Asked.Answer, o.Asked.Refused = true, true, values[i], a.Refused
		d.questions.answered = append(d.questions.answered, QuestionAnswered{ID: o.Asked.Question.ID, Refused: a.Refused, By: a.By})
	}
	return nil
}

// questionState is what a drive knows of questions and answers.
type questionState struct {
	answered []QuestionAnswered // recorded by the drive itself, not yet delivered
	reply    Reply              // nil: no one answers within the drive
	handle   *Handle            // nil: answers come only with a resume
	late     []lateAnswer       // recorded while tasks worked, not yet used; the handle guards it

	mu    sync.Mutex // guards the fields below
	ahead []fold.PresetAnswer
	asked map[string]int  // questions by node path
	shown map[string]bool // questions delivered, if answers were given ahead
}

// addPresetAnswers stores the answers given with the start, and returns them encoded.
func (s *questionState) addPresetAnswers(answers []Answer) ([]byte, error) {
	b := wire.PutInt(nil, len(answers))
	for _, a := range answers {
		v, err := value.MarshalAnswer(a.Value)
		if err != nil {
			return nil, &AnswerError{ID: a.ID, Reason: err.Error()}
		}
		b = wire.PutString(wire.PutString(wire.PutString(b, a.ID), v), a.Refused)
		s.ahead = append(s.ahead, fold.PresetAnswer{ID: a.ID, Value: v, Refused: a.Refused})
	}
	return b, nil
}

// registerQuestion numbers a question of a node, and returns the place, from 1, of the answer that
// was given ahead for it, or 0. wrong says why the node refuses that answer. Tasks that
// run together do not take an answer that another of them could use: see assignPresetAnswers.
func (s *questionState) registerQuestion(q *Question, base string, n *compiledNode, together bool) (ahead int, wrong error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fold.SetEntry(&s.asked, base, s.asked[base]+1)
	q.ID = base
	if n := s.asked[base]; n > 1 {
		q.ID = fmt.Sprintf("%s#%d", base, n)
	}
	for _, name := range []string{q.ID, base} {
		if ahead, wrong = s.takeNamed(q, n, name); ahead > 0 {
			return ahead, wrong
		}
	}
	if !together {
		ahead, wrong = s.takeShared(q, n)
	}
	return ahead, wrong
}

// replyTo asks the Reply of the input or resume for an answer within the drive. The value is JSON; if nil,
// the question stays open.
func (s *questionState) replyTo(q *Question, n *compiledNode) []byte {
	if s.reply == nil || q.Kind == KindRemote {
		return nil
	}
	v, ok := s.reply(*q)
	if !ok {
		return nil
	}
	b, err := value.MarshalAnswer(v)
	if err != nil || describeMismatch(q, b, "") != "" || n.checkAnswer(q, Answer{ID: q.ID}, b) != nil {
		return nil
	}
	return b
}

// takeNamed uses up the first answer that names the question itself. The caller must
// hold s.mu.
func (s *questionState) takeNamed(q *Question, n *compiledNode, name string) (ahead int, wrong error) {
	for i := range s.ahead {
		a := &s.ahead[i]
		if a.Used || a.ID != name || q.Kind == KindRemote {
			continue
		}
		a.Used = true
		if why := describeMismatch(q, a.Value, a.Refused); why != "" {
			return i + 1, errors.New(why)
		}
		return i + 1, n.checkAnswer(q, Answer{ID: q.ID, Ahead: true, Refused: a.Refused}, a.Value)
	}
	return 0, nil
}

// takeShared uses up an answer that other questions could use too: first one that names
// the node, then one that names a graph or node around it, the nearest first, then the
// first that names nothing. A question that has refused an answer takes no other: that
// one was meant for the next question. The caller must hold s.mu.
func (s *questionState) takeShared(q *Question, n *compiledNode) (ahead int, wrong error) {
	if len(s.ahead) == 0 || q.Rejected != "" || q.Kind == KindRemote {
		return 0, nil
	}
	found, nearest := -1, 0
	for i := range s.ahead {
		a := &s.ahead[i]
		distance, named := q.NamedBy(a.ID)
		if !named && a.ID == "" {
			distance, named = math.MaxInt, true
		}
		if a.Used || !named || found >= 0 && distance >= nearest || describeMismatch(q, a.Value, a.Refused) != "" {
			continue
		}
		why := n.checkAnswer(q, Answer{Ahead: true, Refused: a.Refused}, a.Value)
		if why == nil || len(q.Options) == 0 {
			found, nearest, wrong = i, distance, why
		}
	}
	if found < 0 {
		return 0, nil
	}
	s.ahead[found].Used = true
	return found + 1, wrong
}

// NamedBy reports whether a word names the question: its ID, its node, or a graph or
// node around that node, each alone or as the end of a path, with or without the
// indexes of tasks. distance is 0 for the ID, 1 for the node, 2 for what is directly around
// it, and so on.
func (q *Question) NamedBy(word string) (distance int, ok bool) {
	path, _, _ := strings.Cut(q.ID, "#")
	if word == q.ID || word == path {
		return 0, word != ""
	}
	words, parts := strings.Split(word, "/"), strings.Split(path, "/")
	for n := len(parts); n >= len(words); n-- {
		if slices.EqualFunc(words, parts[n-len(words):n], isNamed) {
			return 1 + len(parts) - n, true
		}
	}
	return 0, false
}

// isNamed reports whether a word names a part of a path.
func isNamed(word, part string) bool {
	plain, _, _ := strings.Cut(part, "[")
	return word != "" && (word == part || word == plain)
}

// hasConcurrentTasks reports whether other tasks of the run may run concurrently with this one.
func (t *task) hasConcurrentTasks() bool { return t.frame.concurrent || len(t.frame.next.tasks) > 1 }

// assignPresetAnswers gives answers that several questions could use to those that are open when
// all tasks of the root's step have stopped: in the order of the tasks, not in the
// order of asking. It returns true if it gave any; then the step continues from what
// the journal holds of it. If a child has stopped at a break, the answers stay for the
// resume.
func (d *drive) assignPresetAnswers(f *frame) (bool, error) {
	if f.breaks != nil || !d.questions.hasUnusedAnswer() {
		return false, nil
	}
	if err := d.journal.Flush(); err != nil {
		return false, err
	}
	s, err := d.journal.LoadThread()
	if err != nil {
		return false, err
	}
	var given []journal.Record
	d.questions.mu.Lock()
	for _, o := range s.OpenQuestions() {
		i, wrong := d.questions.takeShared((*Question)(&o.Asked.Question), d.settings.Graph.findAskingNode(s, o))
		if i == 0 {
			continue
		}
		a := &d.questions.ahead[i-1]
		if wrong != nil {
			o.Asked.Question.Rejected = wrong.Error()
			given = append(given, journal.Record{Kind: journal.KindAnswer, Head: answerHead(o.Path, o.Key, i, a.Refused), Data: a.Value},
				journal.Record{Kind: journal.KindQuestion, Head: wire.PutTexts(nil, o.Path, o.Key, o.Asked.Base), Data: o.Asked.Question.Encode()})
			continue
		}
		o.Asked.Answered, o.Asked.Now, o.Asked.Ahead, o.Asked.Answer, o.Asked.Refused = true, true, i, a.Value, a.Refused
		given = append(given, journal.Record{Kind: journal.KindAnswer, Head: answerHead(o.Path, o.Key, i, a.Refused), Data: a.Value})
		d.questions.answered = append(d.questions.answered, QuestionAnswered{ID: o.Asked.Question.ID, Ahead: true, Refused: a.Refused})
	}
	d.questions.mu.Unlock()
	if given == nil {
		return false, nil
	}
	if err := d.journal.AddRecords(true, given...); err != nil {
		return false, err
	}
	d.deliverAnswers(f)
	f.raw, f.frames = s.EnsureFrame(""), s.Frames
	return true, nil
}

// hasUnusedAnswer reports whether an answer given ahead is still unused.
func (s *questionState) hasUnusedAnswer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.ahead {
		if !s.ahead[i].Used {
			return true
		}
	}
	return false
}

// unusedAnswers lists the answers given ahead that no question has used.
func (s *questionState) unusedAnswers() (list []Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, given := range s.ahead {
		if given.Used {
			continue
		}
		a := Answer{ID: given.ID, Refused: given.Refused}
		if json.Unmarshal(given.Value, &a.Value) == nil {
			list = append(list, a)
		}
	}
	return list
}

// deliverAnswers delivers the answers that the drive itself has recorded.
func (d *drive) deliverAnswers(f *frame) {
	if d.topics&TopicQuestion != 0 {
		for _, a := range d.questions.answered {
			d.out.deliverEvent(Event{Step: f.step, Body: a})
		}
	}
	d.questions.answered = nil
}

// markQuestionDelivered reports whether the drive has already delivered a question: a step that
// continues with answers given ahead finds the others still open.
func (s *questionState) markQuestionDelivered(q *Question) bool {
	if len(s.ahead) == 0 && s.handle == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.shown[q.ID] && q.Rejected == ""
	fold.SetEntry(&s.shown, q.ID, true)
	return was
}

// CheckAnswers reports whether Resume would accept the answers. The error is the one
// that Resume would return, usually an *AnswerError. Nothing is recorded.
func (r *Runner) CheckAnswers(ctx context.Context, thread string, answers ...Answer) error {
	if !r.Graph.isCompiled() {
		return errNoGraph
	}
	if r.Store == nil {
		return errors.New("graph: checking answers needs a store; give the Runner one")
	}
	s, err := fold.LoadThread(ctx, r.Store, thread, 0)
	switch {
	case err != nil:
		return err
	case s.Head == 0:
		return fmt.Errorf("%w: %s", journal.ErrNoThread, thread)
	case s.Run.Status.Final() && len(answers) > 0:
		return &AnswerError{ID: answers[0].ID, Reason: fmt.Sprintf("run %s is over (%s)", s.Run.ID, Status(s.Run.Status))}
	}
	_, _, err = r.Graph.checkAnswers(s, answers)
	return err
}

// checkAnswers returns the question of each answer and the JSON of its value. The
// error is an *AnswerError.
func (g *Graph) checkAnswers(s *fold.Thread, answers []Answer) (asked []fold.OpenQuestion, values [][]byte, err error) {
	open := s.OpenQuestions()
	var ids []string
	for _, o := range open {
		ids = append(ids, o.Asked.Question.ID)
	}
	wrong := func(a Answer, why error) error {
		return &AnswerError{ID: a.ID, Open: ids, Reason: why.Error(), Err: why}
	}
	for _, a := range answers {
		if a.ID == "" {
			if len(open) != 1 {
				return nil, nil, wrong(a, fmt.Errorf("it names no question, and %d are open", len(open)))
			}
			a.ID = ids[0]
		}
		at := slices.Index(ids, a.ID)
		if at < 0 {
			return nil, nil, wrong(a, errors.New("no such question is open"))
		}
		if slices.ContainsFunc(asked, func(o fold.OpenQuestion) bool { return o.Asked == open[at].Asked }) {
			return nil, nil, wrong(a, errors.New("answered twice"))
		}
		b, err := value.MarshalAnswer(a.Value)
		if err != nil {
			return nil, nil, wrong(a, err)
		}
		q := (*Question)(&open[at].Asked.Question)
		if why := describeMismatch(q, b, a.Refused); why != "" {
			return nil, nil, wrong(a, errors.New(why))
		}
		if err := g.findAskingNode(s, open[at]).checkAnswer(q, a, b); err != nil {
			return nil, nil, wrong(a, err)
		}
		asked, values = append(asked, open[at]), append(values, b)
	}
	return asked, values, nil
}

// checkAnswer returns why the node refuses an answer with a value in JSON, or nil. If n
// is nil, every answer is accepted.
func (n *compiledNode) checkAnswer(q *Question, a Answer, value []byte) (err error) {
	if n == nil || n.CheckAnswer == nil || a.Refused != "" {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = panics.NewError("CheckAnswer of node "+n.Name, p)
		}
	}()
	a.Value = nil
	if err := json.Unmarshal(value, &a.Value); err != nil {
		return err
	}
	return n.CheckAnswer(*q, a)
}

// findAskingNode returns the node that asked a question, or nil if the graph no longer has it.
// The digest of a named child's graph decides which kind the child is.
func (g *Graph) findAskingNode(s *fold.Thread, o fold.OpenQuestion) *compiledNode {
	path := ""
	for segment := range strings.SplitSeq(strings.TrimSuffix(o.Path, "/"), "/") {
		if segment == "" { // the root
			break
		}
		path += segment + "/"
		task, _, named := strings.Cut(segment, "#")
		n := g.nodeOfTask(task)
		switch {
		case n == nil:
			return nil
		case !named:
			g = n.Graph
		default:
			g = n.childWith(s.EnsureFrame(path).Digest)
		}
		if g == nil {
			return nil
		}
	}
	return g.nodeNamed(o.Asked.Question.Node)
}

// nodeOfTask returns the node of a task in the form step.node.index.
func (g *Graph) nodeOfTask(task string) *compiledNode {
	first, last := strings.IndexByte(task, '.'), strings.LastIndexByte(task, '.')
	if first < 0 || last <= first {
		return nil
	}
	return g.nodeNamed(task[first+1 : last])
}

// nodeNamed returns the node with a name, or nil.
func (g *Graph) nodeNamed(name string) *compiledNode {
	if at, ok := g.byName[name]; ok && at != end {
		return &g.nodes[at]
	}
	return nil
}

// childWith returns the graph of named children that has a digest, or nil.
func (n *compiledNode) childWith(digest string) *Graph {
	for _, kind := range slices.Sorted(maps.Keys(n.Children)) {
		if g := n.Children[kind].Graph; g.digest == digest {
			return g
		}
	}
	return nil
}
