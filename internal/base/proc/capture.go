package proc

import (
	"fmt"
	"io"
	"slices"
)

// A Capture keeps the beginning and the end of what is written to it, at most limit bytes in total. Memory grows with
// what is written, not with the limit. It is not safe for concurrent use.
type Capture struct {
	limit int
	watch io.Writer // gets everything first; may be nil
	most  int64     // more bytes than this are too many; 0: no number is
	over  func()    // called with each piece of too many bytes
	total int64
	head  []byte // the first limit/2 bytes
	tail  []byte // a ring of the last limit-limit/2 bytes
	next  int    // offset in the full ring of the next write, which is also its oldest byte
}

// NewCapture returns a Capture that keeps at most limit bytes.
func NewCapture(limit int) *Capture { return &Capture{limit: limit} }

// MakeEmpty returns an empty Capture with the same limit.
func (c *Capture) MakeEmpty() *Capture { return NewCapture(c.limit) }

// Write keeps as much as there is room for. It never fails, so that the writer's pipe is always drained.
func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.watch != nil {
		c.watch.Write(p)
	}
	c.total += int64(n)
	if c.most > 0 && c.total > c.most {
		c.over()
	}
	if room := c.limit/2 - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	size := c.limit - c.limit/2
	if room := size - len(c.tail); room > 0 {
		k := min(room, len(p))
		c.tail = append(c.tail, p[:k]...)
		p = p[k:]
	}
	if len(p) > size {
		p = p[len(p)-size:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % size
		p = p[k:]
	}
	return n, nil
}

// CountBytes returns the number of bytes that were written.
func (c *Capture) CountBytes() int64 { return c.total }

// CountDropped returns the number of bytes between the beginning and the end that were not kept.
func (c *Capture) CountDropped() int64 {
	return c.total - int64(len(c.head)+len(c.tail))
}

// KeptBytes returns what was kept, with a line that replaces what was not. Later writes do not change it.
func (c *Capture) KeptBytes() []byte {
	out := slices.Clip(c.head)
	if len(c.tail) == 0 {
		return out
	}
	if n := c.CountDropped(); n > 0 {
		out = fmt.Appendf(out, "\n[... %d bytes left out ...]\n", n)
	}
	out = append(out, c.tail[c.next:]...)
	return append(out, c.tail[:c.next]...)
}
