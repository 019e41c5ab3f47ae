package fold

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// A Mode says how a write to a key is stored in the journal: as the new value, or as
// what was added to it.
type Mode uint8

// The modes.
const (
	Set    Mode = iota // the record holds the resulting value
	Append             // the record holds the appended elements
	Merge              // the record holds the merged entries
	Reduce             // the write goes through its reducer again when it is read: in overlays and updates, which hold writes, not results
)

// PutPatch appends a patch with a stored value.
func PutPatch(b []byte, key string, f Mode, by int, val []byte) []byte {
	return wire.PutString(wire.PutInt(wire.PutString(b, key), int(f)|by<<2), val)
}

func readPatch(r *wire.Reader) (p Patch) {
	p.Key = r.Text()
	n := r.Int()
	p.Fold, p.By = Mode(n&3), n>>2
	p.Value = r.Bytes()
	return p
}

func putRaw(b []byte, ps []Patch) []byte {
	b = wire.PutInt(b, len(ps))
	for _, p := range ps {
		b = PutPatch(b, p.Key, p.Fold, p.By, p.Value)
	}
	return b
}

func ReadPatches(r *wire.Reader) []Patch {
	ps := make([]Patch, r.Count())
	for i := range ps {
		ps[i] = readPatch(r)
	}
	return ps
}

// PutMap appends a map, sorted by key.
func PutMap[V any](b []byte, m map[string]V, put func([]byte, V) []byte) []byte {
	b = wire.PutInt(b, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = put(wire.PutString(b, k), m[k])
	}
	return b
}

// ReadMap reads what PutMap wrote; nil if that was an empty map.
func ReadMap[V any](r *wire.Reader, read func() V) map[string]V {
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

func readFrontier(h, d *wire.Reader) (ts []Task, as []Arrival) {
	ts, as = ReadHeads(h)
	for i := range ts {
		ts[i].Over = ReadPatches(d)
	}
	return ts, as
}

// ReadHeads reads a frontier without the overlays of its tasks.
func ReadHeads(h *wire.Reader) (ts []Task, as []Arrival) {
	if n := h.Count(); n > 0 {
		ts = make([]Task, n)
	}
	for i := range ts {
		ts[i] = Task{Node: h.Text(), Index: h.Int(), Cause: h.Text()}
	}
	if n := h.Count(); n > 0 {
		as = make([]Arrival, n)
	}
	for i := range as {
		as[i] = Arrival{Join: h.Text(), Source: h.Text()}
	}
	return ts, as
}

// EncodeSnapshot returns the data of a snapshot of the thread.
func (s *Thread) EncodeSnapshot() []byte {
	b := wire.PutTexts(nil, s.Run.ID, s.Run.Label, s.Run.Graph)
	b = wire.PutVarint(append(b, byte(s.Run.Status)), s.Run.Started)
	b = wire.PutInt(wire.PutString(wire.PutString(b, s.Run.Reason), s.Run.Value), s.Run.Failures)
	b = wire.PutString(b, s.Meta)
	b = wire.PutInt(b, len(s.Ahead))
	for _, a := range s.Ahead {
		b = wire.PutBool(wire.PutString(wire.PutString(wire.PutString(b, a.ID), a.Value), a.Refused), a.Used)
	}
	b = PutMap(b, s.Asked, wire.PutInt)
	b = wire.PutVarint(b, int64(s.Active))
	b = wire.PutBool(b, s.Driving)
	b = wire.PutInt(b, len(s.Frames))
	for _, p := range slices.Sorted(maps.Keys(s.Frames)) {
		b = s.Frames[p].encode(wire.PutString(b, p))
	}
	b = wire.PutVarint(wire.PutTexts(b, s.Branch, s.Origin.Thread), s.Origin.Seq)
	b = wire.PutHashes(PutMap(b, s.Run.Broken, wire.PutInt), s.Runs)
	if s.Shape == nil {
		return wire.PutName(b, s.User)
	}
	return structure.PutStructure(wire.PutString(b, s.User), nil, s.Shape)
}

func (s *Thread) decodeSnapshot(r *wire.Reader) {
	s.Run = Run{ID: r.Text(), Label: r.Text(), Graph: r.Text(), Status: Status(r.Byte())}
	s.Run.Started = r.Varint()
	s.Run.Reason, s.Run.Value, s.Run.Failures = r.Text(), nilIfEmpty(r.Bytes()), r.Int()
	s.Meta = r.Bytes()
	s.Ahead = make([]PresetAnswer, r.Count())
	for i := range s.Ahead {
		s.Ahead[i] = PresetAnswer{ID: r.Text(), Value: r.Bytes(), Refused: r.Text(), Used: r.Bool()}
	}
	s.Asked = ReadMap(r, r.Int)
	s.Active = time.Duration(r.Varint())
	s.Driving = r.Bool()
	s.Frames = map[string]*Frame{}
	for range r.Count() {
		s.EnsureFrame(r.Text()).decode(r)
	}
	if s.Branch, s.Origin = "", (journal.Point{}); len(r.Rest) > 0 { // older records do not have branches
		s.Branch, s.Origin = r.Text(), journal.Point{Thread: r.Text(), Seq: r.Varint()}
	}
	if len(r.Rest) > 0 { // the same for stops
		s.Run.Broken, s.Runs = ReadMap(r, r.Int), r.Hashes()
	}
	s.User = r.Name()
	s.Shape = structure.ReadStructure(r, nil)
	s.Bytes, s.Weight = 0, 0
}

func (f *Frame) encode(b []byte) []byte {
	b = wire.PutInt(wire.PutInt(wire.PutString(b, f.Digest), f.Step), f.From)
	b = PutMap(PutMap(b, f.Keys, putRaw), f.Tags, wire.PutString)
	b = wire.PutInt(b, len(f.Tasks))
	for _, t := range f.Tasks {
		b = wire.PutString(wire.PutInt(wire.PutString(b, t.Node), t.Index), t.Cause)
	}
	b = wire.PutInt(b, len(f.Arrived))
	for _, a := range f.Arrived {
		b = wire.PutTexts(b, a.Join, a.Source)
	}
	for _, t := range f.Tasks {
		b = putRaw(b, t.Over)
	}
	b = PutMap(b, f.Visits, wire.PutInt)
	b = wire.PutString(wire.PutBool(wire.PutBool(b, f.Halted), f.Returned), f.Value)
	b = wire.PutVarint(b, int64(f.Since))
	for _, m := range []map[string][]byte{f.Done, f.Effects, f.Notes} {
		b = PutMap(b, m, wire.PutString)
	}
	b = wire.PutInt(b, len(f.Order))
	for _, k := range f.Order {
		q := f.Asks[k]
		b = wire.PutString(wire.PutTexts(b, k, q.Base), q.Question.Encode())
		n := 0 // else 1, or one more than the place of the answer given ahead
		if q.Answered {
			n = 1 + q.Ahead
		}
		b = wire.PutString(wire.PutString(wire.PutInt(b, n), q.Answer), q.Refused)
	}
	return b
}

func (f *Frame) decode(r *wire.Reader) {
	f.Digest, f.Step, f.From = r.Text(), r.Int(), r.Int()
	f.Keys = ReadMap(r, func() []Patch { return ReadPatches(r) })
	f.Tags = ReadMap(r, r.Text)
	f.Tasks, f.Arrived = readFrontier(r, r)
	f.Visits = ReadMap(r, r.Int)
	f.Halted, f.Returned, f.Value = r.Bool(), r.Bool(), nilIfEmpty(r.Bytes())
	f.Since = time.Duration(r.Varint())
	f.Done, f.Effects, f.Notes = ReadMap(r, r.Bytes), ReadMap(r, r.Bytes), ReadMap(r, r.Bytes)
	for range r.Count() {
		k := r.Text()
		q := &AskedQuestion{Base: r.Text()}
		q.Question.Decode(&wire.Reader{Rest: r.Bytes()})
		n := r.Int()
		q.Answered, q.Ahead = n > 0, max(0, n-1)
		q.Answer, q.Refused = r.Bytes(), r.Text()
		SetEntry(&f.Asks, k, q)
		f.Order = append(f.Order, k)
	}
}

// nilIfEmpty returns b, or nil if it is empty.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// A Line is what the head of a record says of a run, for a listing.
type Line struct {
	Run, Label, Graph string
	Started           int64 // Unix microseconds
	Status            Status
	Reason            string
	Questions         []Question    // that are open, with ID and Prompt only
	From              journal.Point // of a snapshot or fork: what the thread was forked from
}

// EncodeSnapshotHead returns the head of a snapshot or fork: what it repeats of the start record,
// the status of the run, where the thread came from, and what runs next.
func (s *Thread) EncodeSnapshotHead() []byte {
	b := wire.PutTexts(nil, s.Run.ID, s.Run.Label, s.Run.Graph)
	b = s.appendRunStatus(wire.PutVarint(b, s.Run.Started))
	b = wire.PutVarint(wire.PutString(b, s.Origin.Thread), s.Origin.Seq)
	return s.appendPosition(b, "")
}

// ReadSnapshotHead reads the head of a snapshot or fork up to the position.
func (l *Line) ReadSnapshotHead(h *wire.Reader) {
	l.Run, l.Label, l.Graph, l.Started = h.Text(), h.Text(), h.Text(), h.Varint()
	if len(h.Rest) == 0 {
		return
	}
	l.readRunStatus(h)
	l.From = journal.Point{Thread: h.Text(), Seq: h.Varint()}
}

// EncodeEditHead returns the head of an edit. retyped has the tags of keys that got another type.
func (s *Thread) EncodeEditHead(path string, keys []string, retyped map[string]string) []byte {
	b := wire.PutTexts(nil, path, s.Branch, s.Run.ID)
	b = s.appendPosition(s.appendRunStatus(b), path)
	return PutMap(s.Run.AppendSummary(wire.PutStrings(b, keys)), retyped, wire.PutString)
}

// ReadEditHead reads the head of an edit after its path and branch, up to the tags of keys that
// got another type: the position, and the names of the keys that were written.
func (l *Line) ReadEditHead(h *wire.Reader) (step int, next, keys []string) {
	l.Run = h.Text()
	l.readRunStatus(h)
	step, next = ReadPosition(h)
	if len(h.Rest) > 0 { // older records end here
		keys = h.Texts()
		l.ReadSummary(h)
	}
	return step, next, keys
}

// ReadEnd reads the head of an end up to the steps that the drive stopped before.
func (l *Line) ReadEnd(h *wire.Reader) {
	l.Status, l.Reason, l.Questions = Status(h.Byte()), h.Text(), nil
	h.Bool() // whether there is a value
	l.Run = h.Text()
	l.readQuestions(h)
}

// AppendSummary appends the last part of the heads of ends and edits: what a listing also shows
// of the run.
func (r *Run) AppendSummary(b []byte) []byte {
	return wire.PutVarint(wire.PutTexts(b, r.Label, r.Graph), r.Started)
}

func (l *Line) ReadSummary(h *wire.Reader) {
	if len(h.Rest) > 0 { // older records end here
		l.Label, l.Graph, l.Started = h.Text(), h.Text(), h.Varint()
	}
}

// appendRunStatus appends the status of the run.
func (s *Thread) appendRunStatus(b []byte) []byte {
	b = wire.PutString(append(b, byte(s.Run.Status)), s.Run.Reason)
	open := s.OpenQuestions()
	b = wire.PutInt(b, len(open))
	for _, o := range open {
		b = wire.PutTexts(b, o.Asked.Question.ID, o.Asked.Question.Prompt)
	}
	return b
}

func (l *Line) readRunStatus(h *wire.Reader) {
	l.Status, l.Reason, l.Questions = Status(h.Byte()), h.Text(), nil
	if l.Status == Running {
		l.Status = Crashed
	}
	l.readQuestions(h)
}

func (l *Line) readQuestions(h *wire.Reader) {
	for range h.Count() {
		l.Questions = append(l.Questions, Question{ID: h.Text(), Prompt: h.Text()})
	}
}

// appendPosition appends how many steps a frame has done, and the nodes that run next.
func (s *Thread) appendPosition(b []byte, path string) []byte {
	f := s.EnsureFrame(path)
	return wire.PutStrings(wire.PutInt(b, f.Step), f.NextNames())
}

func ReadPosition(h *wire.Reader) (step int, next []string) {
	if len(h.Rest) == 0 { // older records do not have it
		return 0, nil
	}
	return h.Int(), h.Texts()
}

// NextNames lists the nodes of a frame that run next, each once, in task order.
func (f *Frame) NextNames() []string {
	var names []string
	for i, t := range f.Tasks {
		if i > 0 && f.Tasks[i-1].Node == t.Node || slices.Contains(names, t.Node) {
			continue
		}
		names = append(names, t.Node)
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

// HasPastRun reports whether the run came before the thread's last run.
func (s *Thread) HasPastRun(run string) bool {
	return s != nil && s.Run.ID != run && slices.Contains(s.Runs, hashOf(run))
}

// ForgetStatus sets the status to that of a run whose last drive has not recorded that it stopped.
func (l *Line) ForgetStatus() { l.Status, l.Reason, l.Questions = Crashed, "", nil }
