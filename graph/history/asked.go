package history

import (
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// An Asked is a question without an answer, with its place and its time.
type Asked struct {
	// Question is what is asked. Part says that it is not complete: of one that a later record only names, it has ID
	// and Prompt.
	Question graph.Question
	Part     bool

	// Path is that of the graph that asks, and Key the name of the question there.
	Path string
	Key  string

	// Since is when it was asked. Of a thread whose first record is a fork or a snapshot, it is the time of that.
	Since time.Time
}

// addAsked adds what the next record says of questions without an answer. b are the parts of a record that Line.Add has
// read; the others are read here, if there are questions that they can end.
func (l *Line) addAsked(r *journal.Record, b *record.Parts) error {
	switch r.Kind {
	case journal.KindStart:
		l.Asked = nil
	case journal.KindFork, journal.KindSnapshot:
		l.Asked = nil
		if b.State == nil {
			break
		}
		s := fold.Thread{ThreadState: *b.State}
		for _, o := range s.OpenQuestions() {
			l.Asked = append(l.Asked, newAsked(o.Path, o.Key, &o.Asked.Question, r))
		}
	case journal.KindEnd, journal.KindEdit:
		if r.Kind == journal.KindEdit || b.Status == record.Waiting { // a drive that stops otherwise names none
			l.keepAsked(b.Open, r)
		}
	case journal.KindQuestion:
		b = &record.Parts{}
		if err := b.Read(uint8(r.Kind), r.Head, r.Data); err != nil {
			return err
		}
		l.dropAsked(func(q *Asked) bool { return q.Path == b.Path && q.Key == b.ID })
		if b.Question.Kind != fold.KindTimer {
			l.Asked = append(slices.Clip(l.Asked), newAsked(b.Path, b.ID, b.Question, r))
		}
	case journal.KindAnswer, journal.KindTask, journal.KindStep, journal.KindCall, journal.KindReturn:
		if len(l.Asked) == 0 {
			break
		}
		b = &record.Parts{}
		if err := b.ReadHead(uint8(r.Kind), r.Head); err != nil {
			return err
		}
		l.endAsked(r.Kind, b)
	}
	return nil
}

func newAsked(path, key string, q *record.Question, r *journal.Record) Asked {
	return Asked{Question: graph.Question(*q), Path: path, Key: key, Since: timeOf(r.Time)}
}

// endAsked drops the questions that a record with these parts ends: one that is answered, those of a task that has an
// update and of the graphs below it, and those of a graph whose step, start or end it is.
func (l *Line) endAsked(kind journal.Kind, b *record.Parts) {
	l.dropAsked(func(q *Asked) bool {
		switch kind {
		case journal.KindAnswer:
			return q.Path == b.Path && q.Key == b.ID
		case journal.KindTask:
			below, isBelow := strings.CutPrefix(q.Path, b.Path+b.ID)
			return q.Path == b.Path && strings.HasPrefix(q.Key, b.ID+"\x00") ||
				isBelow && (strings.HasPrefix(below, "/") || strings.HasPrefix(below, "#"))
		}
		return strings.HasPrefix(q.Path, b.Path)
	})
}

// keepAsked keeps the questions that a record names as open, in its order.
func (l *Line) keepAsked(open []record.Question, r *journal.Record) {
	var kept []Asked
	for i := range open {
		at := slices.IndexFunc(l.Asked, func(q Asked) bool { return q.Question.ID == open[i].ID })
		if at < 0 {
			named := newAsked("", "", &open[i], r)
			named.Part = true
			kept = append(kept, named)
		} else {
			kept = append(kept, l.Asked[at])
		}
	}
	l.Asked = kept
}

// dropAsked removes questions from the list, which another line may have too.
func (l *Line) dropAsked(ended func(*Asked) bool) {
	if slices.ContainsFunc(l.Asked, func(q Asked) bool { return ended(&q) }) {
		l.Asked = slices.DeleteFunc(slices.Clone(l.Asked), func(q Asked) bool { return ended(&q) })
	}
}
