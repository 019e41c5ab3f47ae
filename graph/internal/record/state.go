package record

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A ThreadState is the data of a snapshot or fork: all that the records before it lead to.
type ThreadState struct {
	Run  Run
	Meta []byte // graph.Input.Meta
	User string // graph.Input.User
	// Shape is the structure of the graph that the run was last driven with; nil: the journal does not have it.
	Shape   []byte
	Ahead   []PresetAnswer // given with the start of the run
	Asked   map[string]int // questions of this run, by node path
	Active  time.Duration  // of this run, up to the newest record
	Driving bool           // a drive has started and not recorded that it stopped
	Frames  map[string]*Frame
	Branch  string // branch of effects: the run's last edit, or the fork it started with
	Origin  Origin
	Runs    []uint64 // hashes of the ids of the earlier runs
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
	Due              int64          // of the record of the last drive's end; the state has it only in that record's head
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
	Returned bool          // a child that has ended
	Since    time.Duration // active time of the run when the frame started
	Done     map[string][]byte
	Effects  map[string][]byte
	Notes    map[string][]byte
	Asks     map[string]*AskedQuestion
	Order    []string // keys of Asks, in order of asking
	Above    bool     // there may be children; not recorded
	// Failures are those that have ended a path since the run started, and those of the last step that tasks which run now handle.
	Failures []Failure
}

// An AskedQuestion is a question of a step that has not ended, with its answer.
type AskedQuestion struct {
	Question Question
	Base     string
	Answered bool
	Now      bool   // the answer was given to the drive that has read it; not recorded
	Ahead    int    // the place, from 1, of the answer given ahead that it used
	Answer   []byte // JSON
	Refused  string
}

// walk names the parts of the data of a snapshot or fork.
func (s *ThreadState) walk(c *coder) {
	c.text(&s.Run.ID)
	c.text(&s.Run.Label)
	c.text(&s.Run.Graph)
	c.byte((*byte)(&s.Run.Status))
	c.varint(&s.Run.Started)
	c.text(&s.Run.Reason)
	c.value(&s.Run.Value)
	c.int(&s.Run.Failures)
	c.value(&s.Meta)
	sizeList(c, &s.Ahead)
	for i := range s.Ahead {
		s.Ahead[i].walk(c)
		c.flag(&s.Ahead[i].Used)
	}
	c.counts(&s.Asked)
	c.varint((*int64)(&s.Active))
	c.flag(&s.Driving)
	walkMap(c, &s.Frames, func(f **Frame) {
		if c.mode != writing {
			*f = &Frame{}
		}
		(*f).walk(c)
	})
	if c.hasNext() {
		c.text(&s.Branch)
		s.Origin.walk(c)
	}
	if c.hasNext() {
		c.counts(&s.Run.Broken)
		c.hashes(&s.Runs)
	}
	c.userAndShape(&s.User, &s.Shape, s.hasFailures())
	s.walkFailures(c)
	if c.mode == reading {
		s.Run.Value = nilIfEmpty(s.Run.Value)
		s.markParents()
	}
}

// hasFailures reports whether a frame has failures.
func (s *ThreadState) hasFailures() bool {
	for _, f := range s.Frames {
		if len(f.Failures) > 0 {
			return true
		}
	}
	return false
}

// walkFailures goes through the failures of the frames, which stand at the end, because earlier versions did not write
// them.
func (s *ThreadState) walkFailures(c *coder) {
	given := s.hasFailures()
	if !c.hasOptional(&given) {
		return
	}
	var failures map[string][]Failure
	if c.mode == writing {
		failures = map[string][]Failure{}
		for path, f := range s.Frames {
			if len(f.Failures) > 0 {
				failures[path] = f.Failures
			}
		}
	}
	walkMap(c, &failures, c.failures)
	if c.mode != reading {
		return
	}
	for path, list := range failures {
		if f := s.Frames[path]; f != nil {
			f.Failures = list
		}
	}
}

func (s *ThreadState) markParents() {
	for path := range s.Frames {
		if p := s.ParentOf(path); p != nil {
			p.Above = true
		}
	}
}

// ParentOf returns the frame whose task has started the one at a path; nil if there is none.
func (s *ThreadState) ParentOf(path string) *Frame {
	if path == "" {
		return nil
	}
	return s.Frames[path[:strings.LastIndexByte(path[:len(path)-1], '/')+1]]
}

func (f *Frame) walk(c *coder) {
	c.text(&f.Digest)
	c.int(&f.Step)
	c.int(&f.From)
	walkMap(c, &f.Keys, c.patches)
	walkMap(c, &f.Tags, c.text)
	c.tasks(&f.Tasks)
	c.arrivals(&f.Arrived)
	c.overlays(f.Tasks)
	c.counts(&f.Visits)
	c.flag(&f.Halted)
	c.flag(&f.Returned)
	c.value(&f.Value)
	c.varint((*int64)(&f.Since))
	walkMap(c, &f.Done, c.update)
	walkMap(c, &f.Effects, c.value)
	walkMap(c, &f.Notes, c.value)
	f.walkQuestions(c)
	if c.mode == reading {
		f.Value = nilIfEmpty(f.Value)
	}
}

// CausesOf returns the failures that led to the task at a place of what the frame runs next.
func (f *Frame) CausesOf(at int) (causes []Failure) {
	if f.Tasks[at].Cause == "" {
		return nil
	}
	for _, c := range f.Failures {
		if c.To == at+1 && c.Step == f.Step-1 && c.Handler == f.Tasks[at].Node {
			causes = append(causes, c)
		}
	}
	if causes == nil { // an earlier version recorded only the text
		causes = []Failure{{Text: f.Tasks[at].Cause}}
	}
	return causes
}

func (f *Frame) walkQuestions(c *coder) {
	sizeList(c, &f.Order)
	if n := len(f.Order); c.mode != writing && n > 0 {
		f.Asks = make(map[string]*AskedQuestion, n)
	}
	for i := range f.Order {
		c.text(&f.Order[i])
		if c.mode != writing {
			f.Asks[f.Order[i]] = &AskedQuestion{}
		}
		f.Asks[f.Order[i]].walk(c)
	}
}

func (q *AskedQuestion) walk(c *coder) {
	c.text(&q.Base)
	in := c.inner()
	q.Question.walk(&in)
	c.closeInner(&in)
	n := 0 // else 1, or one more than the place of the answer given ahead
	if q.Answered {
		n = 1 + q.Ahead
	}
	c.int(&n)
	q.Answered = n > 0
	q.Ahead = max(0, n-1)
	c.value(&q.Answer)
	c.text(&q.Refused)
}

// update goes through an update with its length: reading leaves it encoded.
func (c *coder) update(p *[]byte) {
	if c.mode != rewriting {
		c.blob(p)
		return
	}
	in := c.inner()
	in.lastUpdate(p)
	c.closeInner(&in)
}

// userAndShape goes through what newer versions have at the end of a start, a snapshot and a fork. Trailing empty
// ones take no space, unless more follows.
func (c *coder) userAndShape(user *string, shape *[]byte, more bool) {
	if c.mode == writing && len(*shape) == 0 && !more {
		c.lastTexts(user)
		return
	}
	if c.hasNext() {
		c.text(user)
	}
	if c.hasNext() {
		c.blob(shape)
	}
}

// counts goes through a map of numbers.
func (c *coder) counts(m *map[string]int) {
	n := c.count(len(*m))
	if c.mode == writing {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[k]
			c.text(&k)
			c.int(&v)
		}
		return
	}
	if n > 0 {
		*m = make(map[string]int, n)
	}
	for i := 0; i < n && c.Err == nil; i++ {
		k := ""
		v := 0
		c.text(&k)
		c.int(&v)
		(*m)[k] = v
	}
}

// walkMap goes through a map: it is written by key, and rewritten in the order in which it was stored. It is nil
// if it is empty.
func walkMap[V any](c *coder, m *map[string]V, walk func(*V)) {
	n := c.count(len(*m))
	if c.mode == writing {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[k]
			c.text(&k)
			walk(&v)
		}
		return
	}
	if n > 0 {
		*m = make(map[string]V, n)
	}
	for i := 0; i < n && c.Err == nil; i++ {
		k := ""
		var v V
		c.text(&k)
		walk(&v)
		(*m)[k] = v
	}
}
