package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
)

// DamagedError says that a record is not what was written: its checksum does not match.
// The records before it can still be read.
type DamagedError struct {
	Thread string
	Seq    int64
	Kind   Kind
}

func (e *DamagedError) Error() string {
	text := fmt.Sprintf("record %d of thread %s is damaged: its checksum does not match (%s); restore the store from a copy", e.Seq, e.Thread, e.Kind)
	if e.Seq > 1 {
		text += fmt.Sprintf(", or fork the thread at record %d, before it", e.Seq-1)
	}
	return text
}

// Records yields records like Store.Read and checks them: a damaged record is a
// *DamagedError. Records from before there were checksums are not checked.
func Records(ctx context.Context, st Store, thread string, r Range) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if st == nil {
			yield(Record{}, errNoStore)
			return
		}
		c := newChecker(thread)
		for rec, err := range st.Read(ctx, thread, r) {
			if err == nil {
				err = c.verifyRecord(&rec, r.Heads)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// appendSealed appends records with their checksums.
func appendSealed(ctx context.Context, st Store, thread string, after int64, recs ...Record) error {
	c := newChecker(thread)
	c.setChecksums(after, recs)
	return st.Append(ctx, thread, after, recs)
}

// A checker computes the checksums of a thread's records. They are CRC-32C: one of
// everything but Data, for readers of heads only, and one of everything.
type checker struct {
	thread string
	name   uint32   // checksum of the thread's name
	place  [17]byte // buffer for sum, allocated once for all records
}

func newChecker(thread string) checker {
	return checker{thread: thread, name: updateCRC(0, []byte(thread))}
}

func updateCRC(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

func (c *checker) computeSums(r *Record) (head, all uint32) {
	binary.BigEndian.PutUint64(c.place[:], uint64(r.Seq))
	binary.BigEndian.PutUint64(c.place[8:], uint64(r.Time))
	c.place[16] = byte(r.Kind)
	head = updateCRC(updateCRC(c.name, c.place[:]), r.Head)
	return head, updateCRC(head, r.Data)
}

// setChecksums sets the checksums of records that will be appended after a sequence number.
func (c *checker) setChecksums(after int64, recs []Record) {
	for i := range recs {
		r := &recs[i]
		r.Seq = after + int64(i) + 1
		head, all := c.computeSums(r)
		r.Sum = max(1, uint64(head)<<32|uint64(all)) // 0 means: no checksum
	}
}

// verifyRecord compares a record with its checksum. If headOnly, it checks only the head.
func (c *checker) verifyRecord(r *Record, headOnly bool) error {
	if r.Sum == 0 {
		return nil
	}
	head, all := c.computeSums(r)
	if headOnly {
		all = uint32(r.Sum)
	}
	if max(1, uint64(head)<<32|uint64(all)) == r.Sum {
		return nil
	}
	return &DamagedError{Thread: c.thread, Seq: r.Seq, Kind: r.Kind}
}
