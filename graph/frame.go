package graph

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/journal"
)

// newFrame returns a frame without values. x is nil for a frame that is only read.
func newFrame(d *drive, g *Graph, path, public string) *frame {
	n := &smallFrame{frame: frame{path: path, public: public, g: g, drive: d}}
	f := &n.frame
	f.st, f.visits = State{t: g.table, v: takeZeros(n.vals[:], len(g.table.keys))}, takeZeros(n.visits[:], len(g.nodes))
	f.ts, f.writes, f.fresh = n.ts[:0], n.writes[:0], n.fresh[:]
	f.next.tasks, f.tasks = n.tasks[:0:1], n.tasks[1:1]
	f.rec, f.bufs.marks = n.rec[:0], n.marks[:0]
	if d != nil {
		f.reshaped = d.reshaped
	}
	return f
}

// takeZeros returns n zeros, taken from zeros if that is long enough.
func takeZeros[T any](zeros []T, n int) []T {
	if n <= len(zeros) {
		return zeros[:n:n]
	}
	return make([]T, n)
}

// isRoot reports whether the frame is the root of its run. Its steps are then driven on the
// reader's goroutine.
func (f *frame) isRoot() bool { return f.path == "" }

// deliverEvent delivers an event about the frame.
func (f *frame) deliverEvent(e Event) {
	if f.isRoot() {
		f.drive.out.deliverEvent(e)
	} else {
		f.drive.out.sendEvent(e)
	}
}

// countVisits adds one visit to each node that is about to run.
func (f *frame) countVisits() {
	for i := range f.next.tasks {
		if n := f.next.tasks[i].node; i == 0 || f.next.tasks[i-1].node != n {
			f.visits[n]++
		}
	}
}

// addSlotSize records that a slot's stored form is n bytes larger (or n bytes in all), and
// returns the difference.
func (f *frame) addSlotSize(slot, n int, replaced bool) int {
	for len(f.sizes) <= slot {
		f.sizes = append(f.sizes, 0)
	}
	if replaced {
		n -= f.sizes[slot]
	}
	f.sizes[slot] += n
	return n
}

// storedSize returns the stored size of the whole frame.
func (f *frame) storedSize() (n int) {
	for _, s := range f.sizes {
		n += s
	}
	return n
}

// restoreFrame decodes what the journal holds of a frame into f, which is new, and returns f. Keys
// that its graph does not know stay in the journal. The values of keys that set replaces before
// they are read are not decoded.
func (f *frame) restoreFrame(raw *record.Frame, set ...Write) (*frame, error) {
	g := f.g
	f.raw, f.step, f.from, f.since, f.halted = raw, raw.Step, raw.From, raw.Since, raw.Halted
	if err := f.restoreKeys(raw, slices.Sorted(maps.Keys(raw.Keys)), set); err != nil {
		return nil, err
	}
	for at, t := range raw.Tasks {
		n, ok := g.byName[t.Node]
		if !ok || n == end {
			return nil, fmt.Errorf("graph %s no longer has node %q, which would run next", g.def.Name, t.Node)
		}
		over, err := f.st.decodeWrites(t.Over)
		if err != nil {
			return nil, fmt.Errorf("what node %q alone sees: %w", t.Node, err)
		}
		f.next.tasks = append(f.next.tasks, taskRef{node: n, index: t.Index, over: over, cause: t.Cause, causes: raw.CausesOf(at)})
	}
	sortTasks(&f.next)
	for i := range raw.Failures {
		if raw.Failures[i].Handler == "" {
			f.failures = append(f.failures, newNodeError(&raw.Failures[i]))
		}
	}
	for _, a := range raw.Arrived {
		if j, ok := g.findArrival(a); ok {
			f.next.arrived = append(f.next.arrived, j)
		}
	}
	for name, n := range raw.Visits {
		if i, ok := g.byName[name]; ok && i >= 0 {
			f.visits[i] = n
		}
	}
	if f.isEnding() && len(f.next.tasks) > 0 {
		f.ending = restoreEnding(&f.next.tasks[0])
	}
	if raw.Value != nil {
		var err error
		if f.value, err = value.DecodeAny(raw.Value); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// replacesKey reports whether the first write to a key replaces its old value.
func replacesKey(set []Write, name string) bool {
	for _, w := range set {
		if w.Key() == name {
			return w.key != nil && (w.reset || w.key.add == nil)
		}
	}
	return false
}

// restoreKeys folds the journaled patches of some keys, except those that set replaces, all
// at once: an open graph may have many.
func (f *frame) restoreKeys(raw *record.Frame, names []string, set []Write) error {
	defs := make([]*keyDef, 0, len(names))
	var ws []Write
	for _, name := range names {
		d := f.st.findKey(name)
		if d == nil {
			continue
		}
		defs = append(defs, d)
		if replacesKey(set, name) {
			continue
		}
		if tag := raw.Tags[name]; tag != "" && tag != d.tag {
			return fmt.Errorf("key %q was stored with type %s and is now declared with type %s (Reset of the key in Edit or Resume.Set replaces the value)", name, tag, d.tag)
		}
		for _, p := range raw.Keys[name] {
			if p.Fold != record.Set && p.Fold != d.fold {
				return fmt.Errorf("key %q was stored in parts by %s key and is now declared as %s key, which would read one part as the whole (Reset of the key in Edit or Resume.Set replaces the value)",
					name, p.Fold.NameKeys(), d.fold.NameKeys())
			}
			v, err := d.decodeStored(p.Value)
			if err != nil {
				return fmt.Errorf("%w (Reset of the key in Edit or Resume.Set replaces the value)", err)
			}
			if f.reshaped[name] {
				if err := d.checkKept(p.Value, v); err != nil {
					return err
				}
			}
			ws = append(ws, Write{d, boxNil(v), p.Fold == record.Set})
		}
	}
	st, _, err := applyWrites(f.st, [][]Write{ws}, &f.bufs, nil, false)
	if err != nil {
		return err
	}
	f.st = st.withSlots(defs...)
	for _, d := range defs {
		if slot := f.st.t.findSlot(d); slot >= 0 {
			for _, p := range raw.Keys[d.name] {
				f.addSlotSize(slot, len(p.Value), p.Fold == record.Set)
			}
		}
	}
	return nil
}

// checkKept refuses a value whose type has other fields now, if something of it would be lost.
func (k *keyDef) checkKept(stored []byte, v any) error {
	again, err := k.encodeStored(nil, v)
	if err != nil {
		return err
	}
	if lost := value.FindLost(stored, again); lost != "" {
		return fmt.Errorf("key %q was stored when its type %s had other fields: %s would be lost (a migration with ConvertKey keeps it, Reset of the key in Edit or Resume.Set replaces the value)",
			k.name, k.tag, lost)
	}
	return nil
}

// findArrival finds a journaled arrival in the graph's joins.
func (g *Graph) findArrival(a record.Arrival) (joinRef, bool) {
	for i, j := range g.joins {
		if j.id == a.Join {
			src := slices.Index(j.from, a.Source)
			return joinRef{i, src}, src >= 0
		}
	}
	return joinRef{}, false
}

// begin folds the first writes of a frame, sets its frontier to the start nodes and
// journals both. b has the additional fields of the kind of record.
func (f *frame) begin(set []Write, k journal.Kind, b *record.Parts) error {
	d := f.drive
	f.next = frontier{tasks: f.next.tasks[:0]}
	f.from = f.step
	f.failures = nil
	for _, n := range f.g.start {
		f.next.tasks = append(f.next.tasks, taskRef{node: n})
	}
	f.countVisits()
	rec := f.patchBuffer()
	for _, ws := range [...][]Write{f.first, set} {
		ws, err := d.readBack(ws)
		if err != nil {
			return err
		}
		st, _, err := applyWrites(f.st, [][]Write{ws}, &f.bufs, rec, d.settings.Debug)
		if err != nil {
			return err
		}
		f.st = st
	}
	if d.journal == nil {
		return nil
	}
	b.Digest = f.g.digest
	b.Tags = listTags(f.g.table.keys)
	_, err := f.commitPatches(k, b, k == journal.KindStart && d.settings.Durability < QuestionsOnly)
	return err
}

// patchBuffer returns where apply appends its patches: nil without a journal.
func (f *frame) patchBuffer() *[]patch {
	d := f.drive
	if d.journal == nil {
		return nil
	}
	f.rec = f.rec[:0]
	return &f.rec
}

// commitPatches journals what apply recorded and the frontier after it. b has the other fields of the kind of record.
func (f *frame) commitPatches(k journal.Kind, b *record.Parts, flush bool) (seq int64, err error) {
	d := f.drive
	data, err := f.encodePatches()
	if err != nil {
		return 0, err
	}
	b.Streamed = true
	b.Path = f.path
	b.Tasks = f.recorded[:0]
	if err := setFrontier(b, f.g, &f.next); err != nil {
		return 0, err
	}
	f.recorded = b.Tasks
	b.Step = f.step
	if k == journal.KindStep {
		b.Step++
		b.Halted = f.halted
	}
	if b.Halted {
		if b.Value, err = value.EncodeAny(nil, f.value); err != nil {
			return 0, fmt.Errorf("halt: %w", err)
		}
	}
	head, data := b.Append(uint8(k), f.head[:0], data)
	f.head = reusableBuffer(head)
	f.data = reusableBuffer(data)
	if !flush { // the buffers are still in use when add returns
		head = slices.Clone(head)
		data = slices.Clone(data)
	}
	rec := journal.Record{Kind: k, Head: head, Data: data}
	if k == journal.KindStep && d.topics&TopicStep != 0 {
		return d.journal.AddNumbered(flush, rec)
	}
	return 0, d.journal.AddRecords(flush, rec)
}

// reusableBuffer returns b for reuse, or nil if it is too large to be kept.
func reusableBuffer(b []byte) []byte {
	if cap(b) > 64<<10 {
		return nil
	}
	return b
}

// encodePatches encodes what apply recorded, in a buffer of the frame.
func (f *frame) encodePatches() ([]byte, error) {
	d := f.drive
	data := record.PutPatchCount(f.data[:0], len(f.rec))
	grew, largest, at := 0, -1, 0
	var few [4]int
	deltas := few[:0]
	for i, p := range f.rec {
		v, err := p.key.encodeStored(f.val, p.val)
		if err != nil {
			f.subtractSlotSizes(deltas)
			return nil, &writeError{p.by, err}
		}
		if !p.key.custom {
			f.val = reusableBuffer(v)
		}
		delta := f.addSlotSize(p.slot, len(v), p.fold == record.Set)
		grew, deltas = grew+delta, append(deltas, delta)
		if len(v) > largest {
			largest, at = len(v), i
		}
		data = record.PutPatch(slices.Grow(data, len(v)+len(p.key.name)+16), record.Patch{Key: p.key.name, Fold: p.fold, By: p.by, Value: v})
	}
	if size := d.journal.AddStateSize(grew) - len(d.settings.Graph.outline()); d.settings.MaxState > 0 && grew > 0 && size > d.settings.MaxState {
		d.journal.AddStateSize(-grew)
		f.subtractSlotSizes(deltas)
		return nil, &writeError{f.rec[at].by, &StateSizeError{Key: f.rec[at].key.name, Write: largest, Size: size, Limit: d.settings.MaxState}}
	}
	return data, nil
}

// subtractSlotSizes undoes what the first of the recorded patches have added to the sizes of their
// slots.
func (f *frame) subtractSlotSizes(deltas []int) {
	for i, delta := range deltas {
		f.sizes[f.rec[i].slot] -= delta
	}
}

// writeError names the task whose write the journal cannot store.
type writeError struct {
	by  int // the task, by its place in the step
	err error
}

func (e *writeError) Error() string { return e.err.Error() }

func (e *writeError) Unwrap() error { return e.err }

// contextBlock is the number of contexts that are allocated at once.
const contextBlock = 16

// taskRoom keeps slices for the tasks of steps with many tasks from run to run.
var taskRoom sync.Pool

// allocateTasks returns room for n tasks. It is reused if no node holds a task of the last
// step.
func (f *frame) allocateTasks(n int) []task {
	if !f.hasHeldTask() && cap(f.ts) >= n {
		clear(f.ts)
		f.ts = f.ts[:n]
		return f.ts
	}
	f.ts = nil
	if n > 1 {
		if p, ok := taskRoom.Get().(*[]task); ok && cap(*p) >= n {
			f.ts = (*p)[:n] // it was cleared when it was returned
		}
	}
	if f.ts == nil {
		f.ts = make([]task, n)
	}
	return f.ts
}

// allocateContexts returns n contexts that were never used: a node that keeps one must not find
// another task in it. Steps of one task take them from blocks.
func (f *frame) allocateContexts(n int) []taskCtx {
	if n > 1 {
		return make([]taskCtx, n)
	}
	if len(f.fresh) == 0 {
		f.fresh = make([]taskCtx, contextBlock)
	}
	c := f.fresh[:1:1]
	f.fresh = f.fresh[1:]
	return c
}

// recycleTasks lets other runs use the slices of a frame whose run has ended. The caller
// must be sure that none of its tasks is held.
func (f *frame) recycleTasks() {
	if cap(f.ts) <= 1 || f.hasHeldTask() {
		return
	}
	room := f.ts[:cap(f.ts)]
	clear(room)
	f.ts = nil
	taskRoom.Put(&room)
}

// hasHeldTask reports whether a node may still hold one of the tasks.
func (f *frame) hasHeldTask() bool {
	for i := range f.ts {
		if f.ts[i].held {
			return true
		}
	}
	return false
}
