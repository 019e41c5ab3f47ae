package fold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// Question is a graph.Question, which has the same fields.
type Question struct {
	ID, Node, Kind, Prompt string
	Options                []string
	Free                   bool
	Default, Type          string
	Data                   json.RawMessage
	Integer, Rejected      string
}

// KindRemote is graph.KindRemote.
const KindRemote = "remote"

// Encode returns the question as records hold it.
func (q *Question) Encode() []byte {
	b := make([]byte, 0, 64+len(q.Prompt)+len(q.Data))
	for _, part := range []string{q.ID, q.Node, q.Kind, q.Prompt, q.Default, q.Type} {
		b = wire.PutString(b, part)
	}
	b = wire.PutString(wire.PutBool(wire.PutStrings(b, q.Options), q.Free), q.Data)
	return wire.PutTexts(b, q.Integer, q.Rejected)
}

// Decode reads what Encode has written.
func (q *Question) Decode(r *wire.Reader) {
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

// An AskedQuestion is a question of a step that has not ended, with its answer.
type AskedQuestion struct {
	Question Question
	Base     string
	Answered bool
	Now      bool   // the answer was given to the drive that has read it
	Ahead    int    // the place, from 1, of the answer given ahead that it used
	Answer   []byte // JSON
	Refused  string
}

// A PresetAnswer is an answer given with the start of a run.
type PresetAnswer struct {
	ID      string // "": for any question
	Value   []byte // JSON
	Refused string
	Used    bool
}

func (s *Thread) applyQuestion(h, d *wire.Reader) {
	f := s.EnsureFrame(h.Text())
	key := h.Text()
	q := &AskedQuestion{Base: h.Text()}
	q.Question.Decode(d)
	if f.Asks[key] == nil { // otherwise it is asked again
		f.Order = append(f.Order, key)
		SetEntry(&s.Asked, q.Base, s.Asked[q.Base]+1)
	}
	SetEntry(&f.Asks, key, q)
}

func (s *Thread) applyAnswer(h, d *wire.Reader) {
	f := s.EnsureFrame(h.Text())
	q := f.Asks[h.Text()]
	ahead := h.Int()
	if q == nil || ahead > len(s.Ahead) {
		h.MarkDamaged("an answer without a question")
		return
	}
	q.Answered, q.Ahead, q.Refused, q.Answer = true, ahead, h.Text(), d.Rest
	if ahead > 0 {
		s.Ahead[ahead-1] = PresetAnswer{ID: s.Ahead[ahead-1].ID, Used: true}
	}
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

// OpenQuestions lists the questions without an answer, with the frame and key of each: in the
// order of their tasks, those of one task in order of asking, and those of its child
// after them, or those of its named children by name. A task with a recorded update has
// no open question.
func (s *Thread) OpenQuestions() []OpenQuestion {
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
	Asked     *AskedQuestion
}
