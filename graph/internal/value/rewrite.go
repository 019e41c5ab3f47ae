package value

import (
	"raddle.dev/graph/internal/wire"
)

// Rewrite returns the stored form of a value with other texts: change gets every text of a dynamic value, and otherwise
// the whole value. ok is false if the value holds something whose form only the program that wrote it knows; then it is
// returned as it is.
func Rewrite(b []byte, change func([]byte) []byte) (out []byte, ok bool) {
	if len(b) == 0 {
		return b, true
	}
	if b[0] == mixedMark {
		return b, false
	}
	w := &rewriter{valueReader: valueReader{wire.Reader{Rest: b}}, change: change}
	w.rewrite(0)
	switch {
	case w.opaque:
		return b, false
	case w.Err != nil || len(w.Rest) > 0: // a text, or JSON
		return change(b), true
	}
	return w.out, true
}

// A rewriter copies a dynamic value with other texts.
type rewriter struct {
	valueReader
	out    []byte
	change func([]byte) []byte
	opaque bool
}

func (w *rewriter) rewrite(depth int) {
	if depth > deepest {
		w.MarkDamaged("nested too deep")
		return
	}
	c := w.Byte()
	w.out = append(w.out, c)
	switch c {
	case dynNil, dynTrue, dynFalse:
	case dynInt, dynInt64:
		w.out = wire.PutVarint(w.out, w.Varint())
	case dynUint64:
		w.copyBytes(func() { w.Uvarint() })
	case dynFloat:
		w.copyBytes(func() { w.Float() })
	case dynString, dynBytes, dynTime:
		w.rewriteText()
	case dynList, dynMap:
		n := w.Count()
		w.out = wire.PutInt(w.out, n)
		for i := 0; i < n && w.Err == nil && !w.opaque; i++ {
			if c == dynMap {
				w.rewriteText()
			}
			w.rewrite(depth + 1)
		}
	case dynNamed:
		w.out = wire.PutString(w.out, w.Bytes())
		j := w.Bytes()
		w.opaque = w.opaque || len(j) > 0 && j[0] == mixedMark
		w.out = wire.PutString(w.out, w.change(j))
	case dynTyped:
		_, err := parseType(w.Text(), 0)
		w.opaque = w.opaque || w.Err == nil && err == nil
		w.MarkDamaged("a value of a type that is not known here")
	default:
		w.MarkDamaged("a value of unknown type")
	}
}

func (w *rewriter) rewriteText() { w.out = wire.PutString(w.out, w.change(w.Bytes())) }

// copyBytes copies what read reads.
func (w *rewriter) copyBytes(read func()) {
	was := w.Rest
	read()
	if w.Err == nil {
		w.out = append(w.out, was[:len(was)-len(w.Rest)]...)
	}
}
