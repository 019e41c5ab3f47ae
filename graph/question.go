package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
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

	// Deadline is how long the question waits for its answer, from when it is asked: after that the error of Interrupt
	// is a *RefusedError that is ErrDeadline, and a late answer is refused. If 0, it waits without limit; a negative
	// one has passed already. A resume after that, with or without answers, records that the time has passed: see
	// Result.Due.
	Deadline time.Duration
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
	given, err := value.DecodeAnswer[A](raw)
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
	if in.busy[id] && strings.HasPrefix(name, timerName) {
		return "", fmt.Errorf("graph: node %s sleeps already: give each of several sleeps at the same time a context of NameQuestions", a.node().Name)
	}
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
	key = EffectID{Task: a.localID(), Name: ask.Name, Call: n}.String()
	if q := a.findQuestion(key); q != nil {
		answer, err = a.recallAnswer(q)
		return key, answer, err
	}
	if err := d.checkDriving(a.base); err != nil {
		return "", nil, err
	}
	q, base := newQuestion(&ask, a.node().Name, typ), a.publicPath()
	remote, isRemote := ask.Data.(remoteData)
	timer, isTimer := ask.Data.(timerData)
	switch {
	case isTimer:
		base += timerSuffix
		q.Due = toDue(timer.dueAt(d.now()))
	case ask.Deadline != 0:
		q.Due = toDue(d.now().Add(ask.Deadline))
	}
	if ask.Data != nil && !isRemote && !isTimer {
		// before the node checks an answer, which may depend on it
		if q.Data, err = json.Marshal(ask.Data); err != nil {
			return "", nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
	}
	ahead, wrong := d.questions.registerQuestion(&q, base, a.node(), a.hasConcurrentTasks())
	if isRemote {
		if err := a.encodeRemoteCall(remote, &q); err != nil {
			return "", nil, fmt.Errorf("question of node %s: %w", q.Node, err)
		}
	}
	given := record.PresetAnswer{}
	if ahead > 0 {
		given = d.questions.ahead[ahead-1]
	} else if given.Value = d.questions.replyTo(&q, a.node()); given.Value == nil && q.isDue(d) {
		q.Expired = true
		given.Value, given.Refused = (*record.Question)(&q).AnswerOfTime(isTimer)
	} else if given.Value == nil {
		if err := a.markWaiting(q); err != nil {
			return "", nil, err
		}
		recorded := &record.Parts{Path: f.path, ID: key, Base: base, Question: (*record.Question)(&q)}
		// others may work for a long time
		return "", nil, cmp.Or(d.journal.AddRecord(journal.KindQuestion, recorded, a.hasConcurrentTasks()), ErrWaiting)
	}
	asked := &record.AskedQuestion{Question: record.Question(q), Base: base, Answered: true, Ahead: ahead, Answer: given.Value, Refused: given.Refused}
	if err := a.recordAnsweredQuestion(key, asked, wrong); err != nil {
		return "", nil, err
	}
	answer, err = answerOf(asked)
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

// askAgain opens a question again after an answer that did not fit.
func (a attempt) askAgain(key string, why error) error {
	was := a.findQuestion(key)
	q := was.Question
	q.Rejected = why.Error()
	a.mu.Lock()
	fold.SetEntry(&a.ensureInner().asks, key, &record.AskedQuestion{Question: q, Base: was.Base})
	a.mu.Unlock()
	if err := a.markWaiting(Question(q)); err != nil {
		return err
	}
	if err := a.drive.journal.AddRecord(journal.KindQuestion, &record.Parts{Path: a.frame.path, ID: key, Base: was.Base, Question: &q}, false); err != nil {
		return err
	}
	return ErrWaiting
}

// findQuestion finds a question of the task that this or an earlier drive has recorded.
func (a attempt) findQuestion(key string) *record.AskedQuestion {
	a.mu.Lock()
	q := a.ensureInner().asks[key]
	a.mu.Unlock()
	if q == nil && a.raw != nil {
		q = a.raw.Asks[key]
	}
	return q
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
	if !q.takesAnswers() {
		return 0, nil
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

// NamedBy reports whether a word names the question: its ID, its node, or a graph or
// node around that node, each alone or as the end of a path, with or without the
// indexes of tasks. distance is 0 for the ID, 1 for the node, 2 for what is directly around
// it, and so on.
func (q *Question) NamedBy(word string) (distance int, ok bool) {
	return (*record.Question)(q).NamedBy(word)
}

// hasConcurrentTasks reports whether other tasks of the run may run concurrently with this one.
func (t *task) hasConcurrentTasks() bool { return t.frame.concurrent || len(t.frame.next.tasks) > 1 }

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
		if g := n.Children[kind].Graph; g.digest == digest || g.before == digest {
			return g
		}
	}
	return nil
}
