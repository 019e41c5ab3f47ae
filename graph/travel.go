package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph/internal/wire"
)

// A Point is a place in a thread's history: everything up to one record. Places inside
// a step and inside a child graph are points too.
type Point struct {
	Thread string
	Seq    int64 // of the record; 0: the newest
}

var (
	// ErrNoPoint says that a thread has no such record: it was pruned, or not yet
	// written.
	ErrNoPoint = errors.New("graph: no such point in the thread")

	// ErrThreadExists says that a fork would overwrite a thread.
	ErrThreadExists = errors.New("graph: the thread exists already")
)

// Fork creates the thread into as a copy of another at one of its records (0: the
// newest). The original does not change, and the two are independent from then on.
//
// The copy is a new branch: what the current step has done up to that record (effects,
// updates of tasks, questions and their answers) is not copied, so its tasks run again
// from their tops, and EffectKey differs. Steps that are done stay done, also those of
// child graphs that have not ended. A run that had not ended is Paused in the copy,
// under the name of the new thread, until it is resumed; a run that had ended keeps its
// status, and another can be started after it.
//
// It fails with ErrNoThread, ErrNoPoint or ErrThreadExists, and needs no graph.
func Fork(ctx context.Context, st Store, thread string, at int64, into string) error {
	fail := func(err error) error { return fmt.Errorf("fork thread %s into %q: %w", thread, into, err) }
	if into == "" {
		return fail(errors.New("the new thread needs a name"))
	}
	s, err := loadPoint(ctx, st, Point{thread, at})
	if err != nil {
		return fail(err)
	}
	now := time.Now()
	s.forgetSteps()
	s.origin, s.branch, s.driving = Point{thread, s.head}, NewID(now), false
	if !s.run.status.Final() {
		s.run.id, s.run.status, s.run.reason, s.run.started = into, Paused, "", now.UnixMicro()
	}
	rec := Record{Kind: KindFork, Time: now.UnixMicro(), Head: s.encodeSnapshotHead(), Data: s.encode()}
	err = appendSealed(ctx, st, into, 0, rec)
	if errors.Is(err, ErrConflict) {
		err = ErrThreadExists
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// State returns the state of the root graph at a record of a thread (0: the newest).
// Keys that the graph does not know are left out. It fails with ErrNoThread,
// ErrNoPoint, or if a key was stored with another type than it now has.
func (r *Runner) State(ctx context.Context, thread string, at int64) (State, error) {
	s, err := r.loadPoint(ctx, Point{thread, at})
	if err != nil {
		return State{}, err
	}
	f, err := s.ensureFrame("").decodeState(r.Graph, nil)
	if err != nil {
		return State{}, fmt.Errorf("thread %s: %w", thread, err)
	}
	return f.st, nil
}

// Edit folds writes into the newest state of a thread and returns the number of the
// record of the edit; older records do not change. Set goes through the key's reducer,
// Reset replaces. To edit an older point, Fork there and edit the copy.
//
// What runs next runs in a new branch, as after a Fork: a run that had not ended is
// Paused, and its resume repeats the tasks of the current step, effects and questions
// included. Child graphs that have not ended keep their own state.
//
// Reset never reads the old value, and Set reads it only if a reducer other than those
// of Append and Merge needs it: so a value that cannot be decoded any more can be
// replaced. Reset may also give the key another type than the stored one; then the
// resume needs AcceptChanges.
//
// Unknown keys, a Set with another type than the stored one, and values that cannot be
// stored are refused before anything is written. A drive that runs on the thread is not
// asked: it gets ErrConflict at its next record, and Edit gets it if the drive appends
// first. Describe and Inspect say whether there is one.
func (r *Runner) Edit(ctx context.Context, thread string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *replay) (Record, error) {
		if len(set) == 0 {
			return Record{}, errors.New("there is nothing to write")
		}
		return r.newEditRecord(s, set, nil)
	})
}

// appendEdit appends the record of an edit.
func (r *Runner) appendEdit(ctx context.Context, thread string, edit func(*replay) (Record, error)) (seq int64, err error) {
	s, err := r.loadPoint(ctx, Point{Thread: thread})
	if err != nil {
		return 0, err
	}
	rec, err := edit(s)
	if err == nil {
		err = appendSealed(ctx, r.Store, thread, s.head, rec)
	}
	if err != nil {
		return 0, fmt.Errorf("edit thread %s: %w", thread, err)
	}
	return s.head + 1, nil
}

// newEditRecord makes the record of an edit; next is what runs next, or nil for no change.
func (r *Runner) newEditRecord(s *replay, set []Write, next *frontier) (Record, error) {
	raw := s.ensureFrame("")
	var retyped []*keyDef
	for _, w := range set {
		tag := raw.tags[w.Key()]
		if w.key == nil || tag == "" || tag == w.key.tag {
			continue
		}
		if !w.reset {
			return Record{}, fmt.Errorf("key %q was stored with type %s, and is written with type %s: Reset replaces the value", w.Key(), tag, w.key.tag)
		}
		raw.tags[w.Key()] = w.key.tag
		retyped = append(retyped, w.key)
	}
	f, err := raw.decodeState(r.Graph, func(name string) bool { return foldsOnto(set, name) })
	if err != nil {
		return Record{}, err
	}
	var done []patch
	if _, _, err := applyWrites(f.st, [][]Write{set}, nil, &done); err != nil {
		return Record{}, err
	}
	data := wire.PutInt(nil, len(done))
	var keys []string
	for _, p := range done {
		v, err := p.key.encodeStored(nil, p.val)
		if err != nil {
			return Record{}, err
		}
		data = putPatch(data, p.key.name, p.fold, 0, v)
		keys = append(keys, p.key.name)
	}
	x := r.newDrive(0)
	branch, err := x.newID()
	if err != nil {
		return Record{}, err
	}
	now := x.now()
	s.pauseForEdit(branch)
	if next != nil {
		end := len(data)
		if data, err = putNext(data, r.Graph, next); err == nil {
			err = s.applyNextNodes(&wire.Reader{Rest: data[end:]})
		}
		if err != nil {
			return Record{}, err
		}
	}
	return Record{Kind: KindEdit, Time: now.UnixMicro(), Head: s.editHead("", keys, retyped), Data: data}, nil
}

// pauseForEdit applies an edit to a run: what its current steps have done belongs to the
// branch before it.
func (s *replay) pauseForEdit(branch string) {
	s.branch = branch
	s.forgetSteps()
	if !s.run.status.Final() {
		s.run.status, s.run.reason = Paused, ""
	}
}

// applyEdit folds the record of an edit.
func (s *replay) applyEdit(h, d *wire.Reader) {
	path := h.Text()
	s.pauseForEdit(h.Text())
	f := s.ensureFrame(path)
	for k, tag := range readRetypedKeys(h) {
		setEntry(&f.tags, k, tag)
	}
	f.applyPatches(readPatches(d))
	if len(d.Rest) > 0 && d.Err == nil {
		d.Err = s.applyNextNodes(d)
	}
}

// forgetSteps removes what the current steps have done. The numbers of their questions,
// and the answers given ahead that these used, are free again.
func (s *replay) forgetSteps() {
	for _, path := range sortedKeys(s.frames) {
		f := s.frames[path]
		for _, key := range f.order {
			q := f.asks[key]
			if s.asked[q.base]--; s.asked[q.base] <= 0 {
				delete(s.asked, q.base)
			}
			if q.ahead > 0 && q.ahead <= len(s.ahead) {
				a := &s.ahead[q.ahead-1]
				a.value, a.refused, a.used = q.answer, q.refused, false
			}
		}
		f.forgetStep()
	}
}

// foldsOnto reports whether a write to a key needs the old value: writes to lists and
// maps are journaled as they are.
func foldsOnto(set []Write, name string) bool {
	for _, w := range set {
		if w.Key() == name {
			return w.key != nil && !w.reset && w.key.add != nil && w.key.fold == foldSet
		}
	}
	return false
}

// decodeState decodes the values of a frame, but not what it runs next: a graph that has lost
// nodes can still read them. If only is not nil, it decodes the keys that only accepts.
func (f *rawFrame) decodeState(g *Graph, only func(name string) bool) (*frame, error) {
	fr := newFrame(g, "", "")
	names := slices.DeleteFunc(sortedKeys(f.keys), func(name string) bool { return only != nil && !only(name) })
	return fr, fr.restoreKeys(f, names, nil)
}

func (r *Runner) loadPoint(ctx context.Context, p Point) (*replay, error) {
	switch {
	case !r.Graph.isCompiled():
		return nil, errNoGraph
	case r.Store == nil:
		return nil, errors.New("graph: a thread is read from a store; give the Runner one")
	}
	return loadPoint(ctx, r.Store, p)
}

// loadPoint is load for a thread and a record that must exist.
func loadPoint(ctx context.Context, st Store, p Point) (*replay, error) {
	if p.Seq < 0 {
		return nil, fmt.Errorf("%w %s: records are numbered from 1, not %d", ErrNoPoint, p.Thread, p.Seq)
	}
	s, err := loadThread(ctx, st, p.Thread, p.Seq)
	if err != nil || s.head > 0 && (p.Seq == 0 || p.Seq == s.head) {
		return s, err
	}
	for r, err := range st.Read(ctx, p.Thread, Range{Heads: true, Newest: true, Limit: 1}) {
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", p.Thread, err)
		}
		if p.Seq > r.Seq {
			return nil, fmt.Errorf("%w %s: its newest record is %d, not %d", ErrNoPoint, p.Thread, r.Seq, p.Seq)
		}
		return nil, fmt.Errorf("%w %s: record %d was pruned", ErrNoPoint, p.Thread, p.Seq)
	}
	return nil, fmt.Errorf("%w: %s", ErrNoThread, p.Thread)
}
