package graph

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"raddle.dev/graph/internal/wire"
)

// BlameEntry is one record that wrote a key.
type BlameEntry struct {
	Seq   int64
	Time  time.Time
	Kind  Kind     // KindStep: nodes; KindStart, KindCall, KindClaim: input; KindEdit; KindFork, KindSnapshot: it is older than the thread's first record
	Path  string   // of the frame: "" is the root
	Step  int      // for a KindStep the step that wrote, else the one that runs next
	Tasks []Writer // for a KindStep: the tasks that wrote, in the order in which their writes were folded
	From  Point    // for a KindFork: where to continue the search
}

// Writer is a task that wrote a key.
type Writer struct {
	Node  string
	Index int // among the tasks of a Send; 0 for the others
}

// Blame lists the records that wrote a key, in the root and in child graphs, newest
// first. It reads the whole thread, and needs no graph. A key that was never written
// has none; an unknown thread is ErrNoThread.
func Blame(ctx context.Context, st Store, thread, key string) ([]BlameEntry, error) {
	s := newReplay()
	var found []BlameEntry
	for r, err := range Records(ctx, st, thread, Range{}) {
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", thread, err)
		}
		first := s.head == 0
		w, err := s.findWrite(r, key)
		if err == nil {
			err = s.applyRecord(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
		}
		switch {
		case w != nil:
			if w.Kind != KindStep {
				w.Step = s.ensureFrame(w.Path).step
			}
			found = append(found, *w)
		case first && r.Kind.isBase():
			found = append(found, s.inheritedWrites(r, key)...)
		}
	}
	if s.head == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoThread, thread)
	}
	slices.Reverse(found)
	return found, nil
}

// findWrite returns what a record that is about to be folded writes to a key; nil:
// nothing.
func (s *replay) findWrite(r Record, key string) (*BlameEntry, error) {
	h, d := &wire.Reader{Rest: r.Head}, &wire.Reader{Rest: r.Data}
	w := &BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind}
	switch r.Kind {
	case KindStart:
	case KindClaim:
		if len(r.Data) == 0 {
			return nil, nil
		}
	case KindCall, KindStep, KindEdit:
		w.Path = h.Text()
	default:
		return nil, nil
	}
	ps := readPatches(d)
	if h.Err != nil || d.Err != nil {
		return nil, firstError(h.Err, d.Err)
	}
	ps = slices.DeleteFunc(ps, func(p rawPatch) bool { return p.key != key })
	if len(ps) == 0 {
		return nil, nil
	}
	if r.Kind == KindStep {
		f := s.ensureFrame(w.Path)
		w.Step = f.step
		w.Tasks = f.findWriters(key, ps)
	}
	return w, nil
}

// findWriters returns the tasks of a step that wrote a key. The updates of parallel tasks
// are recorded before the step is; for a lone task the step's own record is enough.
func (f *rawFrame) findWriters(key string, ps []rawPatch) (ws []Writer) {
	for i, t := range f.tasks {
		wrote := slices.ContainsFunc(ps, func(p rawPatch) bool { return p.by == i })
		if up, ok := f.done[strconv.Itoa(f.step)+"."+t.node+"."+strconv.Itoa(t.index)]; ok && !wrote {
			wrote = slices.ContainsFunc(readPatches(&wire.Reader{Rest: up}), func(p rawPatch) bool { return p.key == key })
		}
		if wrote {
			ws = append(ws, Writer{t.node, t.index})
		}
	}
	return ws
}

// inheritedWrites returns what the first record of a thread, a snapshot or a fork, holds of a
// key.
func (s *replay) inheritedWrites(r Record, key string) (found []BlameEntry) {
	for _, path := range slices.Backward(sortedKeys(s.frames)) {
		f := s.frames[path]
		if f.keys[key] == nil {
			continue
		}
		w := BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind, Path: path, Step: f.step}
		if r.Kind == KindFork {
			w.From = s.origin
		}
		found = append(found, w)
	}
	return found
}
