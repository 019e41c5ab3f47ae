package record

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// Status is a graph.Status, by its number in records. Readers of records must know these only.
type Status uint8

// The statuses, with the numbers of those of package graph.
const (
	Running   Status = 0
	Done      Status = 1
	Waiting   Status = 2
	Paused    Status = 3
	Failed    Status = 4
	Canceled  Status = 5
	Abandoned Status = 10
	Crashed   Status = 11
	CleanedUp Status = 13
)

// Final reports whether the run has ended permanently: it cannot be resumed.
func (s Status) Final() bool { return s == Done || s == Abandoned || s == CleanedUp }

// A Mode says how a write to a key is stored in the journal: as the new value, or as
// what was added to it.
type Mode uint8

// The modes.
const (
	Set    Mode = iota // the record holds the resulting value
	Append             // the record holds the appended elements
	Merge              // the record holds the merged entries
	// Reduce says that the write goes through its reducer again when it is read: in overlays and updates, which hold
	// writes, not results.
	Reduce
)

// NameKeys names the keys that store their writes in a way, with an article.
func (m Mode) NameKeys() string {
	switch m {
	case Append:
		return "an Append"
	case Merge:
		return "a Merge"
	}
	return "another"
}

// A Patch is a write to a key as a record holds it.
type Patch struct {
	Key   string
	Fold  Mode
	By    int // the place of the task that wrote, in the step
	Value []byte
}

func (p *Patch) walk(c *coder) {
	c.text(&p.Key)
	n := int(p.Fold) | p.By<<2
	c.int(&n)
	p.Fold = Mode(n & 3)
	p.By = n >> 2
	c.value(&p.Value)
}

// PutPatchCount appends the length of a list of patches, and PutPatch each of them: for writers that encode values one
// after the other into one buffer.
func PutPatchCount(b []byte, n int) []byte { return wire.PutInt(b, n) }

// PutPatch appends a patch of such a list.
func PutPatch(b []byte, p Patch) []byte {
	c := coder{mode: writing, out: b}
	p.walk(&c)
	return c.out
}

// patches goes through a list of patches with its length.
func (c *coder) patches(p *[]Patch) {
	sizeList(c, p)
	for i := range *p {
		(*p)[i].walk(c)
	}
}

// A Task is one that runs next.
type Task struct {
	Node  string
	Index int     // among those of a Send
	Cause string  // the failure that it handles; "": none
	Over  []Patch // what it alone sees
}

// tasks goes through a list of tasks without their overlays.
func (c *coder) tasks(p *[]Task) {
	sizeList(c, p)
	for i := range *p {
		t := &(*p)[i]
		c.text(&t.Node)
		c.int(&t.Index)
		c.text(&t.Cause)
	}
}

// NextNames lists the nodes of tasks, each once, in their order.
func NextNames(tasks []Task) []string {
	var names []string
	for i, t := range tasks {
		if i > 0 && tasks[i-1].Node == t.Node || slices.Contains(names, t.Node) {
			continue
		}
		names = append(names, t.Node)
	}
	return names
}

// overlays goes through what each of the tasks alone sees.
func (c *coder) overlays(tasks []Task) {
	for i := range tasks {
		c.patches(&tasks[i].Over)
	}
}

// A Failure is one of a task whose node handles that: what Path, Node, Task, Index and Step are says graph.NodeError.
type Failure struct {
	Path    string
	Node    string
	Task    string
	Index   int
	Step    int
	Text    string
	Handler string // the node that handles it; "": the failure has ended its path
	To      int    // the place of its task, from 1, among those that run after the step; 0: none
}

// failures goes through a list of failures.
func (c *coder) failures(p *[]Failure) {
	sizeList(c, p)
	for i := range *p {
		f := &(*p)[i]
		c.text(&f.Path)
		c.text(&f.Node)
		c.text(&f.Task)
		c.int(&f.Index)
		c.int(&f.Step)
		c.text(&f.Text)
		c.text(&f.Handler)
		c.int(&f.To)
	}
}

// An Arrival is a node that has reached a join which waits for others.
type Arrival struct{ Join, Source string }

func (c *coder) arrivals(p *[]Arrival) {
	sizeList(c, p)
	for i := range *p {
		c.text(&(*p)[i].Join)
		c.text(&(*p)[i].Source)
	}
}

// A Tag names the type or codec of a key.
type Tag struct{ Key, Tag string }

func (c *coder) tags(p *[]Tag) {
	sizeList(c, p)
	for i := range *p {
		c.text(&(*p)[i].Key)
		c.text(&(*p)[i].Tag)
	}
}

// Question is a graph.Question, which has the same fields.
type Question struct {
	ID, Node, Kind, Prompt string
	Options                []string
	Free                   bool
	Default, Type          string
	Data                   json.RawMessage
	Integer, Rejected      string
	Due                    time.Time
	Expired                bool
}

// walk names the parts of a question. Data is a copy of what is read.
func (q *Question) walk(c *coder) {
	c.text(&q.ID)
	c.text(&q.Node)
	c.text(&q.Kind)
	c.text(&q.Prompt)
	c.text(&q.Default)
	c.text(&q.Type)
	c.texts(&q.Options)
	c.flag(&q.Free)
	c.value((*[]byte)(&q.Data))
	if c.hasNext() {
		c.text(&q.Integer)
		c.text(&q.Rejected)
	}
	due := toMicro(q.Due)
	if given := due != 0; c.hasOptional(&given) {
		c.varint(&due)
		c.flag(&q.Expired)
	}
	if c.mode != reading {
		return
	}
	q.Data = nilIfEmpty(bytes.Clone(q.Data))
	q.Due = TimeOf(due)
	if value.IntegerSizes[q.Integer] == 0 {
		q.Integer = ""
	}
}

// TimeOf returns the time that a number of Unix microseconds in a record says; 0 is the zero time.
func TimeOf(micro int64) (t time.Time) {
	if micro != 0 {
		t = time.UnixMicro(micro).UTC()
	}
	return t
}

// toMicro is the inverse of TimeOf.
func toMicro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// openQuestions goes through a list of questions of which listings show the id and the prompt.
func (c *coder) openQuestions(p *[]Question) {
	sizeList(c, p)
	for i := range *p {
		c.text(&(*p)[i].ID)
		c.text(&(*p)[i].Prompt)
	}
}

// A Timing says how an effect spent its time, in microseconds.
type Timing struct {
	Took   int64 // from its start to its record; at least 1
	First  int64 // from its start to the first part of its result; 0: not known
	Waited int64 // between its attempts
	Again  int   // how often it was tried again
}

func (t *Timing) walk(c *coder) {
	c.varint(&t.Took)
	c.varint(&t.First)
	c.varint(&t.Waited)
	c.int(&t.Again)
}

// A PresetAnswer is an answer given with the start of a run.
type PresetAnswer struct {
	ID      string // "": for any question
	Value   []byte // JSON
	Refused string
	Used    bool // not in a start
}

func (a *PresetAnswer) walk(c *coder) {
	c.text(&a.ID)
	c.value(&a.Value)
	c.text(&a.Refused)
}

// An Origin is the point that a thread was forked from; zero: it is not a fork.
type Origin struct {
	Thread string
	Seq    int64
}

func (o *Origin) walk(c *coder) {
	c.text(&o.Thread)
	c.varint(&o.Seq)
}

// A TaskUpdate is what a task returned, for a resume.
type TaskUpdate struct {
	Writes []Patch
	Goes   bool // Goto is given, also if it is empty
	Goto   []string
	Sends  bool // Send is given, also if it is empty
	Send   []Send
	Failed string // why the task failed, if its node handles that
	Reason string // the same without where it was; older versions did not write it
	Halted bool
	Value  []byte // of the Halt
}

// A Send is a task that an update asks for.
type Send struct {
	To   string
	Over []Patch // what it alone sees
}

func (u *TaskUpdate) walk(c *coder) {
	c.patches(&u.Writes)
	c.flag(&u.Goes)
	c.texts(&u.Goto)
	c.flag(&u.Sends)
	sizeList(c, &u.Send)
	for i := range u.Send {
		c.text(&u.Send[i].To)
		c.patches(&u.Send[i].Over)
	}
	c.text(&u.Failed)
	if c.flag(&u.Halted); u.Halted {
		c.lastValue(&u.Value)
		return
	}
	if given := u.Failed != ""; c.hasOptional(&given) {
		c.text(&u.Reason)
	}
}

// Encode returns the update as records hold it.
func (u *TaskUpdate) Encode() []byte {
	size := 32 + len(u.Failed) + len(u.Value)
	for _, p := range u.Writes {
		size += len(p.Key) + len(p.Value) + 8
	}
	c := coder{mode: writing, out: make([]byte, 0, size)}
	u.walk(&c)
	return c.out
}

// Decode reads what Encode has written. Values alias b.
func (u *TaskUpdate) Decode(b []byte) error {
	c := coder{Reader: wire.Reader{Rest: b}}
	u.walk(&c)
	return c.Err
}

// lastUpdate goes through an update that is the rest of the part: reading leaves it encoded.
func (c *coder) lastUpdate(p *[]byte) {
	if c.mode != rewriting {
		c.lastValue(p)
		return
	}
	u := TaskUpdate{}
	u.walk(c)
}

// nilIfEmpty returns b, or nil if it is empty.
func nilIfEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
