// Package fold reads what a thread's journal holds: it folds the records, in their order, into the
// values, frontiers, questions and results that they lead to. Values stay encoded, so folding needs
// no graph and runs no code of users. Package graph continues a run from the result, and package
// history shows it.
package fold

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/journal"
)

// A Thread is a thread's journal, folded. Keys that no graph declares any more are kept. It is not
// safe for concurrent use.
type Thread struct {
	record.ThreadState
	Head int64 // number of the newest record
	Last int64 // Unix microseconds of the newest record

	Bytes  int // of records since the last snapshot
	Weight int // Bytes plus RecordWeight for each record
	Size   int // bytes of live state, when the thread was loaded

	Sums journal.Checksums // checksums of the thread that was loaded
}

// EnsureFrame returns the frame at a path. It adds an empty one if there is none.
func (s *Thread) EnsureFrame(path string) *record.Frame {
	f := s.Frames[path]
	if f == nil {
		f = &record.Frame{}
		SetEntry(&s.Frames, path, f)
		if p := s.ParentOf(path); p != nil {
			p.Above = true
		}
	}
	return f
}

// SetEntry puts a value into a map, which is made when it is first needed: most frames have
// no effects, notes or questions.
func SetEntry[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// RecordWeight is the weight of a record in addition to its bytes, for its row in the
// store.
const RecordWeight = 256

// ApplyRecord folds one record.
func (s *Thread) ApplyRecord(r *journal.Record) error {
	b := record.Parts{}
	return s.applyParts(r, &b)
}

// applyParts folds one record, and sets b, which must be empty, to what the record holds.
func (s *Thread) applyParts(r *journal.Record, b *record.Parts) error {
	s.Head = r.Seq
	s.Bytes += len(r.Head) + len(r.Data)
	s.Weight += len(r.Head) + len(r.Data) + RecordWeight
	AddActiveTime(r, &s.Active, &s.Driving, &s.Last)
	if err := b.Read(uint8(r.Kind), r.Head, r.Data); err != nil {
		return err
	}
	switch r.Kind {
	case journal.KindStart:
		s.applyStart(r, b)
	case journal.KindClaim:
		s.applyClaim(b)
	case journal.KindCall:
		delete(s.Frames, b.Path)
		applyBegin(s.EnsureFrame(b.Path), b, s.Active)
	case journal.KindIntent:
		SetEntry(&s.EnsureFrame(b.Path).Notes, b.ID, b.Value)
	case journal.KindEffect:
		SetEntry(&s.EnsureFrame(b.Path).Effects, b.ID, b.Value)
	case journal.KindFailure:
		delete(s.EnsureFrame(b.Path).Notes, b.ID)
	case journal.KindTask:
		SetEntry(&s.EnsureFrame(b.Path).Done, b.ID, b.Value)
	case journal.KindVoid:
		f := s.EnsureFrame(b.Path)
		for _, task := range b.Void {
			delete(f.Done, task)
		}
	case journal.KindStep:
		s.applyStep(b)
	case journal.KindReturn:
		if b.Dropped {
			s.dropChild(b.Path)
			break
		}
		s.EnsureFrame(b.Path).Returned = true
	case journal.KindQuestion:
		s.applyQuestion(b)
	case journal.KindAnswer:
		return s.applyAnswer(b)
	case journal.KindEdit:
		s.applyEdit(b)
	case journal.KindEnd:
		s.applyEnd(b)
	case journal.KindSnapshot, journal.KindFork:
		s.applySnapshot(b)
	default:
		return journal.ErrNewer
	}
	return nil
}

// AddActiveTime adds to the active time of a run what its next record says: the time between records of one drive.
// driving says whether a drive has not recorded that it stopped, and last is the time of the record before.
func AddActiveTime(r *journal.Record, active *time.Duration, driving *bool, last *int64) {
	switch r.Kind {
	case journal.KindStart:
		*active = 0
		*driving = true
	case journal.KindClaim:
		*driving = true
	case journal.KindEdit:
		*driving = false // the time before it does not count as active
	default:
		if *driving && r.Time > *last {
			*active += time.Duration(r.Time-*last) * time.Microsecond
		}
		if r.Kind == journal.KindEnd {
			*driving = false
		}
	}
	*last = r.Time
}

func (s *Thread) applyStart(r *journal.Record, b *record.Parts) {
	if s.Run.ID != "" {
		s.Runs = append(s.Runs, hashOf(s.Run.ID))
	}
	s.Run = record.Run{ID: b.Run, Label: b.Label, Graph: b.Graph, Started: r.Time, Status: record.Running}
	s.Asked = nil
	s.Branch = ""
	f := s.EnsureFrame("")
	s.Frames = map[string]*record.Frame{"": f} // the children belonged to an abandoned run
	applyBegin(f, b, 0)
	s.Ahead = b.Answers
	s.Meta = b.Meta
	s.User = b.User
	s.Shape = structure.Resolve(b.Shape, s.Shape)
}

// applyClaim folds the record of a drive that takes over: the graph it runs, if that has
// changed, what its caller wrote, and what replaces the caller's part of the start.
func (s *Thread) applyClaim(b *record.Parts) {
	s.Run.Status = record.Running
	f := s.EnsureFrame("")
	if b.NewGraph {
		f.Digest = b.Digest
		setTags(f, b.Tags)
	}
	applyPatches(f, b.Patches)
	if !b.NewStart {
		return
	}
	if len(b.Meta) > 0 {
		s.Meta = b.Meta
	}
	s.Shape = structure.Resolve(b.Shape, s.Shape)
}

func setTags(f *record.Frame, tags []record.Tag) {
	for _, t := range tags {
		SetEntry(&f.Tags, t.Key, t.Tag)
	}
}

// applyBegin folds what a start and a call share.
func applyBegin(f *record.Frame, b *record.Parts, active time.Duration) {
	f.Digest = b.Digest
	f.Since = active
	f.From = f.Step
	f.Halted = false
	f.Value = nil
	f.Returned = false
	clear(f.Visits)
	f.Failures = nil
	f.Tags = nil
	setTags(f, b.Tags)
	applyPatches(f, b.Patches)
	applyFrontier(f, b)
}

// applyFrontier sets what runs next and removes what belonged to the step before it.
func applyFrontier(f *record.Frame, b *record.Parts) {
	f.Tasks = b.Tasks
	f.Arrived = b.Arrived
	countVisits(f)
	forgetStep(f)
}

func forgetStep(f *record.Frame) {
	clear(f.Done)
	clear(f.Effects)
	clear(f.Notes)
	clear(f.Asks)
	f.Order = nil
}

// countVisits counts the nodes that are about to run.
func countVisits(f *record.Frame) {
	for i, t := range f.Tasks {
		if i == 0 || f.Tasks[i-1].Node != t.Node {
			SetEntry(&f.Visits, t.Node, f.Visits[t.Node]+1)
		}
	}
}

func (s *Thread) applyStep(b *record.Parts) {
	if b.Path == "" {
		s.Run.Failures = 0
	}
	f := s.EnsureFrame(b.Path)
	if f.Above { // the children of the step's tasks end with it
		prefix := fmt.Sprintf("%s%d.", b.Path, f.Step)
		maps.DeleteFunc(s.Frames, func(p string, _ *record.Frame) bool { return strings.HasPrefix(p, prefix) })
		f.Above = false
	}
	f.Step++
	applyPatches(f, b.Patches)
	applyFrontier(f, b)
	keepFailures(f, b.Failures)
	if f.Halted = b.Halted; f.Halted {
		f.Value = b.Value
	}
}

func applyPatches(f *record.Frame, ps []record.Patch) {
	for _, p := range ps {
		if p.Fold == record.Set {
			SetEntry(&f.Keys, p.Key, append(f.Keys[p.Key][:0:0], p))
		} else {
			SetEntry(&f.Keys, p.Key, append(f.Keys[p.Key], p))
		}
	}
}

// keepFailures adds the failures of a step. Those of earlier steps that were handled have been: the records of their steps still have them.
func keepFailures(f *record.Frame, added []record.Failure) {
	f.Failures = slices.DeleteFunc(f.Failures, func(was record.Failure) bool { return was.Handler != "" })
	f.Failures = append(f.Failures, added...)
}

func (s *Thread) applyEnd(b *record.Parts) {
	if s.Run.Status = b.Status; s.Run.Status == record.Failed {
		s.Run.Failures++
		s.forgetRefusedRuns()
	}
	s.Run.Reason = b.Reason
	s.Run.Due = b.Due
	if b.Halted {
		s.Run.Value = b.Value
	}
	s.Run.Broken = b.Broken
}

func (s *Thread) applySnapshot(b *record.Parts) {
	s.ThreadState = *b.State
	s.Run.Due = b.Due
	s.Shape = structure.Resolve(s.Shape, nil)
	s.Bytes = 0
	s.Weight = 0
}

// measureSize computes the bytes of live state: the size of a snapshot.
func (s *Thread) measureSize() {
	s.Size = len(s.Meta) + len(s.User) + len(s.Shape) + 8*len(s.Runs)
	for _, a := range s.Ahead {
		s.Size += len(a.ID) + len(a.Value)
	}
	for _, f := range s.Frames {
		for _, ps := range f.Keys {
			for _, p := range ps {
				s.Size += len(p.Value)
			}
		}
	}
}

// IsRunOver reports whether a run is the thread's last, and has ended.
func (s *Thread) IsRunOver(run string) bool {
	return s.Head > 0 && s.Run.ID == run && s.Run.Status.Final()
}

// RunStatus returns the run's status: Crashed if no drive has recorded that it stopped.
func (s *Thread) RunStatus() record.Status {
	if s.Run.Status == record.Running {
		return record.Crashed
	}
	return s.Run.Status
}

// dropChild removes a named child, and the children below it.
func (s *Thread) dropChild(path string) {
	maps.DeleteFunc(s.Frames, func(p string, _ *record.Frame) bool { return strings.HasPrefix(p, path) })
}

// ChildPathsByTask lists the paths of named children by the path of their task, each list by name.
func (s *Thread) ChildPathsByTask() map[string][]string {
	var by map[string][]string
	for _, path := range slices.Sorted(maps.Keys(s.Frames)) {
		if hash := strings.LastIndexByte(path, '#'); hash > strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/') {
			SetEntry(&by, path[:hash], append(by[path[:hash]], path))
		}
	}
	for _, paths := range by {
		slices.SortFunc(paths, func(a, b string) int { return strings.Compare(a[:len(a)-1], b[:len(b)-1]) })
	}
	return by
}
