package graph

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// RunInfo describes a run as a listing shows it.
type RunInfo struct {
	Thread    string
	Run       string
	Label     string
	Graph     string
	Status    Status // Running: a drive holds the lease. Crashed: no drive has recorded that it stopped; without leases one may still run
	Started   time.Time
	Updated   time.Time
	Questions []Question // ID and Prompt only; open when the last drive stopped
	Reason    string     // of a failure
	Head      int64
	From      Point // what the thread was forked from; zero: it is not a fork
	Lease     Lease // of the running drive, if Status is Running
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
	h := &wire.Reader{Rest: t.First.Head}
	switch {
	case t.First.Kind == KindStart:
		i.Run, i.Label, i.Graph = h.Text(), h.Text(), h.Text()
	case t.First.Kind.isBase():
		readSnapshotHead(h, &i)
	}
	l := &wire.Reader{Rest: t.Last.Head}
	switch {
	case t.Last.Kind == KindEnd:
		readEnd(l, &i)
		readBroken(l)
		readSummary(l, &i)
	case t.Last.Kind == KindEdit:
		readEditHead(l, &i)
		readPosition(l, &Entry{})
		l.Texts()
		readSummary(l, &i)
	case t.Last.Kind == KindStart:
		i.Run, i.Label, i.Graph, i.Started = l.Text(), l.Text(), l.Text(), i.Updated
		i.Status, i.Reason, i.Questions = Crashed, "", nil
	case t.Head == t.First.Seq:
	case t.Last.Kind.isBase():
		last := RunInfo{Status: Crashed}
		readSnapshotHead(l, &last)
		last.Thread, last.Head, last.Updated, last.From = i.Thread, i.Head, i.Updated, i.From
		i = last
	default:
		i.Status, i.Reason, i.Questions = Crashed, "", nil
	}
	if err := firstError(h.Err, l.Err); err != nil {
		return i, fmt.Errorf("thread %s: %w", t.Name, err)
	}
	i.applyLease(t.Lease)
	return i, nil
}

func readEnd(h *wire.Reader, i *RunInfo) {
	i.Status, i.Reason, i.Questions = Status(h.Byte()), h.Text(), nil
	h.Bool()
	i.Run = h.Text()
	for range h.Count() {
		i.Questions = append(i.Questions, Question{ID: h.Text(), Prompt: h.Text()})
	}
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

// newBusyError returns the error for a caller that wants to drive a thread that is not free. by
// is the lease of the running drive, if there is one.
func (s *replay) newBusyError(thread string, by Lease) error {
	e := &BusyError{Thread: thread, Run: s.run.id, Status: s.runStatus(), Lease: by}
	if by.Owner != "" {
		e.Status = Running
	}
	return e
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
	Meta      []byte
	Digest    string
	Steps     int
	Active    time.Duration
	Next      []string      // nodes that would run next
	Questions []Question    // open
	Values    []StoredValue // of the root, by name
	Result    any           // of a Halt
	InDoubt   []Intent      // effects with a note and no result
}

// StoredValue is a value as the journal stores it: one part for most keys, and one for each
// write of an Append or Merge key.
type StoredValue struct {
	Key   string
	Tag   string // of the type or codec; "" for keys that are not declared
	Parts [][]byte
}

// Intent is an effect that was started.
type Intent struct {
	Path string // path of its frame
	ID   string // task, name, and ordinal or '=' and key, each ended by a zero byte but the last
	Note []byte
}

// Inspect folds a thread up to a record (0: all) without its graph.
func Inspect(ctx context.Context, st Store, thread string, at int64) (*Snapshot, error) {
	s, err := loadPoint(ctx, st, Point{thread, at})
	if err != nil {
		return nil, err
	}
	f := s.ensureFrame("")
	v := &Snapshot{
		RunInfo: RunInfo{Thread: thread, Run: s.run.id, Label: s.run.label, Graph: s.run.graph, Status: s.runStatus(), Reason: s.run.reason,
			Started: timeOf(s.run.started), Updated: timeOf(s.last), Head: s.head, From: s.origin},
		Meta: s.meta, Digest: f.digest, Steps: f.step - f.from, Active: s.active, Next: f.nextNames(),
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
	for _, k := range sortedKeys(f.keys) {
		kept := StoredValue{Key: k, Tag: f.tags[k]}
		for _, p := range f.keys[k] {
			kept.Parts = append(kept.Parts, p.val)
		}
		v.Values = append(v.Values, kept)
	}
	for _, path := range sortedKeys(s.frames) {
		f := s.frames[path]
		for _, id := range sortedKeys(f.notes) {
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
	Seq  int64
	Time time.Time
	Kind Kind
	Path string   // of the frame
	What string   // the task, effect, question, status or keys that it is about, for people
	ID   string   // of an effect, as in Intent.ID
	Step int      // steps that the frame has done, after a start, call, step, edit, fork or snapshot: the number of the next
	Next []string // nodes that run next, after the same records
	From Point    // of a fork: what was copied
}

// History lists a thread's records, newest first, without reading any value.
func History(ctx context.Context, st Store, thread string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range Records(ctx, st, thread, Range{Heads: true, Newest: true}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e, err := decodeEntry(r)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func decodeEntry(r Record) (Entry, error) {
	e := Entry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind}
	h := &wire.Reader{Rest: r.Head}
	var i RunInfo
	switch r.Kind {
	case KindStart:
		e.What = h.Text()
		h.Text()
		h.Text()
		h.Text()
		readTags(h)
		readNextNodes(h, &e)
	case KindCall:
		e.Path = h.Text()
		h.Text()
		readTags(h)
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
		h.Text()
		e.What = h.Text()
	case KindAnswer:
		e.Path, e.What = h.Text(), showParts(h.Text())
	case KindReturn:
		if e.Path = h.Text(); len(h.Rest) > 0 && h.Bool() {
			e.What = "dropped"
		}
	case KindEdit:
		e.Path = readEditHead(h, &i)
		readPosition(h, &e)
		e.What = strings.Join(h.Texts(), ", ")
	case KindClaim:
		e.What = h.Text()
	case KindSnapshot, KindFork:
		readSnapshotHead(h, &i)
		readPosition(h, &e)
		e.What = i.Run
		if r.Kind == KindFork {
			e.From = i.From
		}
	case KindEnd:
		e.What = Status(h.Byte()).String()
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
	e.Next = f.nextNames()
	if e.Kind == KindStep {
		h.Bool()
	}
	if len(h.Rest) > 0 { // older records do not have it
		e.Step = h.Int()
	}
}
