package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// presetAnswer is an answer given with the start of a run.
type presetAnswer struct {
	id      string // "": for any question
	value   []byte // JSON
	refused string
	used    bool
}

// questionState is what a drive knows of questions and answers.
type questionState struct {
	answered []QuestionAnswered // recorded by the drive itself, not yet delivered
	reply    Reply              // nil: no one answers within the drive

	mu    sync.Mutex // guards the fields below
	ahead []presetAnswer
	asked map[string]int  // questions by node path
	shown map[string]bool // questions delivered, if answers were given ahead
}

// addPresetAnswers stores the answers given with the start, and returns them encoded.
func (x *drive) addPresetAnswers(answers []Answer) ([]byte, error) {
	b := wire.PutInt(nil, len(answers))
	for _, a := range answers {
		v, err := value.MarshalJSON(a.Value)
		if err != nil {
			return nil, &AnswerError{ID: a.ID, Reason: err.Error()}
		}
		b = wire.PutString(wire.PutString(wire.PutString(b, a.ID), v), a.Refused)
		x.ahead = append(x.ahead, presetAnswer{id: a.ID, value: v, refused: a.Refused})
	}
	return b, nil
}

// registerQuestion numbers a question of a node, and returns the place, from 1, of the answer that
// was given ahead for it, or 0. wrong says why the node refuses that answer. Tasks that
// run together do not take an answer that another of them could use: see assignPresetAnswers.
func (x *drive) registerQuestion(q *Question, base string, n *cnode, together bool) (ahead int, wrong error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	setEntry(&x.asked, base, x.asked[base]+1)
	q.ID = base
	if n := x.asked[base]; n > 1 {
		q.ID = fmt.Sprintf("%s#%d", base, n)
	}
	for _, name := range []string{q.ID, base} {
		if ahead, wrong = x.takeNamed(q, n, name); ahead > 0 {
			return ahead, wrong
		}
	}
	if !together {
		ahead, wrong = x.takeShared(q, n)
	}
	return ahead, wrong
}

// replyTo asks the Reply of the input or resume for an answer within the drive. The value is JSON; if nil,
// the question stays open.
func (x *drive) replyTo(q *Question, n *cnode) []byte {
	if x.reply == nil {
		return nil
	}
	v, ok := x.reply(*q)
	if !ok {
		return nil
	}
	b, err := value.MarshalJSON(v)
	if err != nil || describeMismatch(q, b, "") != "" || n.checkAnswer(q, Answer{ID: q.ID}, b) != nil {
		return nil
	}
	return b
}

// takeNamed uses up the first answer that names the question itself. The caller must
// hold x.mu.
func (x *drive) takeNamed(q *Question, n *cnode, name string) (ahead int, wrong error) {
	for i := range x.ahead {
		a := &x.ahead[i]
		if a.used || a.id != name {
			continue
		}
		a.used = true
		if why := describeMismatch(q, a.value, a.refused); why != "" {
			return i + 1, errors.New(why)
		}
		return i + 1, n.checkAnswer(q, Answer{ID: q.ID, Ahead: true, Refused: a.refused}, a.value)
	}
	return 0, nil
}

// takeShared uses up an answer that other questions could use too: first one that names
// the node, then one that names a graph or node around it, the nearest first, then the
// first that names nothing. A question that has refused an answer takes no other: that
// one was meant for the next question. The caller must hold x.mu.
func (x *drive) takeShared(q *Question, n *cnode) (ahead int, wrong error) {
	if len(x.ahead) == 0 || q.Rejected != "" {
		return 0, nil
	}
	found, nearest := -1, 0
	for i := range x.ahead {
		a := &x.ahead[i]
		far, named := q.NamedBy(a.id)
		if !named && a.id == "" {
			far, named = math.MaxInt, true
		}
		if a.used || !named || found >= 0 && far >= nearest || describeMismatch(q, a.value, a.refused) != "" {
			continue
		}
		why := n.checkAnswer(q, Answer{Ahead: true, Refused: a.refused}, a.value)
		if why == nil || len(q.Options) == 0 {
			found, nearest, wrong = i, far, why
		}
	}
	if found < 0 {
		return 0, nil
	}
	x.ahead[found].used = true
	return found + 1, wrong
}

// NamedBy reports whether a word names the question: its ID, its node, or a graph or
// node around that node, each alone or as the end of a path, with or without the
// indexes of tasks. far is 0 for the ID, 1 for the node, 2 for what is directly around
// it, and so on.
func (q *Question) NamedBy(word string) (far int, ok bool) {
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
func (t *task) hasConcurrentTasks() bool { return t.frame.beside || len(t.frame.next.tasks) > 1 }

// assignPresetAnswers gives answers that several questions could use to those that are open when
// all tasks of the root's step have stopped: in the order of the tasks, not in the
// order of asking. It returns true if it gave any; then the step continues from what
// the journal holds of it. If a child has stopped at a break, the answers stay for the
// resume.
func (x *drive) assignPresetAnswers(f *frame) (bool, error) {
	if f.breaks != nil || !x.hasUnusedAnswer() {
		return false, nil
	}
	if err := x.j.flush(); err != nil {
		return false, err
	}
	s, err := loadToDrive(x.ctx, x.j.store, x.thread)
	if err != nil {
		return false, err
	}
	var given []Record
	x.mu.Lock()
	for _, o := range s.openQuestions() {
		i, wrong := x.takeShared(&o.q.q, x.r.Graph.findAskingNode(s, o))
		if i == 0 {
			continue
		}
		a := &x.ahead[i-1]
		if wrong != nil {
			o.q.q.Rejected = wrong.Error()
			given = append(given, Record{Kind: KindAnswer, Head: answerHead(o.path, o.key, i, a.refused), Data: a.value},
				Record{Kind: KindQuestion, Head: wire.PutTexts(nil, o.path, o.key, o.q.base), Data: o.q.q.encode()})
			continue
		}
		o.q.answered, o.q.now, o.q.ahead, o.q.answer, o.q.refused = true, true, i, a.value, a.refused
		given = append(given, Record{Kind: KindAnswer, Head: answerHead(o.path, o.key, i, a.refused), Data: a.value})
		x.answered = append(x.answered, QuestionAnswered{ID: o.q.q.ID, Ahead: true, Refused: a.refused})
	}
	x.mu.Unlock()
	if given == nil {
		return false, nil
	}
	if err := x.j.addRecords(true, given...); err != nil {
		return false, err
	}
	x.deliverAnswers(f)
	f.raw, f.frames = s.ensureFrame(""), s.frames
	return true, nil
}

// hasUnusedAnswer reports whether an answer given ahead is still unused.
func (x *drive) hasUnusedAnswer() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.ahead {
		if !x.ahead[i].used {
			return true
		}
	}
	return false
}

// unusedAnswers lists the answers given ahead that no question has used.
func (x *drive) unusedAnswers() (list []Answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, given := range x.ahead {
		if given.used {
			continue
		}
		a := Answer{ID: given.id, Refused: given.refused}
		if json.Unmarshal(given.value, &a.Value) == nil {
			list = append(list, a)
		}
	}
	return list
}

// deliverAnswers delivers the answers that the drive itself has recorded.
func (x *drive) deliverAnswers(f *frame) {
	if x.topics&TopicQuestion != 0 {
		for _, a := range x.answered {
			x.out.deliverEvent(Event{Step: f.step, Body: a})
		}
	}
	x.answered = nil
}

// markQuestionDelivered reports whether the drive has already delivered a question: a step that
// continues with answers given ahead finds the others still open.
func (x *drive) markQuestionDelivered(q *Question) bool {
	if len(x.ahead) == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.shown[q.ID] && q.Rejected == ""
	setEntry(&x.shown, q.ID, true)
	return was
}
