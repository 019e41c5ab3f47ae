// Package record is the one description of what the records of a journal hold: for each kind, which parts
// its head and its data have, in which order, and which of them older versions did not write. The same
// description reads records, writes them, and rewrites their texts; package fold, package history and the
// engine work with the fields of a [Parts] only.
//
// A part that a new version adds stands at the end of the head or of the data, so that records of all versions
// are read: they only end at different places.
//
// Size: Parts has a field for whatever some kind has, so that a kind is a list of them and no type of its own.
package record

import (
	"cmp"
	"errors"
)

// The kinds, with the numbers of those of package journal.
const (
	start uint8 = 1 + iota
	claim
	call
	intent
	effect
	task
	step
	returned
	question
	answer
	edit
	fork
	end
	snapshot
	failure
	void
)

// Parts are what a record holds: a kind has the fields that walkHead and walkData name for it, and the
// others are zero. Values that were read alias the record.
type Parts struct {
	// Path is that of the frame that the record is about; "": the root.
	Path string

	// Run, Label, Graph and Started say which run it is. Named reports that an end or edit has the last three.
	Run     string
	Label   string
	Graph   string
	Started int64
	Named   bool

	// Status, Reason and Open say how the run stands, with the questions that are open: ID and Prompt only.
	Status Status
	Reason string
	Open   []Question

	// Origin is, for a snapshot or fork, what the thread was forked from.
	Origin Origin

	// NewGraph reports that a claim has Digest and Tags, and NewStart that it has Meta and Shape; then it has Patches,
	// too.
	NewGraph bool
	NewStart bool

	// Digest is that of the graph. Tags are those of its keys; of an edit, of the keys that got another type.
	Digest string
	Tags   []Tag

	// Tasks and Arrived are what runs next. Chosen reports that an edit has them.
	Tasks   []Task
	Arrived []Arrival
	Chosen  bool

	// Step is the number of steps that the frame has done, and Next, of records without Tasks, are the nodes that run
	// next.
	Step int
	Next []string

	// Failures are those of the tasks of a step that their nodes handle, and those that ended a path in their children.
	Failures []Failure

	// Streamed reports, when writing, that PutPatchCount and PutPatch have put Patches into the buffer for the data
	// already.
	Streamed bool

	// Patches are the writes, and Keys the names of the keys that an edit writes.
	Patches []Patch
	Keys    []string

	// Halted reports that the run or graph has ended with a Halt, and Value is the value of it, that of an effect, the
	// answer to a question as JSON, or for a task what TaskUpdate.Decode reads.
	Halted bool
	Value  []byte

	// Timing is, for an effect that ended in the drive that made it and for its failure, how long it took; zero: earlier
	// versions did not write it.
	Timing Timing

	// ID is that of an effect, a task, or a question within its frame, and Void those of the tasks of a void.
	ID   string
	Void []string

	// Dropped reports, for a return, that the child was dropped before its end.
	Dropped bool

	// Base is the name of a question without its number in the run, and Question the question.
	Base     string
	Question *Question

	// Ahead is the place, from 1, of the answer given ahead; 0: the answer was given to the question. Refused says why
	// there is none.
	Ahead   int
	Refused string

	// Branch is, for an edit, that of the effects after it.
	Branch string

	// Broken are, for an end, the steps that the drive stopped before, by frame.
	Broken map[string]int

	// Answers are those given with a start, Meta, User and Shape what its caller has attached, and the structure of the
	// graph.
	Answers []PresetAnswer
	Meta    []byte
	User    string
	Shape   []byte

	// State is that of a snapshot or fork, or the one to which an edit with Chosen has migrated the thread; nil: it has not.
	State *ThreadState

	// By is the name of who answered, edited, forked or abandoned; "": no name was given.
	By string

	// Due is, in Unix microseconds, when the time has come for an answer that time has given, and for an end or
	// snapshot of a run that waits, when it will come next; 0: the answer came from elsewhere, nothing waits for a time.
	Due int64
}

// walkHead names the parts of a head, in their order.
func (b *Parts) walkHead(kind uint8, h *coder) {
	switch kind {
	case start:
		b.walkRun(h)
		b.walkGraph(h)
		b.walkFrontier(h)
		if h.hasNext() {
			h.int(&b.Step)
		}
	case claim:
		h.text(&b.Run)
		if h.hasOptional(&b.NewGraph) {
			b.walkGraph(h)
		}
	case call:
		h.text(&b.Path)
		b.walkGraph(h)
		b.walkFrontier(h)
		if h.hasNext() {
			h.int(&b.Step)
		}
	case intent, task:
		h.text(&b.Path)
		h.text(&b.ID)
	case effect, failure:
		h.text(&b.Path)
		h.text(&b.ID)
		if given := b.Timing != (Timing{}); h.hasOptional(&given) {
			b.Timing.walk(h)
		}
	case step:
		h.text(&b.Path)
		b.walkFrontier(h)
		h.flag(&b.Halted)
		if h.hasNext() {
			h.int(&b.Step)
		}
		if given := len(b.Failures) > 0; h.hasOptional(&given) {
			h.failures(&b.Failures)
		}
	case returned:
		h.text(&b.Path)
		if h.hasOptional(&b.Dropped) {
			h.flag(&b.Dropped)
		}
	case question:
		h.text(&b.Path)
		h.text(&b.ID)
		h.text(&b.Base)
	case answer:
		h.text(&b.Path)
		h.text(&b.ID)
		h.int(&b.Ahead)
		h.text(&b.Refused)
		h.lastTextAndTime(&b.By, &b.Due)
	case edit:
		b.walkEdit(h)
	case end:
		b.walkEnd(h)
	case snapshot, fork:
		b.walkSnapshot(h)
	case void:
		h.text(&b.Path)
		h.texts(&b.Void)
	}
}

// walkData names the parts of the data, in their order. The head goes first: it says how many tasks there are.
func (b *Parts) walkData(kind uint8, d *coder) {
	switch kind {
	case start:
		b.walkPatches(d)
		d.overlays(b.Tasks)
		b.walkAnswers(d)
		d.value(&b.Meta)
		d.userAndShape(&b.User, &b.Shape, false)
	case claim:
		written := len(b.Patches) > 0 || b.Streamed || b.NewStart
		if !d.hasOptional(&written) {
			return
		}
		b.walkPatches(d)
		if d.hasOptional(&b.NewStart) {
			d.value(&b.Meta)
			if d.hasNext() {
				d.blob(&b.Shape)
			}
		}
	case call:
		b.walkPatches(d)
		d.overlays(b.Tasks)
	case intent, effect, failure, answer:
		d.lastValue(&b.Value)
	case task:
		d.lastUpdate(&b.Value)
	case step:
		b.walkPatches(d)
		d.overlays(b.Tasks)
		if b.Halted {
			d.value(&b.Value)
		}
	case question:
		if d.mode != writing {
			b.Question = &Question{}
		}
		b.Question.walk(d)
	case edit:
		b.walkPatches(d)
		if d.hasOptional(&b.Chosen) {
			b.walkChosen(d)
		}
		if given := b.State != nil; b.Chosen && d.hasOptional(&given) {
			b.walkState(d)
		}
	case end:
		if b.Halted {
			d.value(&b.Value)
		}
	case snapshot, fork:
		b.walkState(d)
	}
}

// walkState names the whole fold, which is the rest of the data.
func (b *Parts) walkState(d *coder) {
	if d.mode != writing {
		b.State = &ThreadState{}
	}
	c := *d // a copy, because the functions of walkMap would otherwise move each coder to the heap
	b.State.walk(&c)
	*d = c
}

func (b *Parts) walkPatches(d *coder) {
	if d.mode != writing || !b.Streamed {
		d.patches(&b.Patches)
	}
}

func (b *Parts) walkRun(h *coder) {
	h.text(&b.Run)
	h.text(&b.Label)
	h.text(&b.Graph)
}

// walkGraph names the parts that say which graph runs.
func (b *Parts) walkGraph(h *coder) {
	h.text(&b.Digest)
	h.tags(&b.Tags)
}

// walkFrontier names what runs next. The overlays of the tasks are in the data.
func (b *Parts) walkFrontier(h *coder) {
	h.tasks(&b.Tasks)
	h.arrivals(&b.Arrived)
}

// walkStatus names how the run stands, for listings.
func (b *Parts) walkStatus(h *coder) {
	h.byte((*byte)(&b.Status))
	h.text(&b.Reason)
	h.openQuestions(&b.Open)
}

// walkSummary names the last part of the heads of ends and edits: what a listing also shows of the run.
func (b *Parts) walkSummary(h *coder) {
	if b.Named = h.hasNext(); b.Named {
		h.text(&b.Label)
		h.text(&b.Graph)
		h.varint(&b.Started)
	}
}

// walkPosition names how many steps a frame has done, and what runs next.
func (b *Parts) walkPosition(h *coder) {
	if h.hasNext() {
		h.int(&b.Step)
		h.texts(&b.Next)
	}
}

func (b *Parts) walkEdit(h *coder) {
	h.text(&b.Path)
	h.text(&b.Branch)
	if !h.hasNext() {
		return
	}
	h.text(&b.Run)
	b.walkStatus(h)
	b.walkPosition(h)
	if h.hasNext() {
		h.texts(&b.Keys)
	}
	b.walkSummary(h)
	if h.hasNext() {
		h.tags(&b.Tags)
	}
	h.lastTexts(&b.By)
}

func (b *Parts) walkEnd(h *coder) {
	h.byte((*byte)(&b.Status))
	h.text(&b.Reason)
	h.flag(&b.Halted)
	h.text(&b.Run)
	h.openQuestions(&b.Open)
	if h.hasNext() {
		h.counts(&b.Broken)
	}
	b.walkSummary(h)
	h.lastTextAndTime(&b.By, &b.Due)
}

func (b *Parts) walkSnapshot(h *coder) {
	b.walkRun(h)
	h.varint(&b.Started)
	if !h.hasNext() {
		return
	}
	b.walkStatus(h)
	b.Origin.walk(h)
	b.walkPosition(h)
	h.lastTextAndTime(&b.By, &b.Due)
}

// StartSize returns how much live state a start adds in addition to what it writes, in bytes.
func (b *Parts) StartSize() int {
	n := len(b.Meta) + len(b.User) + len(b.Shape)
	for _, a := range b.Answers {
		n += len(a.ID) + len(a.Value)
	}
	return n
}

func (b *Parts) walkAnswers(d *coder) {
	sizeList(d, &b.Answers)
	for i := range b.Answers {
		b.Answers[i].walk(d)
	}
}

// walkChosen names what an edit has chosen to run next: a frontier with its overlays, each as one value.
func (b *Parts) walkChosen(d *coder) {
	h := d.inner()
	b.walkFrontier(&h)
	d.closeInner(&h)
	own := d.inner()
	own.overlays(b.Tasks)
	d.closeInner(&own)
}

// ReadHead reads the head of a record. A kind that is not known has no fields.
func (b *Parts) ReadHead(kind uint8, head []byte) error {
	h := coder{}
	h.Rest = head
	b.walkHead(kind, &h)
	return h.Err
}

// Read reads a record. A kind that is not known has no fields.
func (b *Parts) Read(kind uint8, head, data []byte) error {
	h := coder{}
	d := coder{}
	h.Rest = head
	d.Rest = data
	b.walkHead(kind, &h)
	b.walkData(kind, &d)
	if h.Err != nil || d.Err != nil {
		return errors.Join(h.Err, d.Err)
	}
	return nil
}

// Append appends the head and the data of a record to two buffers. Data whose only part is a value aliases it
// if the buffer is nil.
func (b *Parts) Append(kind uint8, head, data []byte) (_, _ []byte) {
	h := coder{mode: writing, out: head}
	d := coder{mode: writing, out: data}
	b.walkHead(kind, &h)
	b.walkData(kind, &d)
	return h.out, d.out
}

// ErrMoreParts says that a record continues where its description ends.
var ErrMoreParts = errors.New("it has more parts than this version knows")

// Rewrite returns the head and the data of a record with what change returns for each text. Numbers and flags
// stay as they are. It fails for a damaged record, for one with ErrMoreParts, and if a value would change whose form is
// not known.
func Rewrite(kind uint8, head, data []byte, change func([]byte) []byte) (_, _ []byte, err error) {
	h := coder{mode: rewriting, change: change}
	d := coder{mode: rewriting, change: change}
	h.Rest = head
	d.Rest = data
	b := Parts{}
	b.walkHead(kind, &h)
	b.walkData(kind, &d)
	if err := cmp.Or(h.Err, d.Err, h.opaque, d.opaque); err != nil {
		return nil, nil, err
	}
	if len(h.Rest)+len(d.Rest) > 0 {
		return nil, nil, ErrMoreParts
	}
	return h.out, d.out, nil
}
