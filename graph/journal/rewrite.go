package journal

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
// It fails for a record that is damaged or of an unknown kind (ErrNewer), and if change would change a value whose form is known only to
// the program that wrote it.
func RewriteRecord(thread string, r Record, change func([]byte) []byte) (Record, error) {
	h, d := &rewriter{Reader: wire.Reader{Rest: r.Head}, change: change}, &rewriter{Reader: wire.Reader{Rest: r.Data}, change: change}
	fail := func(err error) (Record, error) {
		return r, fmt.Errorf("thread %s, record %d (%s): %w", thread, r.Seq, r.Kind, err)
	}
	if !rewriteParts(r.Kind, h, d) {
		return fail(ErrNewer)
	}
	if err := cmp.Or(h.Err, d.Err, h.opaque, d.opaque); err != nil {
		return fail(err)
	}
	if len(h.Rest)+len(d.Rest) > 0 {
		return fail(fmt.Errorf("it has more parts than this version knows: %w", ErrNewer))
	}
	r.Head, r.Data = h.out, d.out
	list := []Record{r}
	c := NewChecksums(thread)
	c.Set(r.Seq-1, list)
	return list[0], nil
}

// rewriteParts rewrites the head and the data of a record. It returns false for an unknown kind.
func rewriteParts(k Kind, h, d *rewriter) bool {
	switch k {
	case KindStart:
		h.rewriteTexts(3)
		h.rewriteBegin(d)
		d.rewriteEach(func() { d.rewriteText(); d.rewriteValue(); d.rewriteText() }) // answers given ahead
		d.rewriteValue()                                                             // of the caller
		d.rewriteName()                                                              // the user
		d.rewriteName()                                                              // the structure of the graph
		h.copyRest()
	case KindClaim:
		h.rewriteText()
		if len(h.Rest) > 0 {
			h.rewriteText()
			h.rewriteEach(func() { h.rewriteTexts(2) })
		}
		if len(d.Rest) > 0 {
			d.rewritePatches()
		}
		if len(d.Rest) > 0 {
			d.rewriteValue() // of the caller
			d.rewriteName()  // the structure of the graph
		}
	case KindCall:
		h.rewriteText()
		h.rewriteBegin(d)
		h.copyRest()
	case KindIntent, KindEffect, KindFailure:
		h.rewriteTexts(2)
		d.rewriteLastValue()
	case KindTask:
		h.rewriteTexts(2)
		d.rewriteUpdate()
	case KindVoid:
		h.rewriteText()
		h.rewriteEach(h.rewriteText)
	case KindStep:
		h.rewriteText()
		d.rewritePatches()
		h.rewriteFrontier(d)
		if h.copyBool() {
			d.rewriteValue()
		}
		h.copyRest()
	case KindReturn:
		h.rewriteText()
		h.copyRest()
	case KindQuestion:
		h.rewriteTexts(3)
		d.rewriteQuestion()
	case KindAnswer:
		h.rewriteTexts(2)
		h.copyInt()
		h.rewriteText()
		h.rewriteName()
		d.rewriteLastValue()
	case KindEdit:
		h.rewriteEditHead()
		h.rewriteName()
		d.rewritePatches()
		if len(d.Rest) > 0 {
			d.rewriteNextNodes()
		}
	case KindEnd:
		h.rewriteEndHead(d)
		h.rewriteName()
	case KindSnapshot, KindFork:
		h.rewriteSnapshotHead()
		h.rewriteName()
		d.rewriteSnapshot()
		d.rewriteName() // the user
		d.rewriteName() // the structure of the graph
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

func (w *rewriter) copyInt() int {
	n := w.Int()
	w.out = wire.PutInt(w.out, n)
	return n
}

func (w *rewriter) copyVarint() { w.out = wire.PutVarint(w.out, w.Varint()) }

func (w *rewriter) copyBool() bool { return w.copyByte() != 0 }

func (w *rewriter) copyByte() byte {
	c := w.Byte()
	if w.Err == nil {
		w.out = append(w.out, c)
	}
	return c
}

func (w *rewriter) rewriteText() { w.out = wire.PutString(w.out, w.change(w.Bytes())) }

func (w *rewriter) rewriteTexts(n int) {
	for range n {
		w.rewriteText()
	}
}

// rewriteEach copies the length of a list and rewrites its elements.
func (w *rewriter) rewriteEach(element func()) {
	n := w.Count()
	w.out = wire.PutInt(w.out, n)
	for i := 0; i < n && w.Err == nil; i++ {
		element()
	}
}

// copyRest copies what is left: numbers that older records do not have.
func (w *rewriter) copyRest() {
	w.out = append(w.out, w.Rest...)
	w.Rest = nil
}

// rewriteValue rewrites a stored value.
func (w *rewriter) rewriteValue() { w.out = wire.PutString(w.out, w.changeValue(w.Bytes())) }

// rewriteLastValue rewrites a value that is the rest of the part.
func (w *rewriter) rewriteLastValue() {
	w.out = append(w.out, w.changeValue(w.Rest)...)
	w.Rest = nil
}

// rewriteNested rewrites a value that has parts of its own.
func (w *rewriter) rewriteNested(parts func(in *rewriter)) {
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

// rewriteName rewrites a text at the end that not every record has.
func (w *rewriter) rewriteName() {
	if len(w.Rest) > 0 {
		w.rewriteText()
	}
}

func (w *rewriter) rewritePatch() {
	w.rewriteText()
	w.copyInt()
	w.rewriteValue()
}

func (w *rewriter) rewritePatches() { w.rewriteEach(w.rewritePatch) }

// rewriteBegin rewrites what KindStart and KindCall share.
func (w *rewriter) rewriteBegin(d *rewriter) {
	w.rewriteText()
	w.rewriteEach(func() { w.rewriteTexts(2) })
	d.rewritePatches()
	w.rewriteFrontier(d)
}

// rewriteFrontier rewrites what putFrontier wrote.
func (w *rewriter) rewriteFrontier(d *rewriter) {
	tasks := 0
	w.rewriteEach(func() {
		tasks++
		w.rewriteText()
		w.copyInt()
		w.rewriteText()
	})
	w.rewriteEach(func() { w.rewriteTexts(2) })
	for i := 0; i < tasks && d.Err == nil; i++ {
		d.rewritePatches()
	}
}

// rewriteUpdate rewrites what putUpdate wrote.
func (w *rewriter) rewriteUpdate() {
	w.rewritePatches()
	w.copyBool()
	w.rewriteEach(w.rewriteText)
	w.copyBool()
	w.rewriteEach(func() {
		w.rewriteText()
		w.rewritePatches()
	})
	w.rewriteText()
	if w.copyBool() {
		w.rewriteLastValue()
	}
}

func (w *rewriter) rewriteQuestion() {
	w.rewriteTexts(6)
	w.rewriteEach(w.rewriteText)
	w.copyBool()
	w.rewriteValue()
	if len(w.Rest) > 0 {
		w.rewriteTexts(2)
	}
}

// rewriteStatus rewrites what appendRunStatus wrote.
func (w *rewriter) rewriteStatus() {
	w.copyByte()
	w.rewriteText()
	w.rewriteEach(func() { w.rewriteTexts(2) })
}

// rewritePosition rewrites what appendPosition wrote.
func (w *rewriter) rewritePosition() {
	if len(w.Rest) > 0 {
		w.copyInt()
		w.rewriteEach(w.rewriteText)
	}
}

// rewriteSummary rewrites what appendSummary wrote.
func (w *rewriter) rewriteSummary() {
	if len(w.Rest) > 0 {
		w.rewriteTexts(2)
		w.copyVarint()
	}
}

func (w *rewriter) rewriteEditHead() {
	w.rewriteTexts(3)
	w.rewriteStatus()
	w.rewritePosition()
	if len(w.Rest) > 0 {
		w.rewriteEach(w.rewriteText)
	}
	w.rewriteSummary()
	if len(w.Rest) > 0 {
		w.rewriteEach(func() { w.rewriteTexts(2) })
	}
}

// rewriteNextNodes rewrites what putNext wrote.
func (w *rewriter) rewriteNextNodes() {
	h := &rewriter{Reader: wire.Reader{Rest: w.Bytes()}, change: w.change}
	d := &rewriter{Reader: wire.Reader{Rest: w.Bytes()}, change: w.change}
	h.rewriteFrontier(d)
	w.Err, w.opaque = cmp.Or(w.Err, h.Err, d.Err), cmp.Or(w.opaque, d.opaque)
	w.out = wire.PutString(wire.PutString(w.out, h.out), d.out)
}

func (w *rewriter) rewriteEndHead(d *rewriter) {
	w.copyByte()
	w.rewriteText()
	if w.copyBool() {
		d.rewriteValue()
	}
	w.rewriteText()
	w.rewriteEach(func() { w.rewriteTexts(2) })
	if len(w.Rest) > 0 {
		w.rewriteEach(func() {
			w.rewriteText()
			w.copyInt()
		})
	}
	w.rewriteSummary()
}

func (w *rewriter) rewriteSnapshotHead() {
	w.rewriteTexts(3)
	w.copyVarint()
	if len(w.Rest) == 0 {
		return
	}
	w.rewriteStatus()
	w.rewriteText()
	w.copyVarint()
	w.rewritePosition()
}

// rewriteSnapshot rewrites the data of a snapshot.
func (w *rewriter) rewriteSnapshot() {
	w.rewriteTexts(3)
	w.copyByte()
	w.copyVarint()
	w.rewriteText()
	w.rewriteValue()
	w.copyInt()
	w.rewriteValue() // of the caller
	w.rewriteEach(func() {
		w.rewriteText()
		w.rewriteValue()
		w.rewriteText()
		w.copyBool()
	})
	w.rewriteCounts()
	w.copyVarint()
	w.copyBool()
	w.rewriteEach(func() {
		w.rewriteText()
		w.rewriteFrame()
	})
	if len(w.Rest) > 0 {
		w.rewriteTexts(2)
		w.copyVarint()
	}
	if len(w.Rest) > 0 {
		w.rewriteCounts()
		w.copyHashes()
	}
}

// copyHashes copies what putHashes wrote.
func (w *rewriter) copyHashes() { w.out = wire.PutHashes(w.out, w.Hashes()) }

// rewriteCounts rewrites a map of numbers.
func (w *rewriter) rewriteCounts() {
	w.rewriteEach(func() {
		w.rewriteText()
		w.copyInt()
	})
}

// rewriteFrame rewrites a frame of a snapshot.
func (w *rewriter) rewriteFrame() {
	w.rewriteText()
	w.copyInt()
	w.copyInt()
	w.rewriteEach(func() {
		w.rewriteText()
		w.rewritePatches()
	})
	w.rewriteEach(func() { w.rewriteTexts(2) })
	w.rewriteFrontier(w)
	w.rewriteCounts()
	w.copyBool()
	w.copyBool()
	w.rewriteValue()
	w.copyVarint()
	w.rewriteEach(func() {
		w.rewriteText()
		w.rewriteNested((*rewriter).rewriteUpdate)
	})
	for range 2 { // effects and their notes
		w.rewriteEach(func() {
			w.rewriteText()
			w.rewriteValue()
		})
	}
	w.rewriteEach(func() {
		w.rewriteTexts(2)
		w.rewriteNested((*rewriter).rewriteQuestion)
		w.copyInt()
		w.rewriteValue()
		w.rewriteText()
	})
}
