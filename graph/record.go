package graph

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// The functions that write and read the parts of records. Each read follows its put.

func putPatch(b []byte, key string, f fold, by int, val []byte) []byte {
	return wire.PutString(wire.PutInt(wire.PutString(b, key), int(f)|by<<2), val)
}

func readPatch(r *wire.Reader) (p rawPatch) {
	p.key = r.Text()
	n := r.Int()
	p.fold, p.by = fold(n&3), n>>2
	p.val = r.Bytes()
	return p
}

func putRaw(b []byte, ps []rawPatch) []byte {
	b = wire.PutInt(b, len(ps))
	for _, p := range ps {
		b = putPatch(b, p.key, p.fold, p.by, p.val)
	}
	return b
}

func readPatches(r *wire.Reader) []rawPatch {
	ps := make([]rawPatch, r.Count())
	for i := range ps {
		ps[i] = readPatch(r)
	}
	return ps
}

// foldReduce marks a journaled write that goes through its reducer again when it is
// read: in overlays and updates, which hold writes, not results.
const foldReduce fold = 3

// putWrites appends writes, not results.
func putWrites(b []byte, ws []Write) ([]byte, error) {
	b = wire.PutInt(b, len(ws))
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
	b = wire.PutInt(b, len(keys))
	for _, k := range keys {
		b = wire.PutTexts(b, k.name, k.tag)
	}
	return b
}

// putMap appends a map, sorted by key.
func putMap[V any](b []byte, m map[string]V, put func([]byte, V) []byte) []byte {
	b = wire.PutInt(b, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = put(wire.PutString(b, k), m[k])
	}
	return b
}

// readMap reads what putMap wrote; nil if that was an empty map.
func readMap[V any](r *wire.Reader, read func() V) map[string]V {
	n := r.Count()
	if n == 0 {
		return nil
	}
	m := make(map[string]V, n)
	for range n {
		k := r.Text()
		m[k] = read()
	}
	return m
}

// putFrontier appends what runs next to head, and the overlays of its tasks to data.
func putFrontier(head, data []byte, g *Graph, fr *frontier) ([]byte, []byte, error) {
	head = wire.PutInt(head, len(fr.tasks))
	var err error
	for i := range fr.tasks {
		t := &fr.tasks[i]
		head = wire.PutString(wire.PutInt(wire.PutString(head, g.nodes[t.node].Name), t.index), t.cause)
		if data, err = putWrites(data, t.over); err != nil {
			return head, data, err
		}
	}
	head = wire.PutInt(head, len(fr.arrived))
	for _, a := range fr.arrived {
		head = wire.PutTexts(head, g.joins[a.join].id, g.joins[a.join].from[a.src])
	}
	return head, data, nil
}

func readFrontier(h, d *wire.Reader) (ts []rawTask, as []rawArrival) {
	ts, as = readHeads(h)
	for i := range ts {
		ts[i].over = readPatches(d)
	}
	return ts, as
}

// readHeads reads a frontier without the overlays of its tasks.
func readHeads(h *wire.Reader) (ts []rawTask, as []rawArrival) {
	if n := h.Count(); n > 0 {
		ts = make([]rawTask, n)
	}
	for i := range ts {
		ts[i] = rawTask{node: h.Text(), index: h.Int(), cause: h.Text()}
	}
	if n := h.Count(); n > 0 {
		as = make([]rawArrival, n)
	}
	for i := range as {
		as[i] = rawArrival{join: h.Text(), source: h.Text()}
	}
	return ts, as
}

// putUpdate appends what a task returned, for a resume.
func putUpdate(b []byte, u *Update) ([]byte, error) {
	b, err := putWrites(b, u.Writes)
	if err != nil {
		return b, err
	}
	b = wire.PutBool(b, u.Goto != nil)
	b = wire.PutStrings(b, u.Goto)
	b = wire.PutBool(b, u.Send != nil)
	b = wire.PutInt(b, len(u.Send))
	for _, s := range u.Send {
		if b, err = putWrites(wire.PutString(b, s.To), s.Overlay); err != nil {
			return b, err
		}
	}
	b = wire.PutString(b, u.failed)
	b = wire.PutBool(b, u.Halt != nil)
	if u.Halt != nil {
		if b, err = value.EncodeAny(b, u.Halt.Value); err != nil {
			return b, fmt.Errorf("halt: %w", err)
		}
	}
	return b, nil
}

func (s State) decodeUpdate(b []byte) (u Update, err error) {
	r := &wire.Reader{Rest: b}
	if u.Writes, err = s.decodeWrites(readPatches(r)); err != nil {
		return u, err
	}
	set := r.Bool()
	if u.Goto = r.Texts(); set && u.Goto == nil {
		u.Goto = []string{}
	}
	if r.Bool() {
		u.Send = []Send{}
	}
	for range r.Count() {
		to, ps := r.Text(), readPatches(r)
		over, err := s.decodeWrites(ps)
		if err != nil {
			return u, err
		}
		u.Send = append(u.Send, Send{To: to, Overlay: over})
	}
	u.failed = r.Text()
	if r.Bool() {
		u.Halt = &Halt{Value: value.ReadAny(r)}
	}
	return u, r.Err
}

// encode returns a replay as the data of a snapshot; restore reads it.
func (s *replay) encode() []byte {
	b := wire.PutTexts(nil, s.run.id, s.run.label, s.run.graph)
	b = wire.PutVarint(append(b, byte(s.run.status)), s.run.started)
	b = wire.PutInt(wire.PutString(wire.PutString(b, s.run.reason), s.run.value), s.run.failures)
	b = wire.PutString(b, s.meta)
	b = wire.PutInt(b, len(s.ahead))
	for _, a := range s.ahead {
		b = wire.PutBool(wire.PutString(wire.PutString(wire.PutString(b, a.id), a.value), a.refused), a.used)
	}
	b = putMap(b, s.asked, wire.PutInt)
	b = wire.PutVarint(b, int64(s.active))
	b = wire.PutBool(b, s.driving)
	b = wire.PutInt(b, len(s.frames))
	for _, p := range slices.Sorted(maps.Keys(s.frames)) {
		b = s.frames[p].encode(wire.PutString(b, p))
	}
	b = wire.PutVarint(wire.PutTexts(b, s.branch, s.origin.Thread), s.origin.Seq)
	return wire.PutName(wire.PutHashes(putMap(b, s.run.broken, wire.PutInt), s.runs), s.user)
}

func (s *replay) decode(r *wire.Reader) {
	s.run = runHead{id: r.Text(), label: r.Text(), graph: r.Text(), status: Status(r.Byte())}
	s.run.started = r.Varint()
	s.run.reason, s.run.value, s.run.failures = r.Text(), nilIfEmpty(r.Bytes()), r.Int()
	s.meta = r.Bytes()
	s.ahead = make([]presetAnswer, r.Count())
	for i := range s.ahead {
		s.ahead[i] = presetAnswer{id: r.Text(), value: r.Bytes(), refused: r.Text(), used: r.Bool()}
	}
	s.asked = readMap(r, r.Int)
	s.active = time.Duration(r.Varint())
	s.driving = r.Bool()
	s.frames = map[string]*rawFrame{}
	for range r.Count() {
		s.ensureFrame(r.Text()).decode(r)
	}
	if s.branch, s.origin = "", (Point{}); len(r.Rest) > 0 { // older records do not have branches
		s.branch, s.origin = r.Text(), Point{Thread: r.Text(), Seq: r.Varint()}
	}
	if len(r.Rest) > 0 { // the same for stops
		s.run.broken, s.runs = readMap(r, r.Int), r.Hashes()
	}
	s.user = r.Name()
	s.bytes, s.weight = 0, 0
}

func (f *rawFrame) encode(b []byte) []byte {
	b = wire.PutInt(wire.PutInt(wire.PutString(b, f.digest), f.step), f.from)
	b = putMap(putMap(b, f.keys, putRaw), f.tags, wire.PutString)
	b = wire.PutInt(b, len(f.tasks))
	for _, t := range f.tasks {
		b = wire.PutString(wire.PutInt(wire.PutString(b, t.node), t.index), t.cause)
	}
	b = wire.PutInt(b, len(f.arrived))
	for _, a := range f.arrived {
		b = wire.PutTexts(b, a.join, a.source)
	}
	for _, t := range f.tasks {
		b = putRaw(b, t.over)
	}
	b = putMap(b, f.visits, wire.PutInt)
	b = wire.PutString(wire.PutBool(wire.PutBool(b, f.halted), f.returned), f.value)
	b = wire.PutVarint(b, int64(f.since))
	for _, m := range []map[string][]byte{f.done, f.effects, f.notes} {
		b = putMap(b, m, wire.PutString)
	}
	b = wire.PutInt(b, len(f.order))
	for _, k := range f.order {
		q := f.asks[k]
		b = wire.PutString(wire.PutTexts(b, k, q.base), q.q.encode())
		n := 0 // else 1, or one more than the place of the answer given ahead
		if q.answered {
			n = 1 + q.ahead
		}
		b = wire.PutString(wire.PutString(wire.PutInt(b, n), q.answer), q.refused)
	}
	return b
}

func (f *rawFrame) decode(r *wire.Reader) {
	f.digest, f.step, f.from = r.Text(), r.Int(), r.Int()
	f.keys = readMap(r, func() []rawPatch { return readPatches(r) })
	f.tags = readMap(r, r.Text)
	f.tasks, f.arrived = readFrontier(r, r)
	f.visits = readMap(r, r.Int)
	f.halted, f.returned, f.value = r.Bool(), r.Bool(), nilIfEmpty(r.Bytes())
	f.since = time.Duration(r.Varint())
	f.done, f.effects, f.notes = readMap(r, r.Bytes), readMap(r, r.Bytes), readMap(r, r.Bytes)
	for range r.Count() {
		k := r.Text()
		q := &rawQuestion{base: r.Text()}
		q.q.decode(&wire.Reader{Rest: r.Bytes()})
		n := r.Int()
		q.answered, q.ahead = n > 0, max(0, n-1)
		q.answer, q.refused = r.Bytes(), r.Text()
		setEntry(&f.asks, k, q)
		f.order = append(f.order, k)
	}
}

// nilIfEmpty returns b, or nil if it is empty.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// The heads of snapshots, forks, edits and ends hold everything that listings need. Each read
// follows its put. Older records lack the parts that did not exist when they were
// written.

// A runLine is what the head of a record says of a run, for a listing.
type runLine struct {
	run, label, graph string
	started           int64 // Unix microseconds
	status            Status
	reason            string
	questions         []Question // that are open, with ID and Prompt only
	from              Point      // of a snapshot or fork: what the thread was forked from
}

// encodeSnapshotHead returns the head of a snapshot or fork: what it repeats of the start record,
// the status of the run, where the thread came from, and what runs next.
func (s *replay) encodeSnapshotHead() []byte {
	b := wire.PutTexts(nil, s.run.id, s.run.label, s.run.graph)
	b = s.appendRunStatus(wire.PutVarint(b, s.run.started))
	b = wire.PutVarint(wire.PutString(b, s.origin.Thread), s.origin.Seq)
	return s.appendPosition(b, "")
}

// readSnapshotHead reads the head of a snapshot or fork up to the position.
func (l *runLine) readSnapshotHead(h *wire.Reader) {
	l.run, l.label, l.graph, l.started = h.Text(), h.Text(), h.Text(), h.Varint()
	if len(h.Rest) == 0 {
		return
	}
	l.readRunStatus(h)
	l.from = Point{Thread: h.Text(), Seq: h.Varint()}
}

// encodeEditHead returns the head of an edit. retyped has the tags of keys that got another type.
func (s *replay) encodeEditHead(path string, keys []string, retyped map[string]string) []byte {
	b := wire.PutTexts(nil, path, s.branch, s.run.id)
	b = s.appendPosition(s.appendRunStatus(b), path)
	return putMap(s.run.appendSummary(wire.PutStrings(b, keys)), retyped, wire.PutString)
}

// readEditHead reads the head of an edit after its path and branch, up to the tags of keys that
// got another type: the position, and the names of the keys that were written.
func (l *runLine) readEditHead(h *wire.Reader) (step int, next, keys []string) {
	l.run = h.Text()
	l.readRunStatus(h)
	step, next = readPosition(h)
	if len(h.Rest) > 0 { // older records end here
		keys = h.Texts()
		l.readSummary(h)
	}
	return step, next, keys
}

// readEnd reads the head of an end up to the steps that the drive stopped before.
func (l *runLine) readEnd(h *wire.Reader) {
	l.status, l.reason, l.questions = Status(h.Byte()), h.Text(), nil
	h.Bool() // whether there is a value
	l.run = h.Text()
	l.readQuestions(h)
}

// appendSummary appends the last part of the heads of ends and edits: what a listing also shows
// of the run.
func (r *runHead) appendSummary(b []byte) []byte {
	return wire.PutVarint(wire.PutTexts(b, r.label, r.graph), r.started)
}

func (l *runLine) readSummary(h *wire.Reader) {
	if len(h.Rest) > 0 { // older records end here
		l.label, l.graph, l.started = h.Text(), h.Text(), h.Varint()
	}
}

// appendRunStatus appends the status of the run.
func (s *replay) appendRunStatus(b []byte) []byte {
	b = wire.PutString(append(b, byte(s.run.status)), s.run.reason)
	open := s.openQuestions()
	b = wire.PutInt(b, len(open))
	for _, o := range open {
		b = wire.PutTexts(b, o.q.q.ID, o.q.q.Prompt)
	}
	return b
}

func (l *runLine) readRunStatus(h *wire.Reader) {
	l.status, l.reason, l.questions = Status(h.Byte()), h.Text(), nil
	if l.status == Running {
		l.status = Crashed
	}
	l.readQuestions(h)
}

func (l *runLine) readQuestions(h *wire.Reader) {
	for range h.Count() {
		l.questions = append(l.questions, Question{ID: h.Text(), Prompt: h.Text()})
	}
}

// appendPosition appends how many steps a frame has done, and the nodes that run next.
func (s *replay) appendPosition(b []byte, path string) []byte {
	f := s.ensureFrame(path)
	return wire.PutStrings(wire.PutInt(b, f.step), f.nextNames())
}

func readPosition(h *wire.Reader) (step int, next []string) {
	if len(h.Rest) == 0 { // older records do not have it
		return 0, nil
	}
	return h.Int(), h.Texts()
}

// nextNames lists the nodes of a frame that run next, each once, in task order.
func (f *rawFrame) nextNames() []string {
	var names []string
	for i, t := range f.tasks {
		if i > 0 && f.tasks[i-1].node == t.node || slices.Contains(names, t.node) {
			continue
		}
		names = append(names, t.node)
	}
	return names
}

// hashOf returns the hash by which a thread remembers a run that it has seen, so that a run
// that is started again is not treated as a new one.
func hashOf(run string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(run)) // a hash never fails
	return h.Sum64()
}

// hasPastRun reports whether the run came before the thread's last run.
func (s *replay) hasPastRun(run string) bool {
	return s != nil && s.run.id != run && slices.Contains(s.runs, hashOf(run))
}
