package graph

import (
	"encoding/json"
	"errors"
	"math"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/journal"
)

// addPresetAnswers stores the answers given with the start, and returns them encoded.
func (s *questionState) addPresetAnswers(answers []Answer) ([]record.PresetAnswer, error) {
	added := make([]record.PresetAnswer, 0, len(answers))
	for _, a := range answers {
		v, err := value.MarshalAnswer(a.Value)
		if err != nil {
			return nil, &AnswerError{ID: a.ID, Reason: err.Error()}
		}
		added = append(added, record.PresetAnswer{ID: a.ID, Value: v, Refused: a.Refused})
	}
	s.ahead = append(s.ahead, added...)
	return added, nil
}

// takeNamed uses up the first answer that names the question itself. The caller must
// hold s.mu.
func (s *questionState) takeNamed(q *Question, n *compiledNode, name string) (ahead int, wrong error) {
	for i := range s.ahead {
		a := &s.ahead[i]
		if a.Used || a.ID != name {
			continue
		}
		a.Used = true
		if why := (*record.Question)(q).DescribeMismatch(a.Value, a.Refused); why != "" {
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
	if len(s.ahead) == 0 || q.Rejected != "" || !q.takesAnswers() {
		return 0, nil
	}
	found, nearest := -1, 0
	for i := range s.ahead {
		a := &s.ahead[i]
		distance, named := q.NamedBy(a.ID)
		if !named && a.ID == "" {
			distance, named = math.MaxInt, true
		}
		if a.Used || !named || found >= 0 && distance >= nearest || (*record.Question)(q).DescribeMismatch(a.Value, a.Refused) != "" {
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
		given = append(given, fold.NewRecord(journal.KindAnswer, &record.Parts{Path: o.Path, ID: o.Key, Ahead: i, Refused: a.Refused, Value: a.Value}))
		if wrong != nil {
			o.Asked.Question.Rejected = wrong.Error()
			given = append(given, fold.NewRecord(journal.KindQuestion, &record.Parts{Path: o.Path, ID: o.Key, Base: o.Asked.Base, Question: &o.Asked.Question}))
			continue
		}
		o.Asked.Answered, o.Asked.Now, o.Asked.Ahead, o.Asked.Answer, o.Asked.Refused = true, true, i, a.Value, a.Refused
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
