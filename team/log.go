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

// A log is the state of a team and the entries that made it, which are effects of
// the team's task, numbered. It is safe for concurrent use.
type log struct {
	ctx context.Context // of the task

	mu      sync.Mutex // guards what follows
	state   *state
	entries int
	old     map[string]outcome // what calls of an earlier drive came to, by key
	changed chan struct{}      // closed when something has changed
}

// logEffect is the name of the effects that are entries.
const logEffect = "team"

// errUnrecorded ends an effect that is only looked up.
var errUnrecorded = errors.New("team: nothing is recorded")

// open reads the log that the journal holds. fresh tells that it holds none.
func open(ctx context.Context, s *state) (l *log, fresh bool, err error) {
	l = &log{ctx: ctx, state: s, old: map[string]outcome{}, changed: make(chan struct{})}
	over, cancel := context.WithCancel(ctx)
	cancel() // the engine takes errUnrecorded for a call cut short, not for a failure of the effect
	for ; ; l.entries++ {
		e, err := graph.DoEffect(over, l.effect(), func(context.Context) (e entry, err error) { return e, errUnrecorded })
		if errors.Is(err, errUnrecorded) {
			return l, l.entries == 0, nil
		}
		if err != nil {
			return nil, false, err
		}
		if out := s.apply(e); e.Key != "" {
			l.old[e.Key] = out
		}
	}
}

func (l *log) effect() graph.Effect {
	return graph.Effect{Name: logEffect, Key: strconv.Itoa(l.entries)}
}

// add makes a change. What a call has changed already, in a drive before this one,
// is not changed again.
func (l *log) add(e entry) (outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addLocked(e)
}

// addLocked is add for who holds mu.
func (l *log) addLocked(e entry) (outcome, error) {
	if out, ok := l.old[e.Key]; ok && e.Key != "" {
		return out, nil
	}
	if out := l.state.admit(e); out.refused {
		return out, nil
	}
	e.At = time.Now()
	e.Queued = e.Op == opSpawn && l.state.full(e.By)
	out := l.state.apply(e)
	if out.refused {
		return out, nil
	}
	if _, err := graph.DoEffect(l.ctx, l.effect(), func(context.Context) (entry, error) { return e, nil }); err != nil {
		return out, err // the run ends: nobody sees the state any more
	}
	l.entries++
	l.tell()
	return out, nil
}

// tell wakes all who wait for a change; the caller holds mu.
func (l *log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// view runs a function on the state, which it must not change, and returns what
// it found as JSON.
func (l *log) view(look func(s *state) any) (json.RawMessage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return json.Marshal(look(l.state))
}
