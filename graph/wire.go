package graph

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Records are written with putInt, putString and similar functions, and read with a
// reader: lengths before bytes, unsigned varints, nothing self-describing.

func putInt(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func appendVarint(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

func putString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func putStrings(b []byte, ss []string) []byte {
	b = putInt(b, len(ss))
	for _, s := range ss {
		b = putString(b, s)
	}
	return b
}

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// reader reads a record. It keeps the first error; every read after it returns zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) markDamaged(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("damaged record: %s", what)
	}
	r.b = nil
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.markDamaged("it ends early")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) bool() bool { return r.byte() != 0 }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.markDamaged("a number is cut off")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.markDamaged("a number is cut off")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) float() float64 {
	if len(r.b) < 8 {
		r.markDamaged("a number is cut off")
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(r.b))
	r.b = r.b[8:]
	return f
}

// int reads a number that fits an int.
func (r *reader) int() int {
	v := r.uvarint()
	if v > math.MaxInt32 {
		r.markDamaged("a number is too large")
		return 0
	}
	return int(v)
}

// count reads the length of a list whose elements take at least a byte each.
func (r *reader) count() int {
	n := r.int()
	if n > len(r.b) {
		r.markDamaged("a list is longer than its record")
		return 0
	}
	return n
}

// bytes reads bytes. The result aliases the record.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.markDamaged("a value is cut off")
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) string() string { return string(r.bytes()) }

func (r *reader) strings() []string {
	n := r.count()
	if n == 0 {
		return nil
	}
	ss := make([]string, n)
	for i := range ss {
		ss[i] = r.string()
	}
	return ss
}
