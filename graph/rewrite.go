package graph

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// RewriteRecord returns a record of a thread in which every text is replaced by what change returns for it: names, prompts,
// reasons, and values as they are stored, most of them JSON. It has a new checksum. change must return the same text for the
// same text, so that what names each other still does. Numbers, times and the kind stay as they are. With a change that changes
// nothing, the record has the same bytes.
//
// It fails for a record that is damaged or of an unknown kind, and if change would change a value whose form is known only to
// the program that wrote it.
func RewriteRecord(thread string, r Record, change func([]byte) []byte) (Record, error) {
	h, d := &rewriter{Reader: wire.Reader{Rest: r.Head}, change: change}, &rewriter{Reader: wire.Reader{Rest: r.Data}, change: change}
	fail := func(err error) (Record, error) {
		return r, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
	}
	if !rewriteParts(r.Kind, h, d) {
		return fail(errors.New("a record of unknown kind: written by a newer version?"))
	}
	if err := cmp.Or(h.Err, d.Err, h.opaque, d.opaque); err != nil {
		return fail(err)
	}
	r.Head, r.Data = h.out, d.out
	list := []Record{r}
	c := newChecker(thread)
	c.setChecksums(r.Seq-1, list)
	return list[0], nil
}

// rewriteParts rewrites the head and the data of a record. It returns false for an unknown kind.
func rewriteParts(k Kind, h, d *rewriter) bool {
	switch k {
	case KindStart:
		h.texts(3)
		h.begin(d)
		d.repeat(func() { d.text(); d.value(); d.text() }) // answers given ahead
		d.value()                                          // of the caller
		h.rest()
	case KindClaim:
		h.text()
		if len(h.Rest) > 0 {
			h.text()
			h.repeat(func() { h.texts(2) })
		}
		if len(d.Rest) > 0 {
			d.patches()
		}
	case KindCall:
		h.text()
		h.begin(d)
		h.rest()
	case KindIntent, KindEffect, KindFailure:
		h.texts(2)
		d.restValue()
	case KindTask:
		h.texts(2)
		d.update()
	case KindVoid:
		h.text()
		h.repeat(h.text)
	case KindStep:
		h.text()
		d.patches()
		h.frontier(d)
		if h.bool() {
			d.value()
		}
		h.rest()
	case KindReturn:
		h.text()
		h.rest()
	case KindQuestion:
		h.texts(3)
		d.question()
	case KindAnswer:
		h.texts(2)
		h.int()
		h.text()
		d.restValue()
	case KindEdit:
		h.editHead()
		d.patches()
		if len(d.Rest) > 0 {
			d.nextNodes()
		}
	case KindEnd:
		h.endHead(d)
	case KindSnapshot, KindFork:
		h.snapshotHead()
		d.snapshot()
	default:
		return false
	}
	return true
}

// A rewriter reads a part of a record and writes it with other texts.
type rewriter struct {
	wire.Reader
	out    []byte
	change func([]byte) []byte
	opaque error // a value would change whose form is not known
}

func (w *rewriter) int() int {
	n := w.Int()
	w.out = wire.PutInt(w.out, n)
	return n
}

func (w *rewriter) varint() { w.out = wire.PutVarint(w.out, w.Varint()) }

func (w *rewriter) bool() bool { return w.byte() != 0 }

func (w *rewriter) byte() byte {
	c := w.Byte()
	if w.Err == nil {
		w.out = append(w.out, c)
	}
	return c
}

func (w *rewriter) text() { w.out = wire.PutString(w.out, w.change(w.Bytes())) }

func (w *rewriter) texts(n int) {
	for range n {
		w.text()
	}
}

// repeat copies the length of a list and rewrites its elements.
func (w *rewriter) repeat(element func()) {
	n := w.Count()
	w.out = wire.PutInt(w.out, n)
	for i := 0; i < n && w.Err == nil; i++ {
		element()
	}
}

// rest copies what is left: numbers that older records do not have.
func (w *rewriter) rest() {
	w.out = append(w.out, w.Rest...)
	w.Rest = nil
}

// value rewrites a stored value.
func (w *rewriter) value() { w.out = wire.PutString(w.out, w.changeValue(w.Bytes())) }

// restValue rewrites a value that is the rest of the part.
func (w *rewriter) restValue() {
	w.out = append(w.out, w.changeValue(w.Rest)...)
	w.Rest = nil
}

// nested rewrites a value that has parts of its own.
func (w *rewriter) nested(parts func(in *rewriter)) {
	in := &rewriter{Reader: wire.Reader{Rest: w.Bytes()}, change: w.change}
	parts(in)
	w.Err, w.opaque = cmp.Or(w.Err, in.Err), cmp.Or(w.opaque, in.opaque)
	w.out = wire.PutString(w.out, in.out)
}

// changeValue returns the new form of a stored value. Of a value that only the program that wrote it can read, nothing may
// change.
func (w *rewriter) changeValue(b []byte) []byte {
	out, ok := value.Rewrite(b, w.change)
	if !ok && !bytes.Equal(w.change(b), b) {
		w.opaque = errOpaque
	}
	return out
}

var errOpaque = errors.New("a text must be replaced in a value whose form is known only to the program that wrote it")

func (w *rewriter) patch() {
	w.text()
	w.int()
	w.value()
}

func (w *rewriter) patches() { w.repeat(w.patch) }

// begin rewrites what KindStart and KindCall share.
func (w *rewriter) begin(d *rewriter) {
	w.text()
	w.repeat(func() { w.texts(2) })
	d.patches()
	w.frontier(d)
}

// frontier rewrites what putFrontier wrote.
func (w *rewriter) frontier(d *rewriter) {
	tasks := 0
	w.repeat(func() {
		tasks++
		w.text()
		w.int()
		w.text()
	})
	w.repeat(func() { w.texts(2) })
	for i := 0; i < tasks && d.Err == nil; i++ {
		d.patches()
	}
}

// update rewrites what putUpdate wrote.
func (w *rewriter) update() {
	w.patches()
	w.bool()
	w.repeat(w.text)
	w.bool()
	w.repeat(func() {
		w.text()
		w.patches()
	})
	w.text()
	if w.bool() {
		w.restValue()
	}
}

func (w *rewriter) question() {
	w.texts(6)
	w.repeat(w.text)
	w.bool()
	w.value()
	if len(w.Rest) > 0 {
		w.texts(2)
	}
}

// runStatus rewrites what appendRunStatus wrote.
func (w *rewriter) runStatus() {
	w.byte()
	w.text()
	w.repeat(func() { w.texts(2) })
}

// position rewrites what appendPosition wrote.
func (w *rewriter) position() {
	if len(w.Rest) > 0 {
		w.int()
		w.repeat(w.text)
	}
}

// summary rewrites what appendSummary wrote.
func (w *rewriter) summary() {
	if len(w.Rest) > 0 {
		w.texts(2)
		w.varint()
	}
}

func (w *rewriter) editHead() {
	w.texts(3)
	w.runStatus()
	w.position()
	if len(w.Rest) > 0 {
		w.repeat(w.text)
	}
	w.summary()
	if len(w.Rest) > 0 {
		w.repeat(func() { w.texts(2) })
	}
}

// nextNodes rewrites what putNext wrote.
func (w *rewriter) nextNodes() {
	h := &rewriter{Reader: wire.Reader{Rest: w.Bytes()}, change: w.change}
	d := &rewriter{Reader: wire.Reader{Rest: w.Bytes()}, change: w.change}
	h.frontier(d)
	w.Err, w.opaque = cmp.Or(w.Err, h.Err, d.Err), cmp.Or(w.opaque, d.opaque)
	w.out = wire.PutString(wire.PutString(w.out, h.out), d.out)
}

func (w *rewriter) endHead(d *rewriter) {
	w.byte()
	w.text()
	if w.bool() {
		d.value()
	}
	w.text()
	w.repeat(func() { w.texts(2) })
	if len(w.Rest) > 0 {
		w.repeat(func() {
			w.text()
			w.int()
		})
	}
	w.summary()
}

func (w *rewriter) snapshotHead() {
	w.texts(3)
	w.varint()
	if len(w.Rest) == 0 {
		return
	}
	w.runStatus()
	w.text()
	w.varint()
	w.position()
}

// snapshot rewrites what replay.encode wrote.
func (w *rewriter) snapshot() {
	w.texts(3)
	w.byte()
	w.varint()
	w.text()
	w.value()
	w.int()
	w.value() // of the caller
	w.repeat(func() {
		w.text()
		w.value()
		w.text()
		w.bool()
	})
	w.counts()
	w.varint()
	w.bool()
	w.repeat(func() {
		w.text()
		w.frame()
	})
	if len(w.Rest) > 0 {
		w.texts(2)
		w.varint()
	}
	if len(w.Rest) > 0 {
		w.counts()
		w.rest()
	}
}

// counts rewrites a map of numbers.
func (w *rewriter) counts() {
	w.repeat(func() {
		w.text()
		w.int()
	})
}

// frame rewrites what rawFrame.encode wrote.
func (w *rewriter) frame() {
	w.text()
	w.int()
	w.int()
	w.repeat(func() {
		w.text()
		w.patches()
	})
	w.repeat(func() { w.texts(2) })
	w.frontier(w)
	w.counts()
	w.bool()
	w.bool()
	w.value()
	w.varint()
	w.repeat(func() {
		w.text()
		w.nested((*rewriter).update)
	})
	for range 2 { // effects and their notes
		w.repeat(func() {
			w.text()
			w.value()
		})
	}
	w.repeat(func() {
		w.texts(2)
		w.nested((*rewriter).question)
		w.int()
		w.value()
		w.text()
	})
}
