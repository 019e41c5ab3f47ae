package updates

import (
	"time"

	"raddle.dev/graph"
)

// A Stopwatch adds up the time of the drives of a run, and the time between them in which it waited for a person. The
// zero value is ready to use. It is not safe for concurrent use.
type Stopwatch struct {
	Took   time.Duration // of the drives that have ended
	Waited time.Duration // between a drive that ended at a question and the next one

	started, ended time.Time
	waits          bool // the last drive ended at a question
}

// HandleEvent takes an event of the run.
func (s *Stopwatch) HandleEvent(ev graph.Event) {
	if ev.Path != "" {
		return
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		if s.waits {
			s.Waited += ev.Time.Sub(s.ended)
		}
		s.started = ev.Time
		s.waits = false
	case graph.RunEnded:
		s.Took += ev.Time.Sub(s.started)
		s.ended = ev.Time
		s.waits = b.Result.Status == graph.Waiting
	}
}

// ElapsedAt returns the time of all drives at a moment of the current one.
func (s *Stopwatch) ElapsedAt(now time.Time) time.Duration { return s.Took + now.Sub(s.started) }
