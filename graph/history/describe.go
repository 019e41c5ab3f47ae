package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/journal"
)

// RunInfo describes a run as a listing shows it.
type RunInfo struct {
	// Thread and Run name the thread and the run.
	Thread string
	Run    string

	// Label is graph.Input.Label, and Graph the name of the graph.
	Label string
	Graph string

	// Status is that of the run. Running: a drive holds the lease. Crashed: no drive has
	// recorded that it stopped; without leases one may still run.
	Status graph.Status

	// Started is when the run started, and Updated when the newest record was written.
	Started time.Time
	Updated time.Time

	// Questions are those that were open when the last drive stopped, with ID and Prompt
	// only.
	Questions []graph.Question

	// Due is, for a run that waits, when the first of its timers and deadlines has come: a resume from then on continues
	// it. Zero: it waits for answers alone.
	Due time.Time `json:",omitzero"`

	// Reason is that of a failure, or of Abandon.
	Reason string

	// Head is the number of the newest record.
	Head int64

	// From is what the thread was forked from; zero: it is not a fork.
	From journal.Point

	// Lease is that of the running drive, if Status is Running.
	Lease journal.Lease
}

// ApplyLease sets the status of a run whose last drive has not recorded that it stopped, by the lease of its thread.
func (i *RunInfo) ApplyLease(l journal.Lease) {
	if i.Status == graph.Crashed && l.IsLive() {
		i.Status = graph.Running
		i.Lease = l
	}
}

// Describe reads a line of a listing and returns the newest run of the thread. It
// decodes no state. A drive that runs or was killed has not yet recorded which run it
// drives: if the thread has several runs, Run, Label, Graph and Started are then those
// of the oldest record; Inspect has the right ones. It fails with a *journal.DamagedError if one of the two
// records of the line is damaged or missing, or if a newer version wrote the newest one and no drive runs.
func Describe(t journal.ThreadInfo) (RunInfo, error) {
	i := RunInfo{Thread: t.Name, Head: t.Head, Started: timeOf(t.First.Time), Updated: timeOf(t.Last.Time), Status: graph.Crashed}
	if t.First.Seq == 0 || t.Last.Seq == 0 {
		return i, &journal.DamagedError{Thread: t.Name, Err: errLost}
	}
	sums := journal.NewChecksums(t.Name)
	for _, r := range []*journal.Record{&t.First, &t.Last} {
		if err := sums.Verify(r, true); err != nil {
			return i, err
		}
	}
	line, err := readLine(t)
	i.setLine(&line)
	if err != nil {
		return i, &journal.DamagedError{Thread: t.Name, Seq: t.Last.Seq, Kind: t.Last.Kind, Err: err}
	}
	if i.ApplyLease(t.Lease); i.Status != graph.Running && !t.Last.Kind.IsKnown() {
		return i, &journal.DamagedError{Thread: t.Name, Seq: t.Last.Seq, Kind: t.Last.Kind, Err: journal.ErrNewer}
	}
	return i, nil
}

// errLost says that a store lists a thread without its records.
var errLost = errors.New("the store has lost its first or its last record")

// readLine reads what the first and the last record of a thread say of its newest run.
func readLine(t journal.ThreadInfo) (line record.Parts, err error) {
	var first, last record.Parts
	line.Started = t.First.Time
	switch {
	case t.First.Kind == journal.KindStart:
		err = first.ReadHead(uint8(t.First.Kind), t.First.Head)
		line.Run = first.Run
		line.Label = first.Label
		line.Graph = first.Graph
	case t.First.Kind.IsBase():
		err = first.ReadHead(uint8(t.First.Kind), t.First.Head)
		line = first
	}
	switch {
	case t.Last.Kind == journal.KindEnd, t.Last.Kind == journal.KindEdit, t.Last.Kind == journal.KindStart:
		err = errors.Join(err, last.ReadHead(uint8(t.Last.Kind), t.Last.Head))
		line.Run = cmp.Or(last.Run, line.Run) // the oldest edits do not name it
		line.Status = last.Status
		line.Reason = last.Reason
		line.Open = last.Open
		line.Due = last.Due
		if last.Named {
			line.Label = last.Label
			line.Graph = last.Graph
			line.Started = last.Started
		}
	case t.Head == t.First.Seq:
	case t.Last.Kind.IsBase():
		err = errors.Join(err, last.ReadHead(uint8(t.Last.Kind), t.Last.Head))
		last.Origin = line.Origin
		line = last
	default:
		line.Status = record.Running
		line.Reason = ""
		line.Open = nil
		line.Due = 0
	}
	if t.Last.Kind == journal.KindStart {
		line.Label = last.Label
		line.Graph = last.Graph
		line.Started = t.Last.Time
	}
	return line, err
}

// setLine sets what the heads of records say of the run. One whose last drive has not recorded that it stopped has
// crashed, unless it has a lease.
func (i *RunInfo) setLine(l *record.Parts) {
	i.Run = l.Run
	i.Label = l.Label
	i.Graph = l.Graph
	i.Started = timeOf(l.Started)
	i.Status = graph.Status(l.Status)
	i.Reason = l.Reason
	i.Due = record.TimeOf(l.Due)
	i.From = journal.Point(l.Origin)
	if l.Status == record.Running {
		i.Status = graph.Crashed
	}
	for _, q := range l.Open {
		i.Questions = append(i.Questions, graph.Question(q))
	}
}

// Snapshot is a thread at one record, folded without its graph.
type Snapshot struct {
	RunInfo

	// Meta is graph.Input.Meta, or the graph.Resume.Meta that has replaced it.
	Meta []byte

	// User is graph.Input.User.
	User string

	// Digest is that of the graph that the run was last driven with.
	Digest string

	// Structure is that of the same graph; nil: the journal does not have it, because an
	// earlier version has written it, or because it would be too large. Descriptions and
	// children are missing if it is large.
	Structure *graph.Structure

	// Steps is the number of steps that the run has done at the root.
	Steps int

	// Active is the time that drives have worked on the run, without jumps of the clock.
	Active time.Duration

	// Next are the nodes of the root that would run next.
	Next []string

	// Questions are those that are open, complete.
	Questions []graph.Question

	// Timers are those of graph.Sleep that the run waits for: Due of each says until when.
	Timers []graph.Question `json:",omitempty"`

	// Ahead are the answers of graph.Input.Ahead that no question has used; each Value is JSON.
	Ahead []graph.Answer

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
// journal.ErrNoThread, journal.ErrNoPoint, or a *journal.DamagedError.
func Inspect(ctx context.Context, st journal.Store, thread string, at int64) (*Snapshot, error) {
	s, err := fold.LoadPoint(ctx, st, journal.Point{Thread: thread, Seq: at})
	if err != nil {
		return nil, err
	}
	v, err := newSnapshot(thread, s)
	if err == nil && at == 0 {
		err = v.readLease(ctx, st)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// readLease sets the status of a run, of which everything was read, by the lease of its thread.
func (v *Snapshot) readLease(ctx context.Context, st journal.Store) error {
	l, ok := st.(journal.Leaser)
	if !ok || v.Status != graph.Crashed {
		return nil
	}
	lease, err := l.ReadLease(ctx, v.Thread)
	if err != nil {
		return fmt.Errorf("lease of thread %s: %w", v.Thread, err)
	}
	v.ApplyLease(lease)
	return nil
}

// newSnapshot returns what a thread holds that is folded so far.
func newSnapshot(thread string, s *fold.Thread) (v *Snapshot, err error) {
	f := s.EnsureFrame("")
	v = &Snapshot{
		RunInfo: RunInfo{Thread: thread, Run: s.Run.ID, Label: s.Run.Label, Graph: s.Run.Graph, Status: graph.Status(s.RunStatus()), Reason: s.Run.Reason,
			Started: timeOf(s.Run.Started), Updated: timeOf(s.Last), Head: s.Head, From: journal.Point(s.Origin), Due: record.TimeOf(s.DueTime())},
		Meta: s.Meta, User: s.User, Digest: f.Digest, Steps: f.Step - f.From, Active: s.Active, Next: record.NextNames(f.Tasks),
	}
	if r, err := structure.UnpackGraph[graph.Structure](s.Shape); r != nil && err == nil {
		v.Structure = &r.Graph
	}
	for _, o := range s.ListOpen() {
		if q := graph.Question(o.Asked.Question); q.Kind == graph.KindTimer {
			v.Timers = append(v.Timers, q)
		} else {
			v.Questions = append(v.Questions, q)
		}
	}
	v.Values = listValues(f)
	for _, a := range s.Ahead {
		if !a.Used {
			v.Ahead = append(v.Ahead, graph.Answer{ID: a.ID, Value: json.RawMessage(a.Value), Refused: a.Refused, Ahead: true})
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.Frames)) {
		f := s.Frames[path]
		for _, id := range slices.Sorted(maps.Keys(f.Notes)) {
			if _, done := f.Effects[id]; !done {
				v.InDoubt = append(v.InDoubt, Intent{Path: path, ID: id, Note: f.Notes[id]})
			}
		}
	}
	if s.Run.Value != nil {
		if v.Result, err = value.DecodeAny(s.Run.Value); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// listValues returns the values of a frame, by name.
func listValues(f *record.Frame) (list []StoredValue) {
	for _, k := range slices.Sorted(maps.Keys(f.Keys)) {
		kept := StoredValue{Key: k, Tag: f.Tags[k]}
		for _, p := range f.Keys[k] {
			kept.Parts = append(kept.Parts, p.Value)
		}
		list = append(list, kept)
	}
	return list
}

// RunPart is what one graph of a run holds: that of the run itself, or a child graph that has not ended.
type RunPart struct {
	// Path is that of the tasks above it, each with a '/'; "": the run's own graph.
	Path string

	// Next are the nodes that would run next.
	Next []string

	// Values are those of its state, by name.
	Values []StoredValue

	// Recorded are the effects of the current step that have a result, by Intent.ID: a resume takes the results,
	// encoded as the journal has them, and makes no effect.
	Recorded map[string][]byte

	// Answered are the questions of the current step that have an answer, which a resume takes.
	Answered []graph.Question
}

// Parts reads everything that a resume of the thread's last run continues with, part by part, the run's own graph
// first. It fails with journal.ErrNoThread or a *journal.DamagedError.
func Parts(ctx context.Context, st journal.Store, thread string) ([]RunPart, error) {
	s, err := fold.LoadPoint(ctx, st, journal.Point{Thread: thread})
	if err != nil {
		return nil, err
	}
	s.EnsureFrame("")
	var list []RunPart
	for _, path := range slices.Sorted(maps.Keys(s.Frames)) {
		f := s.Frames[path]
		p := RunPart{Path: path, Next: record.NextNames(f.Tasks), Values: listValues(f), Recorded: maps.Clone(f.Effects)}
		for _, key := range f.Order {
			if q := f.Asks[key]; q.Answered {
				p.Answered = append(p.Answered, graph.Question(q.Question))
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// Branch is a thread and the threads that were forked from it.
type Branch struct {
	// RunInfo is that of the thread. Its From says where it was forked.
	RunInfo

	// Forks are the threads forked from it, by the record they were forked at, then by
	// name.
	Forks []Branch

	// Damage is a *journal.DamagedError if the first or the last record of the thread cannot be
	// read; then of RunInfo only Thread is known, and the thread is a root.
	Damage error
}

// Lineage returns the tree of forks among the threads whose name begins with prefix.
// Its roots, by name, are the threads that were not forked, or whose origin is not
// among them. It reads no state. A damaged thread is one of them, with its Damage.
func Lineage(ctx context.Context, st journal.Store, prefix string) ([]Branch, error) {
	if st == nil {
		return nil, journal.ErrNoStore
	}
	var all []RunInfo
	forks := map[string][]RunInfo{} // by origin; "": of no thread
	damage := map[string]error{}
	known := map[string]bool{}
	seen := map[string]bool{}
	for t, err := range st.Threads(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		i, err := Describe(t)
		if errors.As(err, new(*journal.DamagedError)) {
			i = RunInfo{Thread: t.Name}
			damage[t.Name] = err
		} else if err != nil {
			return nil, err
		}
		all = append(all, i)
		known[i.Thread] = true
	}
	slices.SortFunc(all, func(a, b RunInfo) int { return strings.Compare(a.Thread, b.Thread) })
	for _, i := range all {
		forks[i.From.Thread] = append(forks[i.From.Thread], i)
	}
	var buildBranch func(i RunInfo) Branch
	buildBranch = func(i RunInfo) Branch {
		seen[i.Thread] = true
		b := Branch{RunInfo: i, Damage: damage[i.Thread]}
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
