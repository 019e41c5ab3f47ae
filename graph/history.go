package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// RunInfo describes a run as a listing shows it.
type RunInfo struct {
	// Thread and Run name the thread and the run.
	Thread string
	Run    string

	// Label is Input.Label, and Graph the name of the graph.
	Label string
	Graph string

	// Status is that of the run. Running: a drive holds the lease. Crashed: no drive has
	// recorded that it stopped; without leases one may still run.
	Status Status

	// Started is when the run started, and Updated when the newest record was written.
	Started time.Time
	Updated time.Time

	// Questions are those that were open when the last drive stopped, with ID and Prompt
	// only.
	Questions []Question

	// Reason is that of a failure, or of Abandon.
	Reason string

	// Head is the number of the newest record.
	Head int64

	// From is what the thread was forked from; zero: it is not a fork.
	From Point

	// Lease is that of the running drive, if Status is Running.
	Lease Lease
}

// applyLease sets the status of a run whose last drive has not recorded that it stopped.
func (i *RunInfo) applyLease(l Lease) {
	if i.Status == Crashed && l.IsLive() {
		i.Status, i.Lease = Running, l
	}
}

// Describe reads a line of a listing and returns the newest run of the thread. It
// decodes no state. A drive that runs or was killed has not yet recorded which run it
// drives: if the thread has several runs, Run, Label, Graph and Started are then those
// of the oldest record; Inspect has the right ones.
func Describe(t ThreadInfo) (RunInfo, error) {
	i := RunInfo{Thread: t.Name, Head: t.Head, Started: timeOf(t.First.Time), Updated: timeOf(t.Last.Time), Status: Crashed}
	sums := newChecker(t.Name)
	for _, r := range []*Record{&t.First, &t.Last} {
		if err := sums.verifyRecord(r, true); err != nil {
			return i, err
		}
	}
	line := runLine{status: Crashed, started: t.First.Time}
	first, last := &wire.Reader{Rest: t.First.Head}, &wire.Reader{Rest: t.Last.Head}
	switch {
	case t.First.Kind == KindStart:
		line.run, line.label, line.graph = first.Text(), first.Text(), first.Text()
	case t.First.Kind.isBase():
		line.readSnapshotHead(first)
	}
	switch {
	case t.Last.Kind == KindEnd:
		line.readEnd(last)
		readMap(last, last.Int) // the steps that the drive stopped before
		line.readSummary(last)
	case t.Last.Kind == KindEdit:
		last.Text() // the path
		last.Text() // the branch
		line.readEditHead(last)
	case t.Last.Kind == KindStart:
		line.run, line.label, line.graph, line.started = last.Text(), last.Text(), last.Text(), t.Last.Time
		line.forgetStatus()
	case t.Head == t.First.Seq:
	case t.Last.Kind.isBase():
		from := line.from
		line = runLine{status: Crashed}
		line.readSnapshotHead(last)
		line.from = from
	default:
		line.forgetStatus()
	}
	i.setLine(&line)
	if err := errors.Join(first.Err, last.Err); err != nil {
		return i, fmt.Errorf("thread %s: %w", t.Name, err)
	}
	i.applyLease(t.Lease)
	return i, nil
}

// forgetStatus sets the status to that of a run whose last drive has not recorded that it stopped.
func (l *runLine) forgetStatus() { l.status, l.reason, l.questions = Crashed, "", nil }

// setLine sets what the heads of records say of the run.
func (i *RunInfo) setLine(l *runLine) {
	i.Run, i.Label, i.Graph, i.Started = l.run, l.label, l.graph, timeOf(l.started)
	i.Status, i.Reason, i.From, i.Questions = l.status, l.reason, l.from, l.questions
}

// timeOf returns the time of a record, limited to the years that every format can
// write: the clock of the writer may have been wrong by any amount.
func timeOf(micros int64) time.Time {
	const first, last = -62_135_510_400_000_000, 253_402_214_399_999_999 // 0001-01-02 and 9999-12-30, in range in every time zone
	return time.UnixMicro(min(max(micros, first), last))
}

// isRunOver reports whether a run is the thread's last, and has ended.
func (s *replay) isRunOver(run string) bool {
	return s.head > 0 && s.run.id == run && s.run.status.Final()
}

// runStatus returns the run's status: Crashed if no drive has recorded that it stopped.
func (s *replay) runStatus() Status {
	if s.run.status == Running {
		return Crashed
	}
	return s.run.status
}

// Snapshot is a thread at one record, folded without its graph.
type Snapshot struct {
	RunInfo

	// Meta is Input.Meta.
	Meta []byte

	// User is Input.User.
	User string

	// Digest is that of the graph that the run was last driven with.
	Digest string

	// Steps is the number of steps that the run has done at the root.
	Steps int

	// Active is the time that drives have worked on the run.
	Active time.Duration

	// Next are the nodes of the root that would run next.
	Next []string

	// Questions are those that are open, complete.
	Questions []Question

	// Values are those of the root, by name.
	Values []StoredValue

	// Result is that of a Halt; nil: there was none.
	Result any

	// InDoubt are the effects with an intent and no result.
	InDoubt []Intent
}

// StoredValue is a value as the journal stores it: one part for most keys, and one for each
// write of an Append or Merge key.
type StoredValue struct {
	// Key is the name of the key.
	Key string

	// Tag is that of the type or codec; "" for keys that are not declared.
	Tag string

	// Parts are the stored bytes.
	Parts [][]byte
}

// Intent is an effect that was started.
type Intent struct {
	// Path is that of its frame in the journal: the tasks above, each with a '/'.
	Path string

	// ID is the task, the name, and the ordinal or '=' and the key. Each part but the
	// last is followed by a zero byte.
	ID string

	// Note is what Note has recorded last; nil: nothing.
	Note []byte
}

// Inspect folds a thread up to a record (0: all) without its graph. It fails with
// ErrNoThread, ErrNoPoint, or a *DamagedError.
func Inspect(ctx context.Context, st Store, thread string, at int64) (*Snapshot, error) {
	s, err := loadPoint(ctx, st, Point{thread, at})
	if err != nil {
		return nil, err
	}
	f := s.ensureFrame("")
	v := &Snapshot{
		RunInfo: RunInfo{Thread: thread, Run: s.run.id, Label: s.run.label, Graph: s.run.graph, Status: s.runStatus(), Reason: s.run.reason,
			Started: timeOf(s.run.started), Updated: timeOf(s.last), Head: s.head, From: s.origin},
		Meta: s.meta, User: s.user, Digest: f.digest, Steps: f.step - f.from, Active: s.active, Next: f.nextNames(),
	}
	if l, ok := st.(Leaser); ok && at == 0 && v.Status == Crashed {
		lease, err := l.ReadLease(ctx, thread)
		if err != nil {
			return nil, fmt.Errorf("lease of thread %s: %w", thread, err)
		}
		v.applyLease(lease)
	}
	for _, o := range s.openQuestions() {
		v.Questions = append(v.Questions, o.q.q)
	}
	for _, k := range slices.Sorted(maps.Keys(f.keys)) {
		kept := StoredValue{Key: k, Tag: f.tags[k]}
		for _, p := range f.keys[k] {
			kept.Parts = append(kept.Parts, p.val)
		}
		v.Values = append(v.Values, kept)
	}
	for _, path := range slices.Sorted(maps.Keys(s.frames)) {
		f := s.frames[path]
		for _, id := range slices.Sorted(maps.Keys(f.notes)) {
			if _, done := f.effects[id]; !done {
				v.InDoubt = append(v.InDoubt, Intent{Path: path, ID: id, Note: f.notes[id]})
			}
		}
	}
	if s.run.value != nil {
		if v.Result, err = value.DecodeAny(s.run.value); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Entry is one line of a thread's history.
type Entry struct {
	// Seq, Time and Kind are those of the record.
	Seq  int64
	Time time.Time
	Kind Kind

	// Path is that of the frame in the journal: the tasks above, each with a '/'.
	Path string

	// What is the task, effect, question, status or keys that it is about, for people.
	What string

	// ID is that of an effect, as in Intent.ID.
	ID string

	// Step is the number of steps that the frame has done, which is the number of the
	// next. It is set for a start, call, step, edit, fork and snapshot.
	Step int

	// Next are the nodes that run next, after the same records.
	Next []string

	// Tasks is the number of tasks of these nodes, after a start, call or step: a node has
	// several if a Send names it more than once.
	Tasks int

	// From is, for a fork, what was copied.
	From Point

	// By is the name of who answered, forked, edited or abandoned the run: Answer.By or that of
	// WithAuthor; "": no name was given.
	By string
}

// History lists a thread's records, newest first, without reading any value. An error is
// last; an unknown thread has none. The sequence may be used several times, and reads the
// store each time.
func History(ctx context.Context, st Store, thread string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range Records(ctx, st, thread, Range{Heads: true, Newest: true}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e, err := DecodeEntry(r)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// DecodeEntry returns the line of a record in its thread's history.
func DecodeEntry(r Record) (Entry, error) {
	e := Entry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind}
	h := &wire.Reader{Rest: r.Head}
	var line runLine
	switch r.Kind {
	case KindStart:
		e.What = h.Text()
		h.Text()           // the label
		h.Text()           // the name of the graph
		h.Text()           // its digest
		readMap(h, h.Text) // the tags of its keys
		readNextNodes(h, &e)
	case KindCall:
		e.Path = h.Text()
		h.Text()           // the digest of the graph
		readMap(h, h.Text) // the tags of its keys
		readNextNodes(h, &e)
	case KindStep:
		e.Path = h.Text()
		readNextNodes(h, &e)
	case KindIntent, KindEffect, KindFailure:
		e.Path, e.ID = h.Text(), h.Text()
		e.What = showParts(e.ID)
	case KindTask:
		e.Path, e.What = h.Text(), h.Text()
	case KindVoid:
		e.Path = h.Text()
		e.What = strings.Join(h.Texts(), ", ")
	case KindQuestion:
		e.Path = h.Text()
		h.Text() // its key in the frame
		e.What = h.Text()
	case KindAnswer:
		e.Path, e.What = h.Text(), showParts(h.Text())
		h.Int()  // its place among the answers that were given ahead
		h.Text() // why there is no answer
		e.By = h.Name()
	case KindReturn:
		if e.Path = h.Text(); len(h.Rest) > 0 && h.Bool() {
			e.What = "dropped"
		}
	case KindEdit:
		e.Path = h.Text()
		h.Text() // the branch
		step, next, keys := line.readEditHead(h)
		e.Step, e.Next, e.What = step, next, strings.Join(keys, ", ")
		if len(h.Rest) > 0 { // older records end here
			readMap(h, h.Text)
			e.By = h.Name()
		}
	case KindClaim:
		e.What = h.Text()
	case KindSnapshot, KindFork:
		line.readSnapshotHead(h)
		e.Step, e.Next = readPosition(h)
		e.What = line.run
		if r.Kind == KindFork {
			e.From, e.By = line.from, h.Name()
		}
	case KindEnd:
		line.readEnd(h)
		if e.What = line.status.String(); len(h.Rest) > 0 { // older records end here
			readMap(h, h.Int) // the steps that the drive stopped before
			line.readSummary(h)
			e.By = h.Name()
		}
	}
	if h.Err != nil {
		return e, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, h.Err)
	}
	return e, nil
}

// showParts returns an identity with spaces between its parts instead of zero bytes.
func showParts(id string) string {
	return strings.Join(strings.FieldsFunc(id, func(r rune) bool { return r == 0 }), " ")
}

// readNextNodes reads what runs next, and the steps done if the record holds them.
func readNextNodes(h *wire.Reader, e *Entry) {
	f := &rawFrame{}
	f.tasks, _ = readHeads(h)
	e.Next, e.Tasks = f.nextNames(), len(f.tasks)
	if e.Kind == KindStep {
		h.Bool()
	}
	if len(h.Rest) > 0 { // older records do not have it
		e.Step = h.Int()
	}
}

// Branch is a thread and the threads that were forked from it.
type Branch struct {
	// RunInfo is that of the thread. Its From says where it was forked.
	RunInfo

	// Forks are the threads forked from it, by the record they were forked at, then by
	// name.
	Forks []Branch
}

// Lineage returns the tree of forks among the threads whose name begins with prefix.
// Its roots, by name, are the threads that were not forked, or whose origin is not
// among them. It reads no state.
func Lineage(ctx context.Context, st Store, prefix string) ([]Branch, error) {
	if st == nil {
		return nil, errNoStore
	}
	var all []RunInfo
	forks := map[string][]RunInfo{} // by origin; "": of no thread
	known, seen := map[string]bool{}, map[string]bool{}
	for t, err := range st.Threads(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		i, err := Describe(t)
		if err != nil {
			return nil, err
		}
		all, known[i.Thread] = append(all, i), true
	}
	slices.SortFunc(all, func(a, b RunInfo) int { return strings.Compare(a.Thread, b.Thread) })
	for _, i := range all {
		forks[i.From.Thread] = append(forks[i.From.Thread], i)
	}
	var buildBranch func(i RunInfo) Branch
	buildBranch = func(i RunInfo) Branch {
		seen[i.Thread] = true
		b := Branch{RunInfo: i}
		for _, f := range forks[i.Thread] {
			if !seen[f.Thread] {
				b.Forks = append(b.Forks, buildBranch(f))
			}
		}
		slices.SortStableFunc(b.Forks, func(a, b Branch) int { return cmp.Compare(a.From.Seq, b.From.Seq) })
		return b
	}
	var roots []Branch
	for _, circles := range []bool{false, true} { // threads that were deleted and forked again may be in a circle
		for _, i := range all {
			if !seen[i.Thread] && (circles || !known[i.From.Thread]) {
				roots = append(roots, buildBranch(i))
			}
		}
	}
	slices.SortFunc(roots, func(a, b Branch) int { return strings.Compare(a.Thread, b.Thread) })
	return roots, nil
}

// A Checkpoint is a point that is useful to go back to: a start, a step, the start of a
// child graph, an edit or a fork. Its Kind says which, its Step and Next what would run
// from there.
type Checkpoint struct {
	// Entry is that of the record.
	Entry

	// Parent is the checkpoint before it; for a fork the point that was copied; zero: none
	// is kept.
	Parent Point
}

// Checkpoints lists the checkpoints of a thread, newest first, without reading any
// value. A pruned thread ends with the snapshot that replaces the deleted records. An
// error is last; an unknown thread has none.
func Checkpoints(ctx context.Context, st Store, thread string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		var held *Checkpoint // until its parent is known
		var oldest Entry
		for e, err := range History(ctx, st, thread) {
			if err != nil {
				yield(Checkpoint{}, err)
				return
			}
			oldest = e
			if !e.isCheckpoint() {
				continue
			}
			if held != nil {
				held.Parent = Point{thread, e.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: e, Parent: e.From}
		}
		if oldest.Kind == KindSnapshot {
			if held != nil {
				held.Parent = Point{thread, oldest.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: oldest}
		}
		if held != nil {
			yield(*held, nil)
		}
	}
}

func (e *Entry) isCheckpoint() bool {
	switch e.Kind {
	case KindStart, KindCall, KindStep, KindEdit, KindFork:
		return true
	}
	return false
}

// Keep says what Prune keeps in addition to what a resume needs. A record is kept if at
// least one field names it; the zero Keep names none.
type Keep struct {
	// Records is the number of newest records.
	Records int

	// Steps is the number of newest steps of the root, with everything since.
	Steps int

	// Since keeps everything written at this time or later. If zero, it names nothing.
	Since time.Time
}

// Prune shortens a thread from its beginning, and returns the oldest record that is
// left. The rest is complete: the newest state, the frontier, open questions and
// answers, and every record named by k with the state at it. Forks made from the thread
// are copies and lose nothing.
//
// A thread can be cut only at a snapshot, so more may be left than k names. If there is
// no snapshot, Prune writes one after the newest record, and the thread is cut there,
// now with the zero Keep, or else by a later Prune. Prune writes nothing to a thread
// that is being driven, or whose last drive did not record that it stopped. If a drive
// starts at the same time, it or Prune gets ErrConflict.
func Prune(ctx context.Context, st Store, thread string, k Keep) (first int64, err error) {
	c, err := k.planPrune(ctx, st, thread)
	if err == nil && c.hasExcess() && c.inside == 0 {
		err = c.writeSnapshot(ctx, st, thread)
	}
	if err == nil && c.base > 0 {
		err = st.Prune(ctx, thread, c.base)
	}
	if err != nil {
		return 0, fmt.Errorf("prune thread %s: %w", thread, err)
	}
	return max(c.base, c.first), nil
}

// prunePlan says where a thread can be cut, and where it should be.
type prunePlan struct {
	first  int64 // the oldest record, or base
	head   int64 // the newest record
	named  int64 // the oldest record that Keep names; head+1: it names none
	base   int64 // the newest snapshot at or before named; 0: none
	inside int64 // the oldest snapshot among the named records; 0: none
}

// keepsRecord reports whether k names a record after which there are newer records, and
// steps.
func (k Keep) keepsRecord(e Entry, newer int64, steps int) bool {
	return newer < int64(k.Records) || steps < k.Steps || !k.Since.IsZero() && !e.Time.Before(k.Since)
}

// planPrune reads back as far as needed.
func (k Keep) planPrune(ctx context.Context, st Store, thread string) (c prunePlan, err error) {
	steps, more := 0, true
	for e, err := range History(ctx, st, thread) {
		if err != nil {
			return c, err
		}
		if c.head == 0 {
			c.head, c.named = e.Seq, e.Seq+1
		}
		c.first = e.Seq
		if more = more && k.keepsRecord(e, c.head-e.Seq, steps); more {
			c.named = e.Seq
		} else if c.inside == c.named {
			c.base, c.first = c.inside, c.inside
			return c, nil
		}
		switch {
		case e.Kind.isBase() && more:
			c.inside = e.Seq
		case e.Kind.isBase():
			c.base = e.Seq
			return c, nil
		case e.Kind == KindStep && e.Path == "":
			steps++
		}
	}
	if c.head == 0 {
		return c, ErrNoThread
	}
	return c, nil
}

// hasExcess reports whether there are records that neither k nor a resume needs.
func (c *prunePlan) hasExcess() bool {
	if c.base == 0 {
		return c.first < c.named
	}
	return c.base+1 < c.named
}

// writeSnapshot writes a snapshot after the newest record, unless a drive may be running.
func (c *prunePlan) writeSnapshot(ctx context.Context, st Store, thread string) error {
	s, err := loadThread(ctx, st, thread, 0)
	if err != nil {
		return err
	}
	if s.head != c.head {
		return ErrConflict
	}
	if s.run.status == Running {
		return nil
	}
	rec := Record{Kind: KindSnapshot, Time: s.last, Head: s.encodeSnapshotHead(), Data: s.encode()}
	if err := appendSealed(ctx, st, thread, c.head, rec); err != nil {
		return err
	}
	if c.named > c.head {
		c.base = c.head + 1
	}
	return nil
}

// WriteSnapshot appends the fold of a thread as a snapshot, written now: readers may start there,
// and the thread is the one that was changed last. It changes no state. If another drive holds the
// thread, the error is a *BusyError, provided the store implements Leaser; without leases one of the
// two gets ErrConflict. An unknown thread is ErrNoThread.
func WriteSnapshot(ctx context.Context, st Store, thread string) error {
	fail := func(err error) error { return fmt.Errorf("write a snapshot of thread %s: %w", thread, err) }
	s, err := loadPoint(ctx, st, Point{Thread: thread})
	if err != nil {
		return fail(err)
	}
	if l, ok := st.(Leaser); ok {
		lease, err := l.ReadLease(ctx, thread)
		if err == nil && lease.IsLive() {
			err = &BusyError{Thread: thread, Run: s.run.id, Status: Running, Lease: lease}
		}
		if err != nil {
			return fail(err)
		}
	}
	rec := Record{Kind: KindSnapshot, Time: max(time.Now().UnixMicro(), s.last), Head: s.encodeSnapshotHead(), Data: s.encode()}
	if err := appendSealed(ctx, st, thread, s.head, rec); err != nil {
		return fail(err)
	}
	return nil
}

// Delete deletes a thread with all its records. Threads that were forked from it are
// copies and stay. An unknown thread is ErrNoThread.
//
// If another drive holds the thread, the error is a *BusyError, provided the store
// implements Leaser; without leases that drive gets ErrConflict at its next record.
// Processes that a killed drive has left behind keep running.
func Delete(ctx context.Context, st Store, thread string) error {
	fail := func(err error) error { return fmt.Errorf("delete thread %s: %w", thread, err) }
	if st == nil {
		return fail(errNoStore)
	}
	known := false
	for _, err := range st.Read(ctx, thread, Range{Heads: true, Newest: true, Limit: 1}) {
		if err != nil {
			return fail(err)
		}
		known = true
	}
	if !known {
		return fail(ErrNoThread)
	}
	if l, ok := st.(Leaser); ok {
		lease, err := l.ReadLease(ctx, thread)
		if err != nil {
			return fail(err)
		}
		if lease.IsLive() {
			return fail(&BusyError{Thread: thread, Status: Running, Lease: lease})
		}
	}
	if err := st.Prune(ctx, thread, math.MaxInt64); err != nil {
		return fail(err)
	}
	return nil
}

// Abandon ends the run of a thread by hand and permanently: nothing more of it runs,
// and its status is Abandoned. Its state stays, and a new run can be started on the
// thread. reason is shown to those who look at the run later; it may be empty.
//
// Processes that a killed drive has left behind keep running: InDoubt of Inspect names
// them. A run that has ended keeps its status. A running drive is not asked: it gets
// ErrConflict at its next record, and Abandon gets it if the drive appends first. An
// unknown thread is ErrNoThread.
func Abandon(ctx context.Context, st Store, thread, reason string) error {
	s, err := loadPoint(ctx, st, Point{Thread: thread})
	if err == nil && !s.run.status.Final() {
		err = appendSealed(ctx, st, thread, s.head, newAbandonRecord(s, reason, authorOf(ctx)))
	}
	if err != nil {
		return fmt.Errorf("abandon thread %s: %w", thread, err)
	}
	return nil
}

// newAbandonRecord returns the end record. If the run has crashed, the time since then does
// not count as active.
func newAbandonRecord(s *replay, reason, by string) Record {
	at := s.last
	if !s.driving {
		at = max(at, time.Now().UnixMicro())
	}
	head := wire.PutBool(wire.PutString([]byte{byte(Abandoned)}, reason), false)
	head = wire.PutInt(wire.PutString(head, s.run.id), 0) // no question is open
	return Record{Kind: KindEnd, Time: at, Head: wire.PutName(s.run.appendSummary(wire.PutInt(head, 0)), by)}
}
