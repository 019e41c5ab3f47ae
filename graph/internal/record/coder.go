package record

import (
	"bytes"
	"cmp"
	"errors"

	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// A mode says what a coder does with the parts that a description names.
type mode uint8

// The modes.
const (
	reading mode = iota // from Rest into the fields
	writing             // from the fields into out
	// from Rest into out, each text as change returns it; of the fields only numbers, flags and the lengths of lists
	// are set
	rewriting
)

// A coder goes through one part of a record, its head or its data, in the order in which a description
// names what is in it. It keeps the first error, and then reads only zeros. It is not safe for concurrent
// use.
type coder struct {
	wire.Reader
	mode   mode
	out    []byte
	change func([]byte) []byte // when rewriting
	opaque error               // a value would change whose form is not known
}

// errOpaque says that a value cannot be rewritten.
var errOpaque = errors.New("a text must be replaced in a value whose form is known only to the program that wrote it")

// hasNext reports whether a part follows that later versions have added to the end: they always write it, and
// older records end before it.
func (c *coder) hasNext() bool { return c.mode == writing || len(c.Rest) > 0 }

// hasOptional is hasNext for a part that not every record of the newest version has: given says whether it
// is there, and is set when reading.
func (c *coder) hasOptional(given *bool) bool {
	if c.mode != writing {
		*given = len(c.Rest) > 0
	}
	return *given
}

// text goes through a text with its length.
func (c *coder) text(p *string) {
	switch c.mode {
	case reading:
		*p = c.Text()
	case writing:
		c.out = wire.PutString(c.out, *p)
	default:
		c.rewriteText()
	}
}

func (c *coder) rewriteText() { c.out = wire.PutString(c.out, c.change(c.Bytes())) }

// blob is text for bytes, which alias what is read.
func (c *coder) blob(p *[]byte) {
	switch c.mode {
	case reading:
		*p = c.Bytes()
	case writing:
		c.out = wire.PutString(c.out, *p)
	default:
		c.rewriteText()
	}
}

// value goes through a stored value with its length. It aliases what is read.
func (c *coder) value(p *[]byte) {
	if c.mode != rewriting {
		c.blob(p)
		return
	}
	c.out = wire.PutString(c.out, c.changeValue(c.Bytes()))
}

// lastValue goes through a stored value that is the rest of the part. It aliases what is read, and what is
// written aliases it if nothing stands before it.
func (c *coder) lastValue(p *[]byte) {
	switch c.mode {
	case reading:
		*p = c.Rest
	case writing:
		c.putLast(*p)
	default:
		c.putLast(c.changeValue(c.Rest))
	}
	c.Rest = nil
}

func (c *coder) putLast(b []byte) {
	if c.out == nil && len(b) > 0 {
		c.out = b
		return
	}
	c.out = append(c.out, b...)
}

// changeValue returns the new form of a stored value. Of a value that only the program that wrote it can
// read, nothing may change.
func (c *coder) changeValue(b []byte) []byte {
	out, ok := value.Rewrite(b, c.change)
	if !ok && !bytes.Equal(c.change(b), b) {
		c.opaque = errOpaque
	}
	return out
}

// int goes through a number from 0 to the largest int32.
func (c *coder) int(p *int) {
	if c.mode != writing {
		*p = c.Int()
	}
	if c.mode != reading {
		c.out = wire.PutInt(c.out, *p)
	}
}

// count goes through the length of a list whose elements take at least a byte each. n is the length when
// writing; the result is the length.
func (c *coder) count(n int) int {
	if c.mode != writing {
		n = c.Count()
	}
	if c.mode != reading {
		c.out = wire.PutInt(c.out, n)
	}
	return n
}

// varint goes through a number that may be negative.
func (c *coder) varint(p *int64) {
	if c.mode != writing {
		*p = c.Varint()
	}
	if c.mode != reading {
		c.out = wire.PutVarint(c.out, *p)
	}
}

// byte goes through one byte.
func (c *coder) byte(p *byte) {
	if c.mode != writing {
		*p = c.Byte()
	}
	if c.mode != reading && c.Err == nil {
		c.out = append(c.out, *p)
	}
}

// flag goes through one byte, 0 or 1.
func (c *coder) flag(p *bool) {
	b := byte(0)
	if *p {
		b = 1
	}
	c.byte(&b)
	*p = b != 0
}

// texts goes through a list of texts with its length; nil if it is empty.
func (c *coder) texts(p *[]string) {
	sizeList(c, p)
	for i := range *p {
		c.text(&(*p)[i])
	}
}

// lastTexts goes through texts at the end of a part; trailing empty ones take no space. What follows in a
// list with them must be empty, too, when it is written.
func (c *coder) lastTexts(list ...*string) {
	for c.mode == writing && len(list) > 0 && *list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	for _, p := range list {
		if c.mode == writing || len(c.Rest) > 0 {
			c.text(p)
		}
	}
}

// lastTextAndTime goes through a text and a time, in Unix microseconds, at the end of a part; trailing empty ones take
// no space.
func (c *coder) lastTextAndTime(text *string, micro *int64) {
	if c.mode == writing && *micro == 0 {
		c.lastTexts(text)
		return
	}
	if c.hasNext() {
		c.text(text)
	}
	if c.hasNext() {
		c.varint(micro)
	}
}

// hashes goes through a list of hashes with its length.
func (c *coder) hashes(p *[]uint64) {
	if c.mode != writing {
		*p = c.Hashes()
	}
	if c.mode != reading {
		c.out = wire.PutHashes(c.out, *p)
	}
}

// inner returns a coder for parts that stand inside a value of this part, with their length before them.
// The caller ends it with closeInner.
func (c *coder) inner() coder {
	in := coder{mode: c.mode, change: c.change}
	if c.mode != writing {
		in.Rest = c.Bytes()
	}
	return in
}

func (c *coder) closeInner(in *coder) {
	c.Err = cmp.Or(c.Err, in.Err)
	c.opaque = cmp.Or(c.opaque, in.opaque)
	if c.mode != reading {
		c.out = wire.PutString(c.out, in.out)
	}
}

// sizeList goes through the length of a list, and unless it is being written makes the list with it; nil if it is empty. The caller goes through
// its elements.
func sizeList[T any](c *coder, p *[]T) {
	n := c.count(len(*p))
	if c.mode == writing {
		return
	}
	*p = nil
	if n > 0 {
		*p = make([]T, n)
	}
}
