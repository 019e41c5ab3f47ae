package fold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/internal/record"
)

// The kinds of questions that no person answers: graph.KindRemote and graph.KindTimer.
const (
	KindRemote = "remote"
	KindTimer  = "timer"
)

func (s *Thread) applyQuestion(b *record.Parts) {
	f := s.EnsureFrame(b.Path)
	if f.Asks[b.ID] == nil { // otherwise it is asked again
		f.Order = append(f.Order, b.ID)
		SetEntry(&s.Asked, b.Base, s.Asked[b.Base]+1)
	}
	SetEntry(&f.Asks, b.ID, &record.AskedQuestion{Question: *b.Question, Base: b.Base})
}

func (s *Thread) applyAnswer(b *record.Parts) error {
	q := s.EnsureFrame(b.Path).Asks[b.ID]
	if q == nil || b.Ahead > len(s.Ahead) {
		return errors.New("damaged record: an answer without a question")
	}
	q.Answered = true
	q.Ahead = b.Ahead
	q.Refused = b.Refused
	q.Answer = b.Value
	q.Question.Expired = b.Due != 0
	if b.Ahead > 0 {
		s.Ahead[b.Ahead-1] = record.PresetAnswer{ID: s.Ahead[b.Ahead-1].ID, Used: true}
	}
	return nil
}

// forgetRefusedRuns removes the failures of runs that questions of Remote wait for: when the run that has failed
// is resumed, its tasks ask again.
func (s *Thread) forgetRefusedRuns() {
	for _, f := range s.Frames {
		kept := f.Order[:0:0]
		for _, key := range f.Order {
			if q := f.Asks[key]; q.Question.Kind == KindRemote && q.Refused != "" {
				delete(f.Asks, key)
				continue
			}
			kept = append(kept, key)
		}
		f.Order = kept
	}
}

// OpenQuestions is ListOpen without the timers.
func (s *Thread) OpenQuestions() []OpenQuestion {
	return slices.DeleteFunc(s.ListOpen(), func(o OpenQuestion) bool { return o.Asked.Question.Kind == KindTimer })
}

// DueTime returns when the first question of a run that waits is due, or the time of the run is up, in Unix microseconds;
// 0: it does not wait, or not for a time.
func (s *Thread) DueTime() (micro int64) {
	if s.Run.Status != record.Waiting {
		return 0
	}
	micro = s.Run.Due
	for _, o := range s.ListOpen() {
		if due := o.Asked.Question.Due; !due.IsZero() && (micro == 0 || due.UnixMicro() < micro) {
			micro = due.UnixMicro()
		}
	}
	return micro
}

// ListOpen lists the questions and timers without an answer, with the frame and key of each: in the
// order of their tasks, those of one task in order of asking, and those of its child
// after them, or those of its named children by name. A task with a recorded update has
// no open question.
func (s *Thread) ListOpen() []OpenQuestion {
	w := &questionWalk{Thread: s, named: s.ChildPathsByTask(), seen: map[string]bool{}}
	w.walkFrame("")
	return w.qs
}

// questionWalk is a walk through the frames.
type questionWalk struct {
	*Thread
	named map[string][]string // children, by task
	seen  map[string]bool     // so that a damaged frontier is not walked repeatedly
	qs    []OpenQuestion
}

// walkFrame walks through one frame and those below it.
func (w *questionWalk) walkFrame(path string) {
	f := w.Frames[path]
	if f == nil || w.seen[path] {
		return
	}
	w.seen[path] = true
	for _, t := range f.Tasks {
		id := fmt.Sprintf("%d.%s.%d", f.Step, t.Node, t.Index)
		if _, done := f.Done[id]; done {
			continue
		}
		for _, key := range f.Order {
			if q := f.Asks[key]; !q.Answered && strings.HasPrefix(key, id+"\x00") {
				w.qs = append(w.qs, OpenQuestion{path, key, q})
			}
		}
		w.walkFrame(path + id + "/")
		for _, below := range w.named[path+id] {
			w.walkFrame(below)
		}
	}
}

// An OpenQuestion is a question without an answer, with its place: the key in the frame at a path.
type OpenQuestion struct {
	Path, Key string
	Asked     *record.AskedQuestion
}

// FindOnlyQuestion returns the place of the last open question that takes an answer without its id, and how many do:
// those that people and programs answer, or else those of Remote. An event has a name, so that none is taken by mistake.
func FindOnlyQuestion(open []OpenQuestion, takesAnswers func(q *record.Question) bool) (at, n int) {
	for _, takes := range []func(q *record.Question) bool{takesAnswers, func(q *record.Question) bool { return q.Kind == KindRemote }} {
		for i := range open {
			if takes(&open[i].Asked.Question) {
				at = i
				n++
			}
		}
		if n > 0 {
			break
		}
	}
	return at, n
}
