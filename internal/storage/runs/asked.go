package runs

import (
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
)

// What a line has of the questions of its run: the first ones, each complete if it is short. Of a longer one it has the
// beginning of the prompt, and no data and options.
const (
	maxLineAsked    = 50
	maxLineQuestion = 4000 // bytes of the prompt, the options and the data
	maxLineAsk      = 500  // bytes of the prompt of a longer question
)

// A storedAsked is what the index keeps of a question without an answer.
type storedAsked struct {
	graph.Question
	Path  string `json:"path,omitempty"`
	Key   string `json:"key,omitempty"`
	Since int64  `json:"since"` // Unix microseconds
	Part  bool   `json:"part,omitempty"`
}

func newStoredAsked(a *history.Asked) storedAsked {
	s := storedAsked{Question: a.Question, Path: a.Path, Key: a.Key, Since: a.Since.UnixMicro(), Part: a.Part}
	size := len(s.Prompt) + len(s.Data) + len(s.Default)
	for _, o := range s.Options {
		size += len(o)
	}
	if size > maxLineQuestion {
		s.Part = true
		s.Prompt = cutText(s.Prompt, maxLineAsk)
		s.Options = nil
		s.Data = nil
		s.Default = ""
	}
	return s
}

func (s *storedAsked) decode() history.Asked {
	return history.Asked{Question: s.Question, Part: s.Part, Path: s.Path, Key: s.Key, Since: time.UnixMicro(s.Since)}
}

// waitPlace returns the place of the run in the list of what waits for people: when the first of its open questions was
// asked, in Unix microseconds. 0: it is not there.
func (l *runLine) waitPlace() (place int64) {
	switch l.Status {
	case graph.Waiting, graph.Paused, graph.Crashed:
	default:
		return 0
	}
	for _, a := range l.Asked {
		if since := max(a.Since.UnixMicro(), 1); len(graph.ForPeople([]graph.Question{a.Question})) > 0 && (place == 0 || since < place) {
			place = since
		}
	}
	return place
}

// isAskedSame reports whether two lists have the same questions.
func isAskedSame(a, b []history.Asked) bool {
	return slices.EqualFunc(a, b, func(a, b history.Asked) bool { return a.Path == b.Path && a.Key == b.Key && a.Since.Equal(b.Since) })
}

// nameAsked leaves of the questions only those that every line of the run has, with their ids alone.
func (l *runLine) nameAsked() {
	var named []history.Asked
	for _, a := range l.Asked[:min(len(l.Asked), maxLineAsked)] {
		named = append(named, history.Asked{Question: graph.Question{ID: a.Question.ID}})
	}
	l.Asked = named
}
