package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"raddle.dev/graph/internal/panics"
	"raddle.dev/graph/internal/wire"
)

// A replay is a thread's journal folded into what a drive needs. Values stay encoded:
// folding needs no graph and no user code, and keys that no graph declares any more are
// kept.
type replay struct {
	head   int64
	run    runHead
	meta   []byte
	user   string
	ahead  []presetAnswer
	asked  map[string]int // questions of this run, by node path
	frames map[string]*rawFrame
	origin Point    // what the thread was forked from
	branch string   // branch of effects: the run's last edit, or the fork it started with
	runs   []uint64 // hashes of the ids of the earlier runs

	active  time.Duration // of this run, up to last
	last    int64         // Unix microseconds of the newest record
	driving bool          // a drive has started and not recorded that it stopped

	bytes  int // of records since the last snapshot
	weight int // bytes plus recordWeight for each record
	size   int // bytes of live state, computed by measure

	sums checker // checksums of the thread that was loaded
}

// runHead holds what the start record says about the run, and the end record of its
// last drive.
type runHead struct {
	id, label, graph string
	started          int64
	status           Status
	reason           string         // of a failure
	value            []byte         // of a Halt, dynamic codec; nil: none
	failures         int            // drives that failed since the last step of the root
	broken           map[string]int // steps that the last drive stopped before, by frame
}

// A rawFrame is one running graph: the root, or a child under a task of its
// parent's step.
type rawFrame struct {
	digest   string
	step     int
	from     int                   // the step at which its run started
	keys     map[string][]rawPatch // a set, then what was added to it
	tags     map[string]string
	tasks    []rawTask
	arrived  []rawArrival
	visits   map[string]int
	halted   bool
	value    []byte        // of the Halt
	above    bool          // there may be children
	returned bool          // a child that has ended
	since    time.Duration // active time of the run when the frame started
	done     map[string][]byte
	effects  map[string][]byte
	notes    map[string][]byte
	asks     map[string]*rawQuestion
	order    []string // keys of asks, in order of asking
}

type rawPatch struct {
	key  string
	fold fold
	by   int
	val  []byte
}

type rawTask struct {
	node  string
	index int
	cause string
	over  []rawPatch
}

type rawArrival struct{ join, source string }

type rawQuestion struct {
	q        Question
	base     string
	answered bool
	now      bool   // the answer was given to the drive that has read it
	ahead    int    // the place, from 1, of the answer given ahead that it used
	answer   []byte // JSON
	refused  string
}

func (s *replay) ensureFrame(path string) *rawFrame {
	f := s.frames[path]
	if f == nil {
		f = &rawFrame{}
		setEntry(&s.frames, path, f)
		if path != "" {
			parent := path[:strings.LastIndexByte(path[:len(path)-1], '/')+1]
			if p := s.frames[parent]; p != nil {
				p.above = true
			}
		}
	}
	return f
}

// setEntry puts a value into a map, which is made when it is first needed: most frames have
// no effects, notes or questions.
func setEntry[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// recordWeight is the weight of a record in addition to its bytes, for its row in the
// store.
const recordWeight = 256

// applyRecord folds one record.
func (s *replay) applyRecord(r *Record) error {
	s.head = r.Seq
	s.bytes += len(r.Head) + len(r.Data)
	s.weight += len(r.Head) + len(r.Data) + recordWeight
	s.updateActiveTime(r)
	h, d := &wire.Reader{Rest: r.Head}, &wire.Reader{Rest: r.Data}
	if r.Kind.isBase() {
		s.decode(d)
		return errors.Join(h.Err, d.Err)
	}
	switch r.Kind {
	case KindStart:
		s.applyStart(r, h, d)
	case KindClaim:
		s.applyClaim(h, d)
	case KindCall:
		path := h.Text()
		delete(s.frames, path)
		s.ensureFrame(path).applyBegin(h, d, s.active)
	case KindIntent:
		f := s.ensureFrame(h.Text())
		setEntry(&f.notes, h.Text(), d.Rest)
	case KindEffect:
		f := s.ensureFrame(h.Text())
		setEntry(&f.effects, h.Text(), d.Rest)
	case KindFailure:
		f := s.ensureFrame(h.Text())
		delete(f.notes, h.Text())
	case KindTask:
		f := s.ensureFrame(h.Text())
		setEntry(&f.done, h.Text(), d.Rest)
	case KindVoid:
		f := s.ensureFrame(h.Text())
		for _, task := range h.Texts() {
			delete(f.done, task)
		}
	case KindStep:
		s.applyStep(h, d)
	case KindReturn:
		path := h.Text()
		if len(h.Rest) > 0 && h.Bool() {
			s.dropChild(path)
			break
		}
		s.ensureFrame(path).returned = true
	case KindQuestion:
		s.applyQuestion(h, d)
	case KindAnswer:
		s.applyAnswer(h, d)
	case KindEdit:
		s.applyEdit(h, d)
	case KindEnd:
		s.applyEnd(h, d)
	default:
		return fmt.Errorf("record of unknown kind %d: written by a newer version?", r.Kind)
	}
	return errors.Join(h.Err, d.Err)
}

// updateActiveTime adds to the active time: the time between records of one drive.
func (s *replay) updateActiveTime(r *Record) {
	switch r.Kind {
	case KindStart:
		s.active, s.driving = 0, true
	case KindClaim:
		s.driving = true
	case KindEdit:
		s.driving = false // the time before it does not count as active
	default:
		if s.driving && r.Time > s.last {
			s.active += time.Duration(r.Time-s.last) * time.Microsecond
		}
		if r.Kind == KindEnd {
			s.driving = false
		}
	}
	s.last = r.Time
}

func (s *replay) applyStart(r *Record, h, d *wire.Reader) {
	if s.run.id != "" {
		s.runs = append(s.runs, hashOf(s.run.id))
	}
	s.run = runHead{id: h.Text(), label: h.Text(), graph: h.Text(), started: r.Time, status: Running}
	s.asked, s.branch = nil, ""
	f := s.ensureFrame("")
	s.frames = map[string]*rawFrame{"": f} // the children belonged to an abandoned run
	f.applyBegin(h, d, 0)
	s.ahead = make([]presetAnswer, d.Count())
	for i := range s.ahead {
		s.ahead[i] = presetAnswer{id: d.Text(), value: d.Bytes(), refused: d.Text()}
	}
	s.meta, s.user = d.Bytes(), d.Name()
}

// applyClaim reads the record of a drive that takes over: the graph it runs, if that has
// changed, and what its caller wrote. Older records have neither.
func (s *replay) applyClaim(h, d *wire.Reader) {
	s.run.status = Running
	f := s.ensureFrame("")
	h.Text()
	if len(h.Rest) > 0 {
		f.digest = h.Text()
		for k, tag := range readMap(h, h.Text) {
			setEntry(&f.tags, k, tag)
		}
	}
	if len(d.Rest) > 0 {
		f.applyPatches(readPatches(d))
	}
}

// applyBegin reads what KindStart and KindCall share.
func (f *rawFrame) applyBegin(h, d *wire.Reader, active time.Duration) {
	f.digest = h.Text()
	f.since, f.from = active, f.step
	f.halted, f.value, f.returned = false, nil, false
	clear(f.visits)
	f.tags = readMap(h, h.Text)
	f.applyPatches(readPatches(d))
	f.applyFrontier(h, d)
}

// applyFrontier reads a frontier and removes what belonged to the step before it.
func (f *rawFrame) applyFrontier(h, d *wire.Reader) {
	f.tasks, f.arrived = readFrontier(h, d)
	f.countVisits()
	f.forgetStep()
}

func (f *rawFrame) forgetStep() {
	clear(f.done)
	clear(f.effects)
	clear(f.notes)
	clear(f.asks)
	f.order = nil
}

// countVisits counts the nodes that are about to run.
func (f *rawFrame) countVisits() {
	for i, t := range f.tasks {
		if i == 0 || f.tasks[i-1].node != t.node {
			setEntry(&f.visits, t.node, f.visits[t.node]+1)
		}
	}
}

func (s *replay) applyStep(h, d *wire.Reader) {
	path := h.Text()
	if path == "" {
		s.run.failures = 0
	}
	f := s.ensureFrame(path)
	if f.above { // the children of the step's tasks end with it
		prefix := fmt.Sprintf("%s%d.", path, f.step)
		maps.DeleteFunc(s.frames, func(p string, _ *rawFrame) bool { return strings.HasPrefix(p, prefix) })
		f.above = false
	}
	f.step++
	f.applyPatches(readPatches(d))
	f.applyFrontier(h, d)
	if f.halted = h.Bool(); f.halted {
		f.value = d.Bytes()
	}
}

func (f *rawFrame) applyPatches(ps []rawPatch) {
	for _, p := range ps {
		if p.fold == foldSet {
			setEntry(&f.keys, p.key, append(f.keys[p.key][:0:0], p))
		} else {
			setEntry(&f.keys, p.key, append(f.keys[p.key], p))
		}
	}
}

func (s *replay) applyQuestion(h, d *wire.Reader) {
	f := s.ensureFrame(h.Text())
	key := h.Text()
	q := &rawQuestion{base: h.Text()}
	q.q.decode(d)
	if f.asks[key] == nil { // otherwise it is asked again
		f.order = append(f.order, key)
		setEntry(&s.asked, q.base, s.asked[q.base]+1)
	}
	setEntry(&f.asks, key, q)
}

func (s *replay) applyAnswer(h, d *wire.Reader) {
	f := s.ensureFrame(h.Text())
	q := f.asks[h.Text()]
	ahead := h.Int()
	if q == nil || ahead > len(s.ahead) {
		h.MarkDamaged("an answer without a question")
		return
	}
	q.answered, q.ahead, q.refused, q.answer = true, ahead, h.Text(), d.Rest
	if ahead > 0 {
		s.ahead[ahead-1] = presetAnswer{id: s.ahead[ahead-1].id, used: true}
	}
}

func (s *replay) applyEnd(h, d *wire.Reader) {
	if s.run.status = Status(h.Byte()); s.run.status == Failed {
		s.run.failures++
		s.forgetRefusedRuns()
	}
	s.run.reason = h.Text()
	if h.Bool() {
		s.run.value = d.Bytes()
	}
	h.Text() // the run's id
	for range h.Count() {
		h.Text() // a question, for listings
		h.Text()
	}
	s.run.broken = readMap(h, h.Int)
}

// openQuestions lists the questions without an answer, with the frame and key of each: in the
// order of their tasks, those of one task in order of asking, and those of its child
// after them, or those of its named children by name. A task with a recorded update has
// no open question.
func (s *replay) openQuestions() []openQuestion {
	w := &questionWalk{replay: s, named: s.childPathsByTask(), seen: map[string]bool{}}
	w.walkFrame("")
	return w.qs
}

// questionWalk is a walk through the frames.
type questionWalk struct {
	*replay
	named map[string][]string // children, by task
	seen  map[string]bool     // so that a damaged frontier is not walked repeatedly
	qs    []openQuestion
}

// walkFrame walks through one frame and those below it.
func (w *questionWalk) walkFrame(path string) {
	f := w.frames[path]
	if f == nil || w.seen[path] {
		return
	}
	w.seen[path] = true
	for _, t := range f.tasks {
		id := fmt.Sprintf("%d.%s.%d", f.step, t.node, t.index)
		if _, done := f.done[id]; done {
			continue
		}
		for _, key := range f.order {
			if q := f.asks[key]; !q.answered && strings.HasPrefix(key, id+"\x00") {
				w.qs = append(w.qs, openQuestion{path, key, q})
			}
		}
		w.walkFrame(path + id + "/")
		for _, below := range w.named[path+id] {
			w.walkFrame(below)
		}
	}
}

type openQuestion struct {
	path, key string
	q         *rawQuestion
}

// measureSize computes the bytes of live state: the size of a snapshot.
func (s *replay) measureSize() {
	s.size = len(s.meta) + len(s.user) + 8*len(s.runs)
	for _, a := range s.ahead {
		s.size += len(a.id) + len(a.value)
	}
	for _, f := range s.frames {
		for _, ps := range f.keys {
			for _, p := range ps {
				s.size += len(p.val)
			}
		}
	}
}

// loadThread reads and folds a thread up to a record (0: all). A panic in a store is a
// failure to read.
func loadThread(ctx context.Context, st Store, thread string, upTo int64) (s *replay, err error) {
	return foldAll(ctx, thread, st, Range{FromSnapshot: true, UpTo: upTo})
}

// loadToDrive is load for a drive, which does not share the bytes of records.
func loadToDrive(ctx context.Context, st Store, thread string) (s *replay, err error) {
	if m, ok := st.(*Memory); ok {
		return foldAll(ctx, thread, zeroCopyMemory{m}, Range{FromSnapshot: true})
	}
	return loadThread(ctx, st, thread, 0)
}

// foldAll folds records that a store has.
func foldAll(ctx context.Context, thread string, st Store, r Range) (s *replay, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("read thread %s: %w", thread, panics.NewError("Store.Read", p))
		}
	}()
	if st == nil {
		return nil, errNoStore
	}
	l := &replayLoader{thread: thread}
	l.sums = newChecker(thread)
	if m, ok := st.(zeroCopyMemory); ok {
		m.eachRecord(ctx, thread, r, l.addRecord)
	} else {
		st.Read(ctx, thread, r)(l.addRecord)
	}
	if l.err != nil {
		return nil, l.err
	}
	l.measureSize()
	return &l.replay, nil
}

// replayLoader is a replay while its records are read. It is a type, because a loop would
// allocate more for each thread that is opened.
type replayLoader struct {
	replay
	thread string
	err    error
	summed bool // the record before it had a checksum
}

// verifyRecord refuses a damaged record. After a record with a checksum, every record must
// have one.
func (l *replayLoader) verifyRecord(r *Record) error {
	if r.Sum == 0 && l.summed {
		return &DamagedError{Thread: l.thread, Seq: r.Seq, Kind: r.Kind}
	}
	l.summed = r.Sum != 0
	return l.sums.verifyRecord(r, false)
}

func (l *replayLoader) addRecord(r Record, err error) bool {
	switch {
	case l.err != nil: // the store has continued although add returned false
	case err != nil:
		l.err = fmt.Errorf("read thread %s: %w", l.thread, err)
	case l.head == 0 && r.Seq > 1 && !r.Kind.isBase():
		l.err = fmt.Errorf("%w %s: what lies before record %d was pruned", ErrNoPoint, l.thread, r.Seq)
	default:
		if l.err = l.verifyRecord(&r); l.err != nil {
			return false
		}
		if err := l.replay.applyRecord(&r); err != nil {
			l.err = fmt.Errorf("thread %s, record %d (%s): %w", l.thread, r.Seq, r.Kind, err)
		}
	}
	return l.err == nil
}
