package team

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"raddle.dev/graph"
)

// A log is the state of a team together with the entries that produced it. The
// entries are numbered effects of the team's task. A log is safe for concurrent
// use.
type log struct {
	ctx context.Context // of the task

	mu      sync.Mutex // guards the fields below
	state   *state
	entries int
	old     map[string]outcome // the outcomes of calls of an earlier drive, by key
	changed chan struct{}      // closed when something has changed
}

// logEffect is the name of the effects that are entries.
const logEffect = "team"

// errUnrecorded ends an effect that is only looked up.
var errUnrecorded = errors.New("team: nothing is recorded")

// openLog reads the log from the journal. fresh reports whether the journal has no
// log.
func openLog(ctx context.Context, s *state) (l *log, fresh bool, err error) {
	l = &log{ctx: ctx, state: s, old: map[string]outcome{}, changed: make(chan struct{})}
	ended, cancel := context.WithCancel(ctx)
	cancel() // then the engine treats errUnrecorded as an interrupted call, not as a failure of the effect
	for ; ; l.entries++ {
		e, err := graph.DoEffect(ended, l.nextEffect(), func(context.Context) (e entry, err error) { return e, errUnrecorded })
		if errors.Is(err, errUnrecorded) {
			return l, l.entries == 0, nil
		}
		if err != nil {
			return nil, false, err
		}
		if out := s.applyEntry(e); e.Key != "" {
			l.old[e.Key] = out
		}
	}
}

func (l *log) nextEffect() graph.Effect {
	return graph.Effect{Name: logEffect, Key: strconv.Itoa(l.entries)}
}

// addEntry makes a change. A change that the same call already made in an earlier
// drive is not made again.
func (l *log) addEntry(e entry) (outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addEntryLocked(e)
}

// addEntryLocked is addEntry for a caller that holds mu.
func (l *log) addEntryLocked(e entry) (outcome, error) {
	if out, ok := l.old[e.Key]; ok && e.Key != "" {
		return out, nil
	}
	if out := l.state.checkRules(e); out.refused {
		return out, nil
	}
	e.At = time.Now()
	e.Queued = e.Op == opSpawn && l.state.isFull(e.By)
	out := l.state.applyEntry(e)
	if out.refused {
		return out, nil
	}
	if _, err := graph.DoEffect(l.ctx, l.nextEffect(), func(context.Context) (entry, error) { return e, nil }); err != nil {
		return out, err // the run ends, so the state is not used any more
	}
	l.entries++
	l.notifyChange()
	return out, nil
}

// notifyChange wakes all goroutines that wait for a change. The caller must hold mu.
func (l *log) notifyChange() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// viewState calls look with the state, which look must not change, and returns its
// result as JSON.
func (l *log) viewState(look func(s *state) any) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return json.Marshal(look(l.state))
}
