package graph

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"
)

// RunInfo is how a run stands, as a listing shows it.
type RunInfo struct {
	Thread    string
	Run       string
	Label     string
	Graph     string
	Status    Status // Crashed: no drive said that it stopped; one may still be at work
	Started   time.Time
	Updated   time.Time
	Questions []Question // ID and Prompt only; open when the last drive stopped
	Reason    string     // of a failure
	Head      int64
}

// Describe reads a line of a listing. It decodes no state.
func Describe(t ThreadInfo) (RunInfo, error) {
	i := RunInfo{Thread: t.Name, Head: t.Head, Started: time.UnixMicro(t.First.Time), Updated: time.UnixMicro(t.Last.Time), Status: Crashed}
	h := &reader{b: t.First.Head}
	switch t.First.Kind {
	case KindStart, KindSnapshot, KindFork:
		i.Run, i.Label, i.Graph = h.string(), h.string(), h.string()
	}
	if t.First.Kind.base() {
		i.Started = time.UnixMicro(h.varint())
	}
	if h.err != nil {
		return i, fmt.Errorf("thread %s: %w", t.Name, h.err)
	}
	if t.Last.Kind != KindEnd {
		return i, nil
	}
	h = &reader{b: t.Last.Head}
	i.Status = Status(h.byte())
	i.Reason = h.string()
	h.bool()
	i.Run = h.string()
	for range h.count() {
		i.Questions = append(i.Questions, Question{ID: h.string(), Prompt: h.string()})
	}
	if h.err != nil {
		return i, fmt.Errorf("thread %s: %w", t.Name, h.err)
	}
	return i, nil
}

// headline is what the head of a snapshot repeats of the start record, so that
// listings work after a prune.
func (s *replay) headline() []byte {
	b := putString(putString(putString(nil, s.run.id), s.run.label), s.run.graph)
	return appendVarint(b, s.run.started)
}

// status is the run's status, Crashed where no drive said that it stopped.
func (s *replay) status() Status {
	if s.run.status == running {
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
	Next      []string   // nodes that would run next
	Questions []Question // open
	Values    []Stored   // of the root, by name
	Result    any        // of a Halt
	InDoubt   []Intent   // effects with a note and no result
}

// Stored is a value as the journal keeps it: one part for most keys, and one for
// each write of an Append or Merge key.
type Stored struct {
	Key   string
	Tag   string // of the type or codec; "" for keys nobody declared
	Parts [][]byte
}

// Intent is an effect that had begun.
type Intent struct {
	Path string // of its frame
	ID   string // task, name, and ordinal or '=' and key, each ended by a zero byte but the last
	Note []byte
}

// Inspect folds a thread up to a record (0: all) without its graph.
func Inspect(ctx context.Context, st Store, thread string, at int64) (*Snapshot, error) {
	s, err := load(ctx, st, thread, at)
	if err != nil {
		return nil, err
	}
	if s.head == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoThread, thread)
	}
	f := s.frame("")
	v := &Snapshot{
		RunInfo: RunInfo{Thread: thread, Run: s.run.id, Label: s.run.label, Graph: s.run.graph, Status: s.status(), Reason: s.run.reason,
			Started: time.UnixMicro(s.run.started), Updated: time.UnixMicro(s.last), Head: s.head},
		Meta: s.meta, Digest: f.digest, Steps: f.step - f.from, Active: s.active,
	}
	for _, t := range f.tasks {
		if !slices.Contains(v.Next, t.node) {
			v.Next = append(v.Next, t.node)
		}
	}
	for _, o := range s.open() {
		v.Questions = append(v.Questions, o.q.q)
	}
	for _, k := range sortedKeys(f.keys) {
		kept := Stored{Key: k, Tag: f.tags[k]}
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
		if v.Result, err = decodeDynamic(s.run.value); err != nil {
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
	What string   // the task, effect, question or status it tells of
	Next []string // nodes that run next, after a start, call or step
}

// History lists a thread's records, newest first, without reading any value.
func History(ctx context.Context, st Store, thread string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range st.Read(ctx, thread, Range{Heads: true, Newest: true}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e, err := entry(r)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func entry(r Record) (Entry, error) {
	e := Entry{Seq: r.Seq, Time: time.UnixMicro(r.Time), Kind: r.Kind}
	h := &reader{b: r.Head}
	switch r.Kind {
	case KindStart:
		e.What = h.string()
		h.string()
		h.string()
		h.string()
		readTags(h)
		e.Next = nextNames(h)
	case KindCall:
		e.Path = h.string()
		h.string()
		readTags(h)
		e.Next = nextNames(h)
	case KindStep:
		e.Path = h.string()
		e.Next = nextNames(h)
	case KindIntent, KindEffect, KindTask:
		e.Path, e.What = h.string(), h.string()
	case KindQuestion:
		e.Path = h.string()
		h.string()
		e.What = h.string()
	case KindAnswer:
		e.Path, e.What = h.string(), h.string()
	case KindReturn, KindEdit:
		e.Path = h.string()
	case KindClaim, KindSnapshot, KindFork:
		e.What = h.string()
	case KindEnd:
		e.What = Status(h.byte()).String()
	}
	if h.err != nil {
		return e, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, h.err)
	}
	return e, nil
}

func nextNames(h *reader) []string {
	tasks, _ := readHeads(h)
	var names []string
	for _, t := range tasks {
		if !slices.Contains(names, t.node) {
			names = append(names, t.node)
		}
	}
	return names
}
