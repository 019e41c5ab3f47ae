package graph

import (
	"fmt"
	"sync"
)

// aheadAnswer is an answer given with the start of a run.
type aheadAnswer struct {
	id      string // "": for any question
	value   []byte // JSON
	refused string
	used    bool
}

// inquiry is what a drive knows of questions and answers.
type inquiry struct {
	answered []Answered // recorded by the drive itself, to be told

	mu    sync.Mutex // guards what follows
	ahead []aheadAnswer
	asked map[string]int  // questions by node path
	shown map[string]bool // questions told, where answers were given ahead
}

// giveAhead takes the answers given with the start.
func (x *drive) giveAhead(answers []Answer) ([]byte, error) {
	b := putInt(nil, len(answers))
	for _, a := range answers {
		v, err := marshal(a.Value)
		if err != nil {
			return nil, &AnswerError{ID: a.ID, Reason: err.Error()}
		}
		b = putString(putString(putString(b, a.ID), v), a.Refused)
		x.ahead = append(x.ahead, aheadAnswer{id: a.ID, value: v, refused: a.Refused})
	}
	return b, nil
}

// open numbers a question, and finds the answer that was given ahead for it, if
// any, by its place from 1. Among tasks that run together nobody takes what
// another might: see handOut.
func (x *drive) open(q *Question, base string, together bool) (ahead int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	keep(&x.asked, base, x.asked[base]+1)
	q.ID = base
	if n := x.asked[base]; n > 1 {
		q.ID = fmt.Sprintf("%s#%d", base, n)
	}
	if ahead = x.take(q, func(id string) bool { return id == q.ID }); ahead == 0 {
		ahead = x.take(q, func(id string) bool { return id == base })
	}
	if ahead == 0 && !together {
		ahead = x.takeShared(q)
	}
	return ahead
}

// takeShared finds an answer that other questions could use too: first one that
// names the node, then the first that names nothing. The caller holds x.mu.
func (x *drive) takeShared(q *Question) (ahead int) {
	if ahead = x.take(q, func(id string) bool { return id == q.Node }); ahead == 0 {
		ahead = x.take(q, func(id string) bool { return id == "" })
	}
	return ahead
}

func (x *drive) take(q *Question, match func(id string) bool) (ahead int) {
	for i := range x.ahead {
		if a := &x.ahead[i]; !a.used && match(a.id) && fits(q, a.value, a.refused) == "" {
			a.used = true
			return i + 1
		}
	}
	return 0
}

// together tells whether other tasks of the run may be running beside this one.
func (t *task) together() bool { return t.frame.beside || len(t.frame.next.tasks) > 1 }

// handOut gives answers that several questions could use to those that are open
// when all tasks of the root's step have stopped: in the order of the tasks, never
// that of asking. It is true when there were any; then the step goes on from what
// the journal holds of it. Where a child stands at a break they stay for the resume.
func (x *drive) handOut(f *frame) (bool, error) {
	if f.breaks != nil || !x.spare() {
		return false, nil
	}
	if err := x.j.flush(); err != nil {
		return false, err
	}
	s, err := load(x.ctx, x.j.store, x.thread, 0)
	if err != nil {
		return false, err
	}
	var given []Record
	x.mu.Lock()
	for _, o := range s.open() {
		i := x.takeShared(&o.q.q)
		if i == 0 {
			continue
		}
		a := &x.ahead[i-1]
		o.q.answered, o.q.now, o.q.ahead, o.q.answer, o.q.refused = true, true, i, a.value, a.refused
		given = append(given, Record{Kind: KindAnswer, Head: answerHead(o.path, o.key, i, a.refused), Data: a.value})
		x.answered = append(x.answered, Answered{ID: o.q.q.ID, Ahead: true, Refused: a.refused})
	}
	x.mu.Unlock()
	if given == nil {
		return false, nil
	}
	if err := x.j.gather(true, given...); err != nil {
		return false, err
	}
	x.tellAnswers(f)
	f.raw, f.frames = s.frame(""), s.frames
	return true, nil
}

// spare tells whether an answer that anybody could use is left.
func (x *drive) spare() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.ahead {
		if !x.ahead[i].used {
			return true
		}
	}
	return false
}

// tellAnswers delivers the answers that the drive has recorded by itself.
func (x *drive) tellAnswers(f *frame) {
	if x.topics&TopicQuestion != 0 {
		for _, a := range x.answered {
			x.out.deliver(Event{Step: f.step, Body: a})
		}
	}
	x.answered = nil
}

// told tells whether the drive has delivered a question already: a step that goes
// on with answers given ahead finds the others still open.
func (x *drive) told(q *Question) bool {
	if len(x.ahead) == 0 {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.shown[q.ID] && q.Rejected == ""
	keep(&x.shown, q.ID, true)
	return was
}
