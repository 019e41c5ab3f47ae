package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph/internal/wire"
)

// A Point is a place in a thread's history: everything up to one record. Places inside
// a step and inside a child graph are points too.
type Point struct {
	// Thread is the thread.
	Thread string

	// Seq is the number of the record; 0: the newest.
	Seq int64
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
	return forkThread(ctx, st, Point{thread, at}, into, nil)
}

// ForkWithMeta is Fork, and the copy has another Input.Meta: what a program stored about
// how to continue the run.
func ForkWithMeta(ctx context.Context, st Store, thread string, at int64, into string, meta []byte) error {
	return forkThread(ctx, st, Point{thread, at}, into, &meta)
}

// forkThread creates the thread into as a copy of another at a point, with another
// Input.Meta if meta is not nil.
func forkThread(ctx context.Context, st Store, from Point, into string, meta *[]byte) error {
	thread := from.Thread
	fail := func(err error) error { return fmt.Errorf("fork thread %s into %q: %w", thread, into, err) }
	if into == "" {
		return fail(errors.New("the new thread needs a name"))
	}
	s, err := loadPoint(ctx, st, from)
	if err != nil {
		return fail(err)
	}
	if meta != nil {
		s.meta = *meta
	}
	now := time.Now()
	s.forgetSteps()
	s.origin, s.branch, s.driving = Point{thread, s.head}, NewID(now), false
	if !s.run.status.Final() {
		s.run.id, s.run.status, s.run.reason, s.run.started = into, Paused, "", now.UnixMicro()
	}
	rec := Record{Kind: KindFork, Time: now.UnixMicro(), Head: wire.PutName(s.encodeSnapshotHead(), authorOf(ctx)), Data: s.encode()}
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
	f, err := decodeState(r.Graph, s.ensureFrame(""), nil)
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
		rec.Head = wire.PutName(rec.Head, authorOf(ctx))
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
	retyped := map[string]string{}
	for _, w := range set {
		tag := raw.tags[w.Key()]
		if w.key == nil || tag == "" || tag == w.key.tag {
			continue
		}
		if !w.reset {
			return Record{}, fmt.Errorf("key %q was stored with type %s, and is written with type %s: Reset replaces the value", w.Key(), tag, w.key.tag)
		}
		raw.tags[w.Key()] = w.key.tag
		retyped[w.Key()] = w.key.tag
	}
	f, err := decodeState(r.Graph, raw, func(name string) bool { return foldsOnto(set, name) })
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
	return Record{Kind: KindEdit, Time: now.UnixMicro(), Head: s.encodeEditHead("", keys, retyped), Data: data}, nil
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
	rest := *h // the oldest records end here
	new(runLine).readEditHead(&rest)
	if len(rest.Rest) > 0 {
		for k, tag := range readMap(&rest, rest.Text) {
			setEntry(&f.tags, k, tag)
		}
		h.Err = rest.Err
	}
	f.applyPatches(readPatches(d))
	if len(d.Rest) > 0 && d.Err == nil {
		d.Err = s.applyNextNodes(d)
	}
}

// forgetSteps removes what the current steps have done. The numbers of their questions,
// and the answers given ahead that these used, are free again.
func (s *replay) forgetSteps() {
	for _, path := range slices.Sorted(maps.Keys(s.frames)) {
		f := s.frames[path]
		for _, key := range f.order {
			q := f.asks[key]
			if n := s.asked[q.base]; n > 1 {
				s.asked[q.base] = n - 1
			} else {
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
func decodeState(g *Graph, raw *rawFrame, only func(name string) bool) (*frame, error) {
	f := newFrame(nil, g, "", "")
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(raw.keys)), func(name string) bool { return only != nil && !only(name) })
	return f, f.restoreKeys(raw, names, nil)
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

// loadPoint reads and folds a thread up to a record (0: all), which must exist.
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

// EditNext is Edit with a choice of the nodes of the root that run next, instead of
// those that would have run: End alone means that none does. Arrivals at joins are
// dropped, and so are child graphs that have not ended. A run that has ended has no
// next node: fork the thread at a point before the end, and edit the copy.
//
// A node that the graph does not have is refused before anything is written.
func (r *Runner) EditNext(ctx context.Context, thread string, next []string, set ...Write) (seq int64, err error) {
	return r.appendEdit(ctx, thread, func(s *replay) (Record, error) {
		if len(next) == 0 {
			return Record{}, errors.New("name at least one node to run next, or only End to run none")
		}
		if s.run.status.Final() {
			return Record{}, fmt.Errorf("run %s is over (%s): fork the thread at an earlier record and edit the copy", s.run.id, s.run.status)
		}
		fr, err := r.Graph.newFrontier(next)
		if err != nil {
			return Record{}, err
		}
		return r.newEditRecord(s, set, fr)
	})
}

// newFrontier returns the frontier of the given nodes.
func (g *Graph) newFrontier(next []string) (*frontier, error) {
	fr := &frontier{}
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

// putNext appends the last part of the data of an edit that chooses what runs next.
func putNext(data []byte, g *Graph, fr *frontier) ([]byte, error) {
	h, d, err := putFrontier(nil, nil, g, fr)
	return wire.PutString(wire.PutString(data, h), d), err
}

// applyNextNodes reads what putNext wrote: the nodes that were to run do not count as visited.
func (s *replay) applyNextNodes(d *wire.Reader) error {
	f := s.ensureFrame("")
	h, own := &wire.Reader{Rest: d.Bytes()}, &wire.Reader{Rest: d.Bytes()}
	for i, t := range f.tasks {
		if i == 0 || f.tasks[i-1].node != t.node {
			setEntry(&f.visits, t.node, max(f.visits[t.node]-1, 0))
		}
	}
	f.tasks, f.arrived = readFrontier(h, own)
	f.countVisits()
	f.halted, f.value, f.above = false, nil, false
	s.frames = map[string]*rawFrame{"": f}
	return errors.Join(h.Err, own.Err)
}

// Change is a key whose stored value differs between two points.
type Change struct {
	// Path is that of the frame; "" is the root.
	Path string

	// Key is the name of the key.
	Key string

	// Tag is that of the type or codec, at the second point if the key is present there.
	Tag string

	// Was and Is are the parts of the value at the first and at the second point, as in
	// StoredValue; nil: absent.
	Was [][]byte
	Is  [][]byte
}

// Diff lists the keys whose stored values differ between two points, of one thread or
// of two: by frame, then by key, including child graphs that have not ended at one of
// the points. It compares what is stored and needs no graph: a list that was written in
// other portions differs.
func Diff(ctx context.Context, st Store, a, b Point) ([]Change, error) {
	was, err := loadPoint(ctx, st, a)
	if err != nil {
		return nil, err
	}
	is, err := loadPoint(ctx, st, b)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, path := range unionKeys(was.frames, is.frames) {
		changes = append(changes, diffFrames(path, was.ensureFrame(path), is.ensureFrame(path))...)
	}
	return changes, nil
}

func diffFrames(path string, was, is *rawFrame) (changes []Change) {
	for _, key := range unionKeys(was.keys, is.keys) {
		c := Change{Path: path, Key: key, Tag: is.tags[key], Was: storedParts(was, key), Is: storedParts(is, key)}
		if (c.Was == nil) == (c.Is == nil) && slices.EqualFunc(c.Was, c.Is, bytes.Equal) {
			continue
		}
		if c.Tag == "" {
			c.Tag = was.tags[key]
		}
		changes = append(changes, c)
	}
	return changes
}

// storedParts returns the stored form of a key; nil: absent.
func storedParts(f *rawFrame, key string) (parts [][]byte) {
	for _, p := range f.keys[key] {
		parts = append(parts, p.val)
	}
	return parts
}

// unionKeys lists the names that at least one of the maps has, sorted.
func unionKeys[V any](a, b map[string]V) []string {
	names := append(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))...)
	slices.Sort(names)
	return slices.Compact(names)
}

// BlameEntry is one record that wrote a key.
type BlameEntry struct {
	// Seq and Time are those of the record.
	Seq  int64
	Time time.Time

	// Kind says what wrote: KindStep: nodes; KindStart, KindCall, KindClaim: input;
	// KindEdit; KindFork, KindSnapshot: the write is older than the thread's first
	// record.
	Kind Kind

	// Path is that of the frame; "" is the root.
	Path string

	// Step is, for a KindStep, the step that wrote, else the one that runs next.
	Step int

	// Tasks are, for a KindStep, the tasks that wrote, in the order in which their writes
	// were folded.
	Tasks []Writer

	// From is, for a KindFork, where to continue the search.
	From Point
}

// Writer is a task that wrote a key.
type Writer struct {
	// Node is the name of its node.
	Node string

	// Index is its place among the tasks of a Send; 0 for the others.
	Index int
}

// Blame lists the records that wrote a key, in the root and in child graphs, newest
// first. It reads the whole thread, and needs no graph. A key that was never written
// has none; an unknown thread is ErrNoThread.
func Blame(ctx context.Context, st Store, thread, key string) ([]BlameEntry, error) {
	found, err := blameKeys(ctx, st, thread, func(k string) bool { return k == key })
	return found[key], err
}

// BlameAll is Blame for all keys that a thread has written, by key.
func BlameAll(ctx context.Context, st Store, thread string) (map[string][]BlameEntry, error) {
	return blameKeys(ctx, st, thread, func(string) bool { return true })
}

// blameKeys lists the records that wrote the wanted keys.
func blameKeys(ctx context.Context, st Store, thread string, want func(key string) bool) (map[string][]BlameEntry, error) {
	s := &replay{}
	found := map[string][]BlameEntry{}
	for r, err := range Records(ctx, st, thread, Range{}) {
		if err != nil {
			return nil, fmt.Errorf("read thread %s: %w", thread, err)
		}
		first := s.head == 0
		written, err := findWrites(s, r, want)
		if err == nil {
			err = s.applyRecord(&r)
		}
		if err != nil {
			return nil, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
		}
		for key, w := range written {
			if w.Kind != KindStep {
				w.Step = s.ensureFrame(w.Path).step
			}
			found[key] = append(found[key], w)
		}
		if first && r.Kind.isBase() {
			addInherited(s, r, want, found)
		}
	}
	if s.head == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoThread, thread)
	}
	for _, list := range found {
		slices.Reverse(list)
	}
	return found, nil
}

// findWrites returns what a record that is about to be folded writes to the wanted keys.
func findWrites(s *replay, r Record, want func(key string) bool) (map[string]BlameEntry, error) {
	h, d := &wire.Reader{Rest: r.Head}, &wire.Reader{Rest: r.Data}
	w := BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind}
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
	patches := map[string][]rawPatch{}
	for _, p := range readPatches(d) {
		if want(p.key) {
			patches[p.key] = append(patches[p.key], p)
		}
	}
	if h.Err != nil || d.Err != nil {
		return nil, errors.Join(h.Err, d.Err)
	}
	if r.Kind == KindStep {
		w.Step = s.ensureFrame(w.Path).step
	}
	written := make(map[string]BlameEntry, len(patches))
	for key, ps := range patches {
		if r.Kind == KindStep {
			w.Tasks = findWriters(s.ensureFrame(w.Path), key, ps)
		}
		written[key] = w
	}
	return written, nil
}

// findWriters returns the tasks of a step that wrote a key. The updates of parallel tasks
// are recorded before the step is; for a lone task the step's own record is enough.
func findWriters(f *rawFrame, key string, ps []rawPatch) (ws []Writer) {
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

// addInherited adds what the first record of a thread, a snapshot or a fork, holds of the
// wanted keys.
func addInherited(s *replay, r Record, want func(key string) bool, found map[string][]BlameEntry) {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(s.frames))) {
		f := s.frames[path]
		for key := range f.keys {
			if !want(key) {
				continue
			}
			w := BlameEntry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind, Path: path, Step: f.step}
			if r.Kind == KindFork {
				w.From = s.origin
			}
			found[key] = append(found[key], w)
		}
	}
}
