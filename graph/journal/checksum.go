package journal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// DamagedError says that a record is not what was written, or that it cannot be read. It is about
// one journal: the others of the store can be read, and so can the records before it.
type DamagedError struct {
	// Thread, Seq and Kind name the record. Seq is 0 if it is not known which one it is, and
	// Kind is 0 if that of the record is not known.
	Thread string
	Seq    int64
	Kind   Kind

	// Err says why the record cannot be read; nil: its checksum does not match. With ErrNewer, nothing is damaged.
	Err error
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }

// Error implements error.
func (e *DamagedError) Error() string {
	switch {
	case e.Err != nil && e.Seq == 0:
		return fmt.Sprintf("the journal of thread %s is damaged: %v; restore the store from a copy", e.Thread, e.Err)
	case e.Err != nil && e.Kind == 0:
		return fmt.Sprintf("record %d of thread %s cannot be read: %v", e.Seq, e.Thread, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("record %d of thread %s (%s) cannot be read: %v", e.Seq, e.Thread, e.Kind, e.Err)
	}
	text := fmt.Sprintf("record %d of thread %s is damaged: its checksum does not match (%s); restore the store from a copy", e.Seq, e.Thread, e.Kind)
	if e.Seq > 1 {
		text += fmt.Sprintf(", or fork the thread at record %d, before it", e.Seq-1)
	}
	return text
}

// Checksums computes the checksums of a thread's records. They are CRC-32C: one of
// everything but Data, for readers of heads only, and one of everything. Make it with
// NewChecksums; it is not safe for concurrent use.
type Checksums struct {
	thread string
	name   uint32   // checksum of the thread's name
	place  [17]byte // buffer for sum, allocated once for all records
}

// NewChecksums returns the Checksums of a thread.
func NewChecksums(thread string) Checksums {
	return Checksums{thread: thread, name: updateCRC(0, []byte(thread))}
}

func updateCRC(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

func (c *Checksums) computeSums(r *Record) (head, all uint32) {
	binary.BigEndian.PutUint64(c.place[:], uint64(r.Seq))
	binary.BigEndian.PutUint64(c.place[8:], uint64(r.Time))
	c.place[16] = byte(r.Kind)
	head = updateCRC(updateCRC(c.name, c.place[:]), r.Head)
	return head, updateCRC(head, r.Data)
}

// Set numbers records that will be appended after a record, and sets their checksums.
func (c *Checksums) Set(after int64, recs []Record) {
	for i := range recs {
		r := &recs[i]
		r.Seq = after + int64(i) + 1
		head, all := c.computeSums(r)
		r.Sum = max(1, uint64(head)<<32|uint64(all)) // 0 means: no checksum
	}
}

// Verify compares a record with its checksum, and returns a *DamagedError if they differ. If
// headOnly, it checks everything but Data. A record without a checksum is not checked.
func (c *Checksums) Verify(r *Record, headOnly bool) error {
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
