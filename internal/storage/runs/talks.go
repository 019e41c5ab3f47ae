package runs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// Talks reads conversations from the journals of their sessions, each journal once, however many branches begin in it.
// It is for one operation: what is recorded after a journal was read is not seen. It is not safe for concurrent use.
type Talks struct {
	Store *Store

	logs map[string]*talkLog // by thread
}

// NewTalks returns Talks that have read nothing.
func (s *Store) NewTalks() *Talks { return &Talks{Store: s, logs: map[string]*talkLog{}} }

// A TurnPlace is the place of a turn in the journals.
type TurnPlace struct {
	Run    string
	Thread string
	First  int64 // number of its first record
	Last   int64 // number of its last record
	At     time.Time
	Status graph.Status // [graph.Crashed] if no record says that its drive has stopped
}

// A talkLog is what one journal says of the turns that were started in it.
type talkLog struct {
	origin journal.Point // that it was forked from; zero: none
	turns  []loggedTurn  // oldest first
	calls  []recordedCall
	state  *history.Snapshot // nil: it was not asked for, or the thread does not exist
}

// A loggedTurn is a turn with the records at which its drives have stopped, oldest first.
type loggedTurn struct {
	TurnPlace
	ends []driveEnd
}

// A driveEnd is the record with which a drive has stopped.
type driveEnd struct {
	seq    int64
	status graph.Status
}

// A recordedCall is the result of a call that may have changed files.
type recordedCall struct {
	seq  int64
	data []byte // nil: it was not read
}

// add adds the next record of the thread; data is nil if only its head was read.
func (l *talkLog) add(thread string, e *history.Entry, data []byte) {
	switch e.Kind {
	case journal.KindStart:
		l.turns = append(l.turns, loggedTurn{TurnPlace: TurnPlace{Run: e.What, Thread: thread, First: e.Seq, At: e.Time}})
	case journal.KindFork:
		l.origin = e.From
	case journal.KindEffect:
		if mayChangeFiles(e.ID) {
			l.calls = append(l.calls, recordedCall{e.Seq, data})
		}
	}
	if len(l.turns) == 0 {
		return
	}
	turn := &l.turns[len(l.turns)-1]
	turn.Last = e.Seq
	if e.Kind == journal.KindEnd {
		turn.ends = append(turn.ends, driveEnd{e.Seq, ParseStatus(e.What)})
	}
}

// listTurns returns the turns as they were at a record; 0: all. Then those that had not ended are left out: a fork at
// the start of a turn does not have it.
func (l *talkLog) listTurns(upTo int64) (list []TurnPlace) {
	for _, logged := range l.turns {
		t := logged.TurnPlace
		if upTo > 0 {
			t.Last = min(t.Last, upTo)
		}
		t.Status = graph.Crashed
		for _, end := range logged.ends {
			if end.seq <= t.Last {
				t.Status = end.status
			}
		}
		if upTo == 0 || t.Status.Final() {
			list = append(list, t)
		}
	}
	return list
}

// ListTurns returns the turns of a session, oldest first, and before them those of the branches that it was forked
// from, as long as these exist. Without a call of ReadState it reads no values.
func (t *Talks) ListTurns(ctx context.Context, thread string) (list []TurnPlace, err error) {
	seen := map[string]bool{}
	for at := (journal.Point{Thread: thread}); at.Thread != "" && !seen[at.Thread]; {
		seen[at.Thread] = true
		l := t.logs[at.Thread]
		if l == nil {
			if l, err = t.readHeads(ctx, at.Thread); err != nil {
				return nil, err
			}
		}
		list = append(l.listTurns(at.Seq), list...)
		at = l.origin
	}
	return list, nil
}

// readHeads reads the turns of a journal alone.
func (t *Talks) readHeads(ctx context.Context, thread string) (*talkLog, error) {
	var entries []history.Entry
	for e, err := range history.Entries(ctx, t.Store, thread) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	l := &talkLog{}
	for _, e := range slices.Backward(entries) {
		l.add(thread, &e, nil)
	}
	t.logs[thread] = l
	return l, nil
}

// ReadState returns what a session holds now; nil: it does not exist. The same pass reads its turns.
func (t *Talks) ReadState(ctx context.Context, thread string) (*history.Snapshot, error) {
	if l := t.logs[thread]; l != nil && l.state != nil {
		return l.state, nil
	}
	l := &talkLog{}
	reading := history.NewReading(thread)
	for r, err := range t.Store.Read(ctx, thread, journal.Range{}) {
		var e history.Entry
		if err == nil {
			e, _, err = reading.Add(r)
		}
		if IsDamage(err) { // it may lie before the newest snapshot, and then the conversation is whole
			return history.Inspect(ctx, t.Store, thread, 0)
		}
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", thread, err)
		}
		l.add(thread, &e, r.Data)
	}
	t.logs[thread] = l
	if reading.Head() == 0 {
		return nil, nil
	}
	var err error
	l.state, err = reading.Snapshot(ctx, t.Store)
	return l.state, err
}

// mayChangeFiles reports whether an effect is a call of one of the built-in tools that change files.
func mayChangeFiles(id string) bool {
	name, _ := agent.ToolOfEffect(graph.ParseEffectID(id).Name)
	return strings.HasPrefix(name, "fs_") || name == "apply_patch"
}

// ReadChanges returns what built-in tools did to files in a turn that ListTurns has returned, oldest first. It includes
// the calls of agents below the conversation.
func (t *Talks) ReadChanges(ctx context.Context, turn TurnPlace) (list []tool.FileChange, err error) {
	for _, c := range t.logs[turn.Thread].calls {
		if c.seq < turn.First || c.seq > turn.Last {
			continue
		}
		if c.data == nil {
			for r, err := range journal.Records(ctx, t.Store, turn.Thread, journal.Range{After: c.seq - 1, UpTo: c.seq}) {
				if err != nil {
					return nil, err
				}
				c.data = r.Data
			}
		}
		result, err := readResult(c.data)
		if err != nil {
			return nil, fmt.Errorf("thread %s, record %d: %w", turn.Thread, c.seq, err)
		}
		if result != nil {
			list = append(list, result.Changes...)
		}
	}
	return list, nil
}
