package writer

import (
	"sync"
	"time"
)

// jumpAfter is by how much the advance of a clock may differ from the time that has passed.
const jumpAfter = 10 * time.Second

// A Stopwatch measures the time that a drive works, by a clock that may be set meanwhile: its advance counts, but when
// it jumps, the time that has passed counts instead. It is safe for concurrent use. Call StartWatch before it is read.
type Stopwatch struct {
	now     func() time.Time     // the clock
	passing func() time.Duration // increases with the time that passes, whatever the clock says

	mu     sync.Mutex // guards the fields below
	clock  time.Time  // at the last reading
	passed time.Duration
	active time.Duration
	jumped bool // forward, since that was last asked
}

// StartWatch starts the measuring.
func (s *Stopwatch) StartWatch(now func() time.Time, passing func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	s.passing = passing
	s.clock, s.passed = now().Round(0), passing()
}

// ReadWatch returns the time of the clock, and the time that has been measured.
func (s *Stopwatch) ReadWatch() (now time.Time, active time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readClock()
	return s.clock, s.active
}

// readStamp returns the time of the clock, and whether the clock has jumped forward since the last stamp.
func (s *Stopwatch) readStamp() (now time.Time, jumped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readClock()
	jumped, s.jumped = s.jumped, false
	return s.clock, jumped
}

// readClock reads the clock. The caller must hold mu.
func (s *Stopwatch) readClock() {
	clock := s.now().Round(0)
	passed := s.passing() // as it is stored: time.Time would measure what has passed
	advance := clock.Sub(s.clock)
	took := passed - s.passed
	switch {
	case advance > took+jumpAfter:
		advance = took
		s.jumped = true
	case advance < took-jumpAfter:
		advance = took
	}
	s.clock = clock
	s.passed = passed
	s.active = s.active + advance
}
