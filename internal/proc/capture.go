package proc

import (
	"fmt"
	"io"
)

// A capture keeps the beginning and the end of what is written to it, at most limit bytes in total. Memory grows with what is written,
// not with the limit. It is not safe for concurrent use.
type capture struct {
	limit int
	watch io.Writer // gets everything first; may be nil
	total int64
	head  []byte // the first limit/2 bytes
	tail  []byte // a ring of the last limit-limit/2 bytes
	next  int    // offset in the full ring of the next write, which is also its oldest byte
}

// Write keeps as much as there is room for. It never fails, so that the writer's pipe is always drained.
func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if c.watch != nil {
		c.watch.Write(p)
	}
	c.total += int64(n)
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

// droppedBytes returns the number of bytes between the beginning and the end that were not kept.
func (c *capture) droppedBytes() int64 {
	return c.total - int64(len(c.head)+len(c.tail))
}

// joinedOutput returns what was kept, with a line that replaces what was not.
func (c *capture) joinedOutput() []byte {
	if len(c.tail) == 0 {
		return c.head
	}
	out := c.head
	if n := c.droppedBytes(); n > 0 {
		out = fmt.Appendf(out, "\n[... %d bytes left out ...]\n", n)
	}
	out = append(out, c.tail[c.next:]...)
	return append(out, c.tail[:c.next]...)
}
