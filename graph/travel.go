package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph/internal/fence"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/journal"
)

// State returns the state of the root graph at a record of a thread (0: the newest).
// Keys that the graph does not know are left out. It fails with journal.ErrNoThread,
// journal.ErrNoPoint, or if a key was stored with another type than it now has.
func (r *Runner) State(ctx context.Context, thread string, at int64) (State, error) {
	s, err := r.loadPoint(ctx, journal.Point{Thread: thread, Seq: at})
	if err != nil {
		return State{}, err
	}
	f, err := decodeState(r.Graph, s, nil)
	if err != nil {
		return State{}, fmt.Errorf("thread %s: %w", thread, err)
	}
	return f.st, nil
}

// Edit folds writes into the newest state of a thread and returns the number of the
// record of the edit; older records do not change. Set goes through the key's reducer,
// Reset replaces. To edit an older point, fork there with history.Fork and edit the copy.
//
// What runs next runs in a new branch, as after a fork: a run that had not ended is
// Paused, and its resume repeats the tasks of the current step, effects and questions
// included. Child graphs that have not ended keep their own state.
//
// Reset never reads the old value, and Set reads it only if a reducer other than those
// of Append and Merge needs it: so a value that cannot be decoded any more can be
// replaced. Reset may also give the key another type than the stored one; then the
// resume needs AcceptChanges.
//
// Unknown keys, a Set with another type than the stored one, and values that cannot be
// stored are refused before anything is written. A drive that runs on the thread ends with a
// *DisplacedError and starts no other effect; Edit returns when it has ended, after two
// seconds, or when ctx ends. If the drive appends first, Edit is made again on what the thread holds then; only after
// ten times is the error journal.ErrConflict. Describe and Inspect of package history say whether there is a drive.
func (r *Runner) Edit(ctx context.Context, thread string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *fold.Thread) ([]journal.Record, error) {
		if len(set) == 0 {
			return nil, errors.New("there is nothing to write")
		}
		return r.newEditRecords(s, set, nil, journal.AuthorOf(ctx))
	})
}

// appendEdit appends the records of an edit, and displaces the drive that works on the thread.
func (r *Runner) appendEdit(ctx context.Context, thread string, edit func(*fold.Thread) ([]journal.Record, error)) (seq int64, err error) {
	if err := r.checkStore(); err != nil {
		return 0, err
	}
	seq, err = fence.ChangeRun(ctx, r.Store, thread, func(s *fold.Thread) ([]journal.Record, error) {
		return edit(s)
	})
	if err != nil {
		return 0, fmt.Errorf("edit thread %s: %w", thread, err)
	}
	return seq, nil
}

// newEditRecords makes the record of an edit; next is what runs next, or nil for no change. by is who edits.
func (r *Runner) newEditRecords(s *fold.Thread, set []Write, next *frontier, by string) ([]journal.Record, error) {
	raw := s.EnsureFrame("")
	retyped := map[string]string{}
	for _, w := range set {
		tag := raw.Tags[w.Key()]
		if w.key == nil || tag == "" || tag == w.key.tag {
			continue
		}
		if !w.reset {
			return nil, fmt.Errorf("key %q was stored with type %s, and is written with type %s: Reset replaces the value", w.Key(), tag, w.key.tag)
		}
		raw.Tags[w.Key()] = w.key.tag
		retyped[w.Key()] = w.key.tag
	}
	f, err := decodeState(r.Graph, s, func(name string) bool { return foldsOnto(set, name) })
	if err != nil {
		return nil, err
	}
	var done []patch
	if _, _, err := applyWrites(f.st, [][]Write{set}, nil, &done, r.Debug); err != nil {
		return nil, err
	}
	b := &record.Parts{By: by}
	for _, p := range done {
		v, err := p.key.encodeStored(nil, p.val)
		if err != nil {
			return nil, err
		}
		b.Patches = append(b.Patches, record.Patch{Key: p.key.name, Fold: p.fold, Value: v})
		b.Keys = append(b.Keys, p.key.name)
	}
	for _, key := range slices.Sorted(maps.Keys(retyped)) {
		b.Tags = append(b.Tags, record.Tag{Key: key, Tag: retyped[key]})
	}
	d := r.newDrive(0)
	branch, err := d.newID()
	if err != nil {
		return nil, err
	}
	now := d.now()
	s.PauseForEdit(branch)
	if next != nil {
		b.Chosen = true
		if err := setFrontier(b, r.Graph, next); err != nil {
			return nil, err
		}
		s.SetNextNodes(b.Tasks, b.Arrived)
	}
	rec := s.NewEdit(b)
	rec.Time = now.UnixMicro()
	return []journal.Record{rec}, nil
}

// foldsOnto reports whether a write to a key needs the old value: writes to lists and
// maps are journaled as they are.
func foldsOnto(set []Write, name string) bool {
	for _, w := range set {
		if w.Key() == name {
			return w.key != nil && !w.reset && w.key.add != nil && w.key.fold == record.Set
		}
	}
	return false
}

// decodeState decodes the values of the root, but not what it runs next: a graph that has lost
// nodes can still read them. If only is not nil, it decodes the keys that only accepts.
func decodeState(g *Graph, s *fold.Thread, only func(name string) bool) (*frame, error) {
	f := newFrame(nil, g, "", "")
	f.reshaped = structure.ListReshaped(s.Shape, g.outline())
	raw := s.EnsureFrame("")
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(raw.Keys)), func(name string) bool { return only != nil && !only(name) })
	return f, f.restoreKeys(raw, names, nil)
}

func (r *Runner) loadPoint(ctx context.Context, p journal.Point) (*fold.Thread, error) {
	if err := r.checkStore(); err != nil {
		return nil, err
	}
	return fold.LoadPoint(ctx, r.Store, p)
}

// checkStore refuses a Runner that cannot read a thread.
func (r *Runner) checkStore() error {
	switch {
	case !r.Graph.isCompiled():
		return errNoGraph
	case r.Store == nil:
		return errors.New("graph: a thread is read from a store; give the Runner one")
	}
	return nil
}

// EditAll replaces values in all graphs of the thread's last run that hold their keys: the run's own, and child graphs
// that have not ended. Like Edit it begins a new branch: the current steps of all of them start again, and nothing of
// what they have recorded is used. A key that a graph holds with another type, or not at all, stays as it is there. The
// writes are those of Reset.
//
// It writes one record for each graph that changes, together, and returns the number of the last one.
func (r *Runner) EditAll(ctx context.Context, thread string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *fold.Thread) ([]journal.Record, error) {
		if s.Run.Status.Final() {
			return nil, fmt.Errorf("run %s is over (%s)", s.Run.ID, Status(s.Run.Status))
		}
		d := r.newDrive(0)
		now := d.now().UnixMicro()
		branch, err := d.newID()
		if err != nil {
			return nil, err
		}
		s.EnsureFrame("")
		s.PauseForEdit(branch)
		var recs []journal.Record
		for _, path := range slices.Sorted(maps.Keys(s.Frames)) {
			b := &record.Parts{Path: path, By: journal.AuthorOf(ctx)}
			if err := resetHeld(b, s.Frames[path], set); err != nil {
				return nil, err
			}
			if path == "" || len(b.Keys) > 0 {
				rec := s.NewEdit(b)
				rec.Time = now
				recs = append(recs, rec)
			}
		}
		return recs, nil
	})
}

// resetHeld adds to b the writes of Reset to the keys that a frame holds with their types.
func resetHeld(b *record.Parts, f *record.Frame, set []Write) error {
	for _, w := range set {
		if w.key == nil || !w.reset {
			return errors.New("EditAll takes the writes of Reset")
		}
		if _, holds := f.Keys[w.key.name]; !holds || f.Tags[w.key.name] != w.key.tag {
			continue
		}
		v, err := w.key.encodeStored(nil, w.val)
		if err != nil {
			return err
		}
		b.Keys = append(b.Keys, w.key.name)
		b.Patches = append(b.Patches, record.Patch{Key: w.key.name, Value: v})
	}
	return nil
}

// EditNext is Edit with a choice of the nodes of the root that run next, instead of
// those that would have run: End alone means that none does. Arrivals at joins are
// dropped, and so are child graphs that have not ended. A run that has ended has no
// next node: fork the thread at a point before the end, and edit the copy.
//
// A node that the graph does not have is refused before anything is written.
func (r *Runner) EditNext(ctx context.Context, thread string, next []string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *fold.Thread) ([]journal.Record, error) {
		if len(next) == 0 {
			return nil, errors.New("name at least one node to run next, or only End to run none")
		}
		if s.Run.Status.Final() {
			return nil, fmt.Errorf("run %s is over (%s): fork the thread at an earlier record and edit the copy", s.Run.ID, Status(s.Run.Status))
		}
		fr, err := r.Graph.newFrontier(next)
		if err != nil {
			return nil, err
		}
		return r.newEditRecords(s, set, fr, journal.AuthorOf(ctx))
	})
}

// newFrontier returns the frontier of the given nodes.
func (g *Graph) newFrontier(next []string) (*frontier, error) {
	fr := &frontier{}
	if g.finally != end && slices.Contains(next, g.def.Finally) {
		return nil, fmt.Errorf("node %q of graph %s runs when a run ends, and cannot be chosen: to run it, cancel the run", g.def.Finally, g.def.Name)
	}
	var unknown []string
	seen := map[string]bool{}
	for _, name := range next {
		n, ok := g.byName[name]
		switch {
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%q", name))
		case n != end && !seen[name]:
			fr.tasks = append(fr.tasks, taskRef{node: n})
		}
		seen[name] = true
	}
	if unknown != nil {
		return nil, fmt.Errorf("graph %s has no node %s", g.def.Name, strings.Join(unknown, ", "))
	}
	sortTasks(fr)
	return fr, nil
}
