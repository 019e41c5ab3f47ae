package graph

import (
	"fmt"
	"slices"
	"time"
)

// The functions that write and read the parts of records. Each read follows its put.

func putPatch(b []byte, key string, f fold, by int, val []byte) []byte {
	return putString(putInt(putString(b, key), int(f)|by<<2), val)
}

func (r *reader) readPatch() (p rawPatch) {
	p.key = r.string()
	n := r.int()
	p.fold, p.by = fold(n&3), n>>2
	p.val = r.bytes()
	return p
}

func putRaw(b []byte, ps []rawPatch) []byte {
	b = putInt(b, len(ps))
	for _, p := range ps {
		b = putPatch(b, p.key, p.fold, p.by, p.val)
	}
	return b
}

func readPatches(r *reader) []rawPatch {
	ps := make([]rawPatch, r.count())
	for i := range ps {
		ps[i] = r.readPatch()
	}
	return ps
}

// foldReduce marks a journaled write that goes through its reducer again when it is
// read: in overlays and updates, which hold writes, not results.
const foldReduce fold = 3

// putWrites appends writes, not results.
func putWrites(b []byte, ws []Write) ([]byte, error) {
	b = putInt(b, len(ws))
	for _, w := range ws {
		if w.key == nil {
			return b, errNoKey
		}
		v, err := w.key.encodeStored(nil, w.val)
		if err != nil {
			return b, err
		}
		f := w.key.fold
		switch {
		case w.reset:
			f = foldSet
		case f == foldSet:
			f = foldReduce
		}
		b = putPatch(b, w.key.name, f, 0, v)
	}
	return b, nil
}

// decodeWrites turns journaled patches back into writes.
func (s State) decodeWrites(ps []rawPatch) ([]Write, error) {
	ws := make([]Write, 0, len(ps))
	for _, p := range ps {
		d := s.findKey(p.key)
		if d == nil {
			return nil, fmt.Errorf("key %q is no longer in the graph", p.key)
		}
		v, err := d.decodeStored(p.val)
		if err != nil {
			return nil, err
		}
		ws = append(ws, Write{d, boxNil(v), p.fold == foldSet})
	}
	return ws, nil
}

func putTags(b []byte, keys []*keyDef) []byte {
	b = putInt(b, len(keys))
	for _, k := range keys {
		b = putString(putString(b, k.name), k.tag)
	}
	return b
}

func readTags(r *reader) map[string]string {
	n := r.count()
	tags := make(map[string]string, n)
	for range n {
		k := r.string()
		tags[k] = r.string()
	}
	return tags
}

// putFrontier appends what runs next to head, and the overlays of its tasks to data.
func putFrontier(head, data []byte, g *Graph, fr *frontier) ([]byte, []byte, error) {
	head = putInt(head, len(fr.tasks))
	var err error
	for i := range fr.tasks {
		t := &fr.tasks[i]
		head = putString(putInt(putString(head, g.nodes[t.node].Name), t.index), t.cause)
		if data, err = putWrites(data, t.over); err != nil {
			return head, data, err
		}
	}
	head = putInt(head, len(fr.arrived))
	for _, a := range fr.arrived {
		head = putString(putString(head, g.joins[a.join].id), g.joins[a.join].from[a.src])
	}
	return head, data, nil
}

func readFrontier(h, d *reader) (ts []rawTask, as []rawArrival) {
	ts, as = readHeads(h)
	for i := range ts {
		ts[i].over = readPatches(d)
	}
	return ts, as
}

// readHeads reads a frontier without the overlays of its tasks.
func readHeads(h *reader) (ts []rawTask, as []rawArrival) {
	if n := h.count(); n > 0 {
		ts = make([]rawTask, n)
	}
	for i := range ts {
		ts[i] = rawTask{node: h.string(), index: h.int(), cause: h.string()}
	}
	if n := h.count(); n > 0 {
		as = make([]rawArrival, n)
	}
	for i := range as {
		as[i] = rawArrival{join: h.string(), source: h.string()}
	}
	return ts, as
}

// putUpdate appends what a task returned, for a resume.
func putUpdate(b []byte, u *Update) ([]byte, error) {
	b, err := putWrites(b, u.Writes)
	if err != nil {
		return b, err
	}
	b = putBool(b, u.Goto != nil)
	b = putStrings(b, u.Goto)
	b = putBool(b, u.Send != nil)
	b = putInt(b, len(u.Send))
	for _, s := range u.Send {
		if b, err = putWrites(putString(b, s.To), s.Overlay); err != nil {
			return b, err
		}
	}
	b = putString(b, u.failed)
	b = putBool(b, u.Halt != nil)
	if u.Halt != nil {
		if b, err = encodeDynamic(b, u.Halt.Value); err != nil {
			return b, fmt.Errorf("halt: %w", err)
		}
	}
	return b, nil
}

func (s State) decodeUpdate(b []byte) (u Update, err error) {
	r := &reader{b: b}
	if u.Writes, err = s.decodeWrites(readPatches(r)); err != nil {
		return u, err
	}
	set := r.bool()
	if u.Goto = r.strings(); set && u.Goto == nil {
		u.Goto = []string{}
	}
	if r.bool() {
		u.Send = []Send{}
	}
	for range r.count() {
		to, ps := r.string(), readPatches(r)
		over, err := s.decodeWrites(ps)
		if err != nil {
			return u, err
		}
		u.Send = append(u.Send, Send{To: to, Overlay: over})
	}
	u.failed = r.string()
	if r.bool() {
		u.Halt = &Halt{Value: r.readDynamic(0)}
	}
	return u, r.err
}

// encode returns a replay as the data of a snapshot; restore reads it.
func (s *replay) encode() []byte {
	b := putString(putString(putString(nil, s.run.id), s.run.label), s.run.graph)
	b = appendVarint(append(b, byte(s.run.status)), s.run.started)
	b = putInt(putString(putString(b, s.run.reason), s.run.value), s.run.failures)
	b = putString(b, s.meta)
	b = putInt(b, len(s.ahead))
	for _, a := range s.ahead {
		b = putBool(putString(putString(putString(b, a.id), a.value), a.refused), a.used)
	}
	b = putCounts(b, s.asked)
	b = putDuration(b, s.active)
	b = putBool(b, s.driving)
	b = putInt(b, len(s.frames))
	for _, p := range sortedKeys(s.frames) {
		b = s.frames[p].encode(putString(b, p))
	}
	b = appendVarint(putString(putString(b, s.branch), s.origin.Thread), s.origin.Seq)
	return putHashes(putBroken(b, brokenSteps(s.run.broken)), s.runs)
}

func (s *replay) decode(r *reader) {
	s.run = runHead{id: r.string(), label: r.string(), graph: r.string(), status: Status(r.byte())}
	s.run.started = r.varint()
	s.run.reason, s.run.value, s.run.failures = r.string(), nilIfEmpty(r.bytes()), r.int()
	s.meta = r.bytes()
	s.ahead = make([]presetAnswer, r.count())
	for i := range s.ahead {
		s.ahead[i] = presetAnswer{id: r.string(), value: r.bytes(), refused: r.string(), used: r.bool()}
	}
	s.asked = readCounts(r)
	s.active = readDuration(r)
	s.driving = r.bool()
	s.frames = map[string]*rawFrame{}
	for range r.count() {
		s.ensureFrame(r.string()).decode(r)
	}
	if s.branch, s.origin = "", (Point{}); len(r.b) > 0 { // older records do not have branches
		s.branch, s.origin = r.string(), Point{Thread: r.string(), Seq: r.varint()}
	}
	if len(r.b) > 0 { // the same for stops
		s.run.broken, s.runs = readBroken(r), readHashes(r)
	}
	s.bytes, s.weight = 0, 0
}

func (f *rawFrame) encode(b []byte) []byte {
	b = putInt(putInt(putString(b, f.digest), f.step), f.from)
	b = putInt(b, len(f.keys))
	for _, k := range sortedKeys(f.keys) {
		b = putRaw(putString(b, k), f.keys[k])
	}
	b = putInt(b, len(f.tags))
	for _, k := range sortedKeys(f.tags) {
		b = putString(putString(b, k), f.tags[k])
	}
	b = putInt(b, len(f.tasks))
	for _, t := range f.tasks {
		b = putString(putInt(putString(b, t.node), t.index), t.cause)
	}
	b = putInt(b, len(f.arrived))
	for _, a := range f.arrived {
		b = putString(putString(b, a.join), a.source)
	}
	for _, t := range f.tasks {
		b = putRaw(b, t.over)
	}
	b = putCounts(b, f.visits)
	b = putString(putBool(putBool(b, f.halted), f.returned), f.value)
	b = putDuration(b, f.since)
	for _, m := range []map[string][]byte{f.done, f.effects, f.notes} {
		b = putInt(b, len(m))
		for _, k := range sortedKeys(m) {
			b = putString(putString(b, k), m[k])
		}
	}
	b = putInt(b, len(f.order))
	for _, k := range f.order {
		q := f.asks[k]
		b = putString(putString(putString(b, k), q.base), q.q.encode())
		n := 0 // else 1, or one more than the place of the answer given ahead
		if q.answered {
			n = 1 + q.ahead
		}
		b = putString(putString(putInt(b, n), q.answer), q.refused)
	}
	return b
}

func (f *rawFrame) decode(r *reader) {
	f.digest, f.step, f.from = r.string(), r.int(), r.int()
	for range r.count() {
		k := r.string()
		setEntry(&f.keys, k, readPatches(r))
	}
	f.tags = readTags(r)
	f.tasks, f.arrived = readFrontier(r, r)
	f.visits = readCounts(r)
	f.halted, f.returned, f.value = r.bool(), r.bool(), nilIfEmpty(r.bytes())
	f.since = readDuration(r)
	for _, m := range []*map[string][]byte{&f.done, &f.effects, &f.notes} {
		for range r.count() {
			k := r.string()
			setEntry(m, k, r.bytes())
		}
	}
	for range r.count() {
		k := r.string()
		q := &rawQuestion{base: r.string()}
		q.q.decode(&reader{b: r.bytes()})
		n := r.int()
		q.answered, q.ahead = n > 0, max(0, n-1)
		q.answer, q.refused = r.bytes(), r.string()
		setEntry(&f.asks, k, q)
		f.order = append(f.order, k)
	}
}

func putCounts(b []byte, m map[string]int) []byte {
	b = putInt(b, len(m))
	for _, k := range sortedKeys(m) {
		b = putInt(putString(b, k), m[k])
	}
	return b
}

func readCounts(r *reader) map[string]int {
	n := r.count()
	m := make(map[string]int, n)
	for range n {
		k := r.string()
		m[k] = r.int()
	}
	return m
}

func putDuration(b []byte, d time.Duration) []byte {
	return appendVarint(b, int64(d))
}

func readDuration(r *reader) time.Duration {
	return time.Duration(r.varint())
}

func sortedKeys[V any](m map[string]V) []string {
	if len(m) == 0 {
		return nil
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// nilIfEmpty returns b, or nil if it is empty.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
