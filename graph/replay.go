package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

// A replay is a thread's journal folded into what a drive needs. Values stay encoded:
// folding needs no graph and no user code, and keys that no graph declares any more are
// kept.
type replay struct {
	head   int64
	run    runHead
	meta   []byte
	ahead  []aheadAnswer
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

func newReplay() *replay {
	return &replay{}
}

func (s *replay) frame(path string) *rawFrame {
	f := s.frames[path]
	if f == nil {
		f = &rawFrame{}
		keep(&s.frames, path, f)
		if path != "" {
			parent := path[:strings.LastIndexByte(path[:len(path)-1], '/')+1]
			if p := s.frames[parent]; p != nil {
				p.above = true
			}
		}
	}
	return f
}

// keep puts a value into a map, which is made when it is first needed: most frames have
// no effects, notes or questions.
func keep[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// recordWeight is the weight of a record in addition to its bytes, for its row in the
// store.
const recordWeight = 256

// add folds one record.
func (s *replay) add(r *Record) error {
	s.head = r.Seq
	s.bytes += len(r.Head) + len(r.Data)
	s.weight += len(r.Head) + len(r.Data) + recordWeight
	s.tick(r)
	h, d := &reader{b: r.Head}, &reader{b: r.Data}
	if r.Kind.base() {
		s.restore(d)
		return errors.Join(h.err, d.err)
	}
	switch r.Kind {
	case KindStart:
		s.start(r, h, d)
	case KindClaim:
		s.claim(h, d)
	case KindCall:
		path := h.string()
		delete(s.frames, path)
		s.frame(path).begin(h, d, s.active)
	case KindIntent:
		f := s.frame(h.string())
		keep(&f.notes, h.string(), d.b)
	case KindEffect:
		f := s.frame(h.string())
		keep(&f.effects, h.string(), d.b)
	case KindFailure:
		f := s.frame(h.string())
		delete(f.notes, h.string())
	case KindTask:
		f := s.frame(h.string())
		keep(&f.done, h.string(), d.b)
	case KindVoid:
		f := s.frame(h.string())
		for _, task := range h.strings() {
			delete(f.done, task)
		}
	case KindStep:
		s.step(h, d)
	case KindReturn:
		path := h.string()
		if len(h.b) > 0 && h.bool() {
			s.drop(path)
			break
		}
		s.frame(path).returned = true
	case KindQuestion:
		s.question(h, d)
	case KindAnswer:
		s.answer(h, d)
	case KindEdit:
		s.edit(h, d)
	case KindEnd:
		s.end(h, d)
	default:
		return fmt.Errorf("record of unknown kind %d: written by a newer version?", r.Kind)
	}
	return errors.Join(h.err, d.err)
}

// tick adds to the active time: the time between records of one drive.
func (s *replay) tick(r *Record) {
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

func (s *replay) start(r *Record, h, d *reader) {
	if s.run.id != "" {
		s.runs = append(s.runs, hashOf(s.run.id))
	}
	s.run = runHead{id: h.string(), label: h.string(), graph: h.string(), started: r.Time, status: Running}
	s.asked, s.branch = nil, ""
	f := s.frame("")
	s.frames = map[string]*rawFrame{"": f} // the children belonged to an abandoned run
	f.begin(h, d, 0)
	s.ahead = make([]aheadAnswer, d.count())
	for i := range s.ahead {
		s.ahead[i] = aheadAnswer{id: d.string(), value: d.bytes(), refused: d.string()}
	}
	s.meta = d.bytes()
}

// claim reads the record of a drive that takes over: the graph it runs, if that has
// changed, and what its caller wrote. Older records have neither.
func (s *replay) claim(h, d *reader) {
	s.run.status = Running
	f := s.frame("")
	h.string()
	if len(h.b) > 0 {
		f.digest = h.string()
		for k, tag := range readTags(h) {
			keep(&f.tags, k, tag)
		}
	}
	if len(d.b) > 0 {
		f.apply(readPatches(d))
	}
}

// begin reads what KindStart and KindCall share.
func (f *rawFrame) begin(h, d *reader, active time.Duration) {
	f.digest = h.string()
	f.since, f.from = active, f.step
	f.halted, f.value, f.returned = false, nil, false
	clear(f.visits)
	f.tags = readTags(h)
	f.apply(readPatches(d))
	f.advance(h, d)
}

// advance reads a frontier and removes what belonged to the step before it.
func (f *rawFrame) advance(h, d *reader) {
	f.tasks, f.arrived = readFrontier(h, d)
	f.visit()
	f.forgetStep()
}

func (f *rawFrame) forgetStep() {
	clear(f.done)
	clear(f.effects)
	clear(f.notes)
	clear(f.asks)
	f.order = nil
}

// visit counts the nodes that are about to run.
func (f *rawFrame) visit() {
	for i, t := range f.tasks {
		if i == 0 || f.tasks[i-1].node != t.node {
			keep(&f.visits, t.node, f.visits[t.node]+1)
		}
	}
}

func (s *replay) step(h, d *reader) {
	path := h.string()
	if path == "" {
		s.run.failures = 0
	}
	f := s.frame(path)
	if f.above { // the children of the step's tasks end with it
		prefix := fmt.Sprintf("%s%d.", path, f.step)
		maps.DeleteFunc(s.frames, func(p string, _ *rawFrame) bool { return strings.HasPrefix(p, prefix) })
		f.above = false
	}
	f.step++
	f.apply(readPatches(d))
	f.advance(h, d)
	if f.halted = h.bool(); f.halted {
		f.value = d.bytes()
	}
}

func (f *rawFrame) apply(ps []rawPatch) {
	for _, p := range ps {
		if p.fold == foldSet {
			keep(&f.keys, p.key, append(f.keys[p.key][:0:0], p))
		} else {
			keep(&f.keys, p.key, append(f.keys[p.key], p))
		}
	}
}

func (s *replay) question(h, d *reader) {
	f := s.frame(h.string())
	key := h.string()
	q := &rawQuestion{base: h.string()}
	q.q.decode(d)
	if f.asks[key] == nil { // otherwise it is asked again
		f.order = append(f.order, key)
		keep(&s.asked, q.base, s.asked[q.base]+1)
	}
	keep(&f.asks, key, q)
}

func (s *replay) answer(h, d *reader) {
	f := s.frame(h.string())
	q := f.asks[h.string()]
	ahead := h.int()
	if q == nil || ahead > len(s.ahead) {
		h.damaged("an answer without a question")
		return
	}
	q.answered, q.ahead, q.refused, q.answer = true, ahead, h.string(), d.b
	if ahead > 0 {
		s.ahead[ahead-1] = aheadAnswer{id: s.ahead[ahead-1].id, used: true}
	}
}

func (s *replay) end(h, d *reader) {
	if s.run.status = Status(h.byte()); s.run.status == Failed {
		s.run.failures++
	}
	s.run.reason = h.string()
	if h.bool() {
		s.run.value = d.bytes()
	}
	h.string() // the run's id
	for range h.count() {
		h.string() // a question, for listings
		h.string()
	}
	s.run.broken = readBroken(h)
}

// open lists the questions without an answer, with the frame and key of each: in the
// order of their tasks, those of one task in order of asking, and those of its child
// after them, or those of its named children by name. A task with a recorded update has
// no open question.
func (s *replay) open() []openQuestion {
	w := &opened{replay: s, named: s.named(), seen: map[string]bool{}}
	w.in("")
	return w.qs
}

// opened is a walk through the frames.
type opened struct {
	*replay
	named map[string][]string // children, by task
	seen  map[string]bool     // so that a damaged frontier is not walked repeatedly
	qs    []openQuestion
}

// in walks through one frame and those below it.
func (w *opened) in(path string) {
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
		w.in(path + id + "/")
		for _, below := range w.named[path+id] {
			w.in(below)
		}
	}
}

type openQuestion struct {
	path, key string
	q         *rawQuestion
}

// measure computes the bytes of live state: the size of a snapshot.
func (s *replay) measure() {
	s.size = len(s.meta) + 8*len(s.runs)
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

// load reads and folds a thread up to a record (0: all). A panic in a store is a
// failure to read.
func load(ctx context.Context, st Store, thread string, upTo int64) (s *replay, err error) {
	return foldAll(ctx, thread, st, Range{FromSnapshot: true, UpTo: upTo})
}

// loadToDrive is load for a drive, which does not share the bytes of records.
func loadToDrive(ctx context.Context, st Store, thread string) (s *replay, err error) {
	if m, ok := st.(*Memory); ok {
		return foldAll(ctx, thread, lender{m}, Range{FromSnapshot: true})
	}
	return load(ctx, st, thread, 0)
}

// foldAll folds records that a store has.
func foldAll(ctx context.Context, thread string, st Store, r Range) (s *replay, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("read thread %s: %w", thread, panicError("Store.Read", p))
		}
	}()
	if st == nil {
		return nil, errNoStore
	}
	l := &loading{thread: thread}
	l.sums = newChecker(thread)
	if m, ok := st.(lender); ok {
		m.each(ctx, thread, r, l.add)
	} else {
		st.Read(ctx, thread, r)(l.add)
	}
	if l.err != nil {
		return nil, l.err
	}
	l.measure()
	return &l.replay, nil
}

// loading is a replay while its records are read. It is a type, because a loop would
// allocate more for each thread that is opened.
type loading struct {
	replay
	thread string
	err    error
	summed bool // the record before it had a checksum
}

// check refuses a damaged record. After a record with a checksum, every record must
// have one.
func (l *loading) check(r *Record) error {
	if r.Sum == 0 && l.summed {
		return &DamagedError{Thread: l.thread, Seq: r.Seq, Kind: r.Kind}
	}
	l.summed = r.Sum != 0
	return l.sums.check(r, false)
}

func (l *loading) add(r Record, err error) bool {
	switch {
	case l.err != nil: // the store has continued although add returned false
	case err != nil:
		l.err = fmt.Errorf("read thread %s: %w", l.thread, err)
	case l.head == 0 && r.Seq > 1 && !r.Kind.base():
		l.err = fmt.Errorf("%w %s: what lies before record %d was pruned", ErrNoPoint, l.thread, r.Seq)
	default:
		if l.err = l.check(&r); l.err != nil {
			return false
		}
		if err := l.replay.add(&r); err != nil {
			l.err = fmt.Errorf("thread %s, record %d (%s): %w", l.thread, r.Seq, r.Kind, err)
		}
	}
	return l.err == nil
}
