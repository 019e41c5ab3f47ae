package graph

import (
	"errors"
	"sync"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// ErrNotDriven says that the drive of a Handle has not started, waits or has ended: its questions are
// answered with a resume.
var ErrNotDriven = errors.New("graph: no drive works on the run")

// A Handle reaches a drive while it works. It is given with Input.Handle or Resume.Handle, and may be
// used for one drive after the other. Its zero value is ready, and its methods may be called by any
// goroutine.
type Handle struct {
	mu       sync.Mutex // held while the drive decides that it waits
	drive    *drive     // nil: no drive works
	recorded int64      // number of the newest record of an answer
}

// Answer answers open questions while other tasks of the same step still work. All answers are checked
// before any is recorded; they are durable when Answer returns. The tasks that asked continue in the
// same drive, when the other tasks of the step have stopped. Answer returns the questions that are still open.
// The error is an *AnswerError, or ErrNotDriven: then the run can be resumed with the answers.
func (h *Handle) Answer(answers ...Answer) (open []Question, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.drive == nil {
		return nil, ErrNotDriven
	}
	open, err = h.drive.answerWhileWorking(answers)
	if err == nil {
		h.recorded = h.drive.journal.SavedHead()
	}
	return open, err
}

// ReadLastRecord returns the number of a record at or before which the last answer of Answer is in the journal; 0:
// there was none.
func (h *Handle) ReadLastRecord() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recorded
}

// openHandle lets the handle of the drive reach it.
func (d *drive) openHandle() {
	if h := d.questions.handle; h != nil && d.journal != nil {
		h.mu.Lock()
		h.drive = d
		h.mu.Unlock()
	}
}

// closeHandle ends what the handle of the drive can do.
func (d *drive) closeHandle() {
	if h := d.questions.handle; h != nil {
		h.mu.Lock()
		h.drive = nil
		h.mu.Unlock()
	}
}

// A lateAnswer is an answer that was recorded while other tasks worked: its question is that with
// a key in the frame at a path.
type lateAnswer struct {
	path, key string
	event     QuestionAnswered
}

// answerWhileWorking checks and records answers. The caller must hold the lock of the handle.
func (d *drive) answerWhileWorking(answers []Answer) (open []Question, err error) {
	var s *fold.Thread
	var asked []fold.OpenQuestion
	err = d.journal.InsertRecords(func(now *fold.Thread) (recs []journal.Record, err error) {
		var values [][]byte
		s = now
		asked, values, err = d.settings.Graph.checkAnswers(s, answers, d.now())
		if err != nil {
			return nil, err
		}
		return newAnswerRecords(asked, values, answers), nil
	})
	if err != nil {
		return nil, err
	}
	for i, o := range asked {
		o.Asked.Answered = true
		d.questions.late = append(d.questions.late, lateAnswer{o.Path, o.Key, QuestionAnswered{ID: o.Asked.Question.ID, Refused: answers[i].Refused, By: answers[i].By}})
	}
	for _, o := range s.OpenQuestions() {
		open = append(open, Question(o.Asked.Question))
	}
	return open, nil
}

// newAnswerRecords returns the records of answers to questions that they were checked against.
func newAnswerRecords(asked []fold.OpenQuestion, values [][]byte, answers []Answer) (recs []journal.Record) {
	for i, a := range answers {
		recs = append(recs, fold.NewRecord(journal.KindAnswer, &record.Parts{Path: asked[i].Path, ID: asked[i].Key, Refused: a.Refused, By: a.By, Value: values[i]}))
	}
	return recs
}

// continueWithAnswers decides, when all tasks of the root's step have stopped and some wait, whether the step
// continues: with answers that came while tasks worked, or else with answers given ahead, or else because a question is
// due. If it does not, the drive waits, and its handle records nothing more.
func (d *drive) continueWithAnswers(f *frame) (again bool, err error) {
	h := d.questions.handle
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	for _, try := range []func(*frame) (bool, error){d.useLateAnswers, d.assignPresetAnswers, d.expireQuestions} {
		if again, err = try(f); again || err != nil {
			return again, err
		}
	}
	if h != nil {
		h.drive = nil
	}
	return false, nil
}

// useLateAnswers lets a step continue from what the journal holds of it, if answers came while its tasks worked.
func (d *drive) useLateAnswers(f *frame) (bool, error) {
	if f.breaks != nil || len(d.questions.late) == 0 {
		return false, nil
	}
	if err := d.journal.Flush(); err != nil {
		return false, err
	}
	s, err := d.journal.LoadThread()
	if err != nil {
		return false, err
	}
	for _, a := range d.questions.late {
		if in := s.Frames[a.path]; in != nil && in.Asks[a.key] != nil {
			in.Asks[a.key].Now = true
		}
		d.questions.answered = append(d.questions.answered, a.event)
	}
	d.questions.late = nil
	d.deliverAnswers(f)
	f.raw, f.frames = s.EnsureFrame(""), s.Frames
	return true, nil
}
