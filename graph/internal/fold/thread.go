// Package fold reads what a thread's journal holds: it folds the records, in their order, into the
// values, frontiers, questions and results that they lead to. Values stay encoded, so folding needs
// no graph and runs no code of users. Package graph continues a run from the result, and package
// history shows it.
package fold

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/internal/structure"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// A Thread is a thread's journal, folded. Keys that no graph declares any more are kept. It is not
// safe for concurrent use.
type Thread struct {
	Head   int64 // number of the newest record
	Run    Run
	Meta   []byte            // graph.Input.Meta
	User   string            // graph.Input.User
	Shape  []byte            // the structure of the graph that the run was last driven with; nil: the journal does not have it
	Ahead  []PresetAnswer    // given with the start of the run
	Asked  map[string]int    // questions of this run, by node path
	Frames map[string]*Frame // by path; "": the root
	Origin journal.Point     // what the thread was forked from
	Branch string            // branch of effects: the run's last edit, or the fork it started with
	Runs   []uint64          // hashes of the ids of the earlier runs

	Active  time.Duration // of this run, up to Last
	Last    int64         // Unix microseconds of the newest record
	Driving bool          // a drive has started and not recorded that it stopped

	Bytes  int // of records since the last snapshot
	Weight int // Bytes plus RecordWeight for each record
	Size   int // bytes of live state, when the thread was loaded

	Sums journal.Checksums // checksums of the thread that was loaded
}

// A Run is what the start record says about the run, and the end record of its last drive.
type Run struct {
	ID, Label, Graph string
	Started          int64
	Status           Status
	Reason           string         // of a failure
	Value            []byte         // of a Halt, dynamic codec; nil: none
	Failures         int            // drives that failed since the last step of the root
	Broken           map[string]int // steps that the last drive stopped before, by frame
}

// A Frame is one running graph: the root, or a child under a task of its
// parent's step.
type Frame struct {
	Digest   string
	Step     int
	From     int                // the step at which its run started
	Keys     map[string][]Patch // a set, then what was added to it
	Tags     map[string]string
	Tasks    []Task
	Arrived  []Arrival
	Visits   map[string]int
	Halted   bool
	Value    []byte        // of the Halt
	above    bool          // there may be children
	Returned bool          // a child that has ended
	Since    time.Duration // active time of the run when the frame started
	Done     map[string][]byte
	Effects  map[string][]byte
	Notes    map[string][]byte
	Asks     map[string]*AskedQuestion
	Order    []string // keys of Asks, in order of asking
}

// A Patch is a write to a key as a record holds it.
type Patch struct {
	Key   string
	Fold  Mode
	By    int // the place of the task that wrote, in the step
	Value []byte
}

// A Task is one that runs next.
type Task struct {
	Node  string
	Index int     // among those of a Send
	Cause string  // the failure that it handles; "": none
	Over  []Patch // what it alone sees
}

// An Arrival is a node that has reached a join which waits for others.
type Arrival struct{ Join, Source string }

// EnsureFrame returns the frame at a path. It adds an empty one if there is none.
func (s *Thread) EnsureFrame(path string) *Frame {
	f := s.Frames[path]
	if f == nil {
		f = &Frame{}
		SetEntry(&s.Frames, path, f)
		if path != "" {
			parent := path[:strings.LastIndexByte(path[:len(path)-1], '/')+1]
			if p := s.Frames[parent]; p != nil {
				p.above = true
			}
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
	s.Head = r.Seq
	s.Bytes += len(r.Head) + len(r.Data)
	s.Weight += len(r.Head) + len(r.Data) + RecordWeight
	s.updateActiveTime(r)
	h, d := &wire.Reader{Rest: r.Head}, &wire.Reader{Rest: r.Data}
	if r.Kind.IsBase() {
		s.decodeSnapshot(d)
		return errors.Join(h.Err, d.Err)
	}
	switch r.Kind {
	case journal.KindStart:
		s.applyStart(r, h, d)
	case journal.KindClaim:
		s.applyClaim(h, d)
	case journal.KindCall:
		path := h.Text()
		delete(s.Frames, path)
		s.EnsureFrame(path).applyBegin(h, d, s.Active)
	case journal.KindIntent:
		f := s.EnsureFrame(h.Text())
		SetEntry(&f.Notes, h.Text(), d.Rest)
	case journal.KindEffect:
		f := s.EnsureFrame(h.Text())
		SetEntry(&f.Effects, h.Text(), d.Rest)
	case journal.KindFailure:
		f := s.EnsureFrame(h.Text())
		delete(f.Notes, h.Text())
	case journal.KindTask:
		f := s.EnsureFrame(h.Text())
		SetEntry(&f.Done, h.Text(), d.Rest)
	case journal.KindVoid:
		f := s.EnsureFrame(h.Text())
		for _, task := range h.Texts() {
			delete(f.Done, task)
		}
	case journal.KindStep:
		s.applyStep(h, d)
	case journal.KindReturn:
		path := h.Text()
		if len(h.Rest) > 0 && h.Bool() {
			s.dropChild(path)
			break
		}
		s.EnsureFrame(path).Returned = true
	case journal.KindQuestion:
		s.applyQuestion(h, d)
	case journal.KindAnswer:
		s.applyAnswer(h, d)
	case journal.KindEdit:
		s.applyEdit(h, d)
	case journal.KindEnd:
		s.applyEnd(h, d)
	default:
		return journal.ErrNewer
	}
	return errors.Join(h.Err, d.Err)
}

// updateActiveTime adds to the active time: the time between records of one drive.
func (s *Thread) updateActiveTime(r *journal.Record) {
	switch r.Kind {
	case journal.KindStart:
		s.Active, s.Driving = 0, true
	case journal.KindClaim:
		s.Driving = true
	case journal.KindEdit:
		s.Driving = false // the time before it does not count as active
	default:
		if s.Driving && r.Time > s.Last {
			s.Active += time.Duration(r.Time-s.Last) * time.Microsecond
		}
		if r.Kind == journal.KindEnd {
			s.Driving = false
		}
	}
	s.Last = r.Time
}

func (s *Thread) applyStart(r *journal.Record, h, d *wire.Reader) {
	if s.Run.ID != "" {
		s.Runs = append(s.Runs, hashOf(s.Run.ID))
	}
	s.Run = Run{ID: h.Text(), Label: h.Text(), Graph: h.Text(), Started: r.Time, Status: Running}
	s.Asked, s.Branch = nil, ""
	f := s.EnsureFrame("")
	s.Frames = map[string]*Frame{"": f} // the children belonged to an abandoned run
	f.applyBegin(h, d, 0)
	s.Ahead = make([]PresetAnswer, d.Count())
	for i := range s.Ahead {
		s.Ahead[i] = PresetAnswer{ID: d.Text(), Value: d.Bytes(), Refused: d.Text()}
	}
	s.Meta, s.User = d.Bytes(), d.Name()
	s.Shape = structure.ReadStructure(d, s.Shape)
}

// applyClaim reads the record of a drive that takes over: the graph it runs, if that has
// changed, what its caller wrote, and what replaces the caller's part of the start. Older records
// have none of it.
func (s *Thread) applyClaim(h, d *wire.Reader) {
	s.Run.Status = Running
	f := s.EnsureFrame("")
	h.Text()
	if len(h.Rest) > 0 {
		f.Digest = h.Text()
		for k, tag := range ReadMap(h, h.Text) {
			SetEntry(&f.Tags, k, tag)
		}
	}
	if len(d.Rest) > 0 {
		f.applyPatches(ReadPatches(d))
	}
	if len(d.Rest) > 0 {
		if meta := d.Bytes(); len(meta) > 0 {
			s.Meta = meta
		}
		s.Shape = structure.ReadStructure(d, s.Shape)
	}
}

// applyBegin reads what KindStart and KindCall share.
func (f *Frame) applyBegin(h, d *wire.Reader, active time.Duration) {
	f.Digest = h.Text()
	f.Since, f.From = active, f.Step
	f.Halted, f.Value, f.Returned = false, nil, false
	clear(f.Visits)
	f.Tags = ReadMap(h, h.Text)
	f.applyPatches(ReadPatches(d))
	f.applyFrontier(h, d)
}

// applyFrontier reads a frontier and removes what belonged to the step before it.
func (f *Frame) applyFrontier(h, d *wire.Reader) {
	f.Tasks, f.Arrived = readFrontier(h, d)
	f.countVisits()
	f.forgetStep()
}

func (f *Frame) forgetStep() {
	clear(f.Done)
	clear(f.Effects)
	clear(f.Notes)
	clear(f.Asks)
	f.Order = nil
}

// countVisits counts the nodes that are about to run.
func (f *Frame) countVisits() {
	for i, t := range f.Tasks {
		if i == 0 || f.Tasks[i-1].Node != t.Node {
			SetEntry(&f.Visits, t.Node, f.Visits[t.Node]+1)
		}
	}
}

func (s *Thread) applyStep(h, d *wire.Reader) {
	path := h.Text()
	if path == "" {
		s.Run.Failures = 0
	}
	f := s.EnsureFrame(path)
	if f.above { // the children of the step's tasks end with it
		prefix := fmt.Sprintf("%s%d.", path, f.Step)
		maps.DeleteFunc(s.Frames, func(p string, _ *Frame) bool { return strings.HasPrefix(p, prefix) })
		f.above = false
	}
	f.Step++
	f.applyPatches(ReadPatches(d))
	f.applyFrontier(h, d)
	if f.Halted = h.Bool(); f.Halted {
		f.Value = d.Bytes()
	}
}

func (f *Frame) applyPatches(ps []Patch) {
	for _, p := range ps {
		if p.Fold == Set {
			SetEntry(&f.Keys, p.Key, append(f.Keys[p.Key][:0:0], p))
		} else {
			SetEntry(&f.Keys, p.Key, append(f.Keys[p.Key], p))
		}
	}
}

func (s *Thread) applyEnd(h, d *wire.Reader) {
	if s.Run.Status = Status(h.Byte()); s.Run.Status == Failed {
		s.Run.Failures++
		s.forgetRefusedRuns()
	}
	s.Run.Reason = h.Text()
	if h.Bool() {
		s.Run.Value = d.Bytes()
	}
	h.Text() // the run's id
	for range h.Count() {
		h.Text() // a question, for listings
		h.Text()
	}
	s.Run.Broken = ReadMap(h, h.Int)
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
func (s *Thread) RunStatus() Status {
	if s.Run.Status == Running {
		return Crashed
	}
	return s.Run.Status
}

// dropChild removes a named child, and the children below it.
func (s *Thread) dropChild(path string) {
	maps.DeleteFunc(s.Frames, func(p string, _ *Frame) bool { return strings.HasPrefix(p, path) })
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
