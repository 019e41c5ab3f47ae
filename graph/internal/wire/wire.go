// Package wire writes and reads the parts of records: lengths before bytes, unsigned
// varints, nothing self-describing. A reader must know what was written.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// PutInt appends a number from 0 to the largest int32: see Reader.Int.
func PutInt(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// PutVarint appends a number that may be negative.
func PutVarint(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

// PutString appends the length of s and s.
func PutString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// PutHashes appends the number of the hashes and the hashes.
func PutHashes(b []byte, hashes []uint64) []byte {
	b = PutInt(b, len(hashes))
	for _, h := range hashes {
		b = binary.BigEndian.AppendUint64(b, h)
	}
	return b
}

// Reader reads what the Put functions wrote. It keeps the first error, and every read
// after it returns zero. It is not safe for concurrent use.
type Reader struct {
	// Rest is what has not been read yet. Callers set it to begin; older records end
	// earlier than newer ones, so readers compare its length with 0.
	Rest []byte

	// Err is the first error, or nil.
	Err error
}

// MarkDamaged keeps an error that says what is wrong, if it is the first.
func (r *Reader) MarkDamaged(what string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("damaged record: %s", what)
	}
	r.Rest = nil
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.MarkDamaged("it ends early")
		return 0
	}
	c := r.Rest[0]
	r.Rest = r.Rest[1:]
	return c
}

// Uvarint reads an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.MarkDamaged("a number is cut off")
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint reads what PutVarint wrote.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.MarkDamaged("a number is cut off")
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Float reads the eight bytes of a float64.
func (r *Reader) Float() float64 {
	if len(r.Rest) < 8 {
		r.MarkDamaged("a number is cut off")
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(r.Rest))
	r.Rest = r.Rest[8:]
	return f
}

// Int reads a number that fits an int32: a larger one is damage.
func (r *Reader) Int() int {
	v := r.Uvarint()
	if v > math.MaxInt32 {
		r.MarkDamaged("a number is too large")
		return 0
	}
	return int(v)
}

// Count reads the length of a list whose elements take at least a byte each.
func (r *Reader) Count() int {
	n := r.Int()
	if n > len(r.Rest) {
		r.MarkDamaged("a list is longer than its record")
		return 0
	}
	return n
}

// Bytes reads what PutString wrote. The result aliases Rest.
func (r *Reader) Bytes() []byte {
	n := r.Uvarint()
	if n > uint64(len(r.Rest)) {
		r.MarkDamaged("a value is cut off")
		return nil
	}
	s := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return s
}

// Text reads what PutString wrote.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Hashes reads what PutHashes wrote.
func (r *Reader) Hashes() []uint64 {
	n := r.Count()
	if n*8 > len(r.Rest) {
		r.MarkDamaged("a list is longer than its record")
		return nil
	}
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = binary.BigEndian.Uint64(r.Rest)
		r.Rest = r.Rest[8:]
	}
	return hashes
}
