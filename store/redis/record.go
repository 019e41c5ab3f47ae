package redis

import (
	"encoding/binary"
	"fmt"

	"raddle.dev/graph/journal"
)

// The keys. Those of a thread end with its name, which may have any bytes.
const (
	tag       = "{raddle}:"
	keyFormat = tag + "format" // the version of what is stored
	keyIDs    = tag + "ids"    // the newest id of a thread
	keyNames  = tag + "names"  // sorted set: the names of all threads, by their bytes

	prefixMeta  = tag + "t:" // hash: id, head, first, base; the line; owner, until of the lease, also if there is no thread
	prefixHeads = tag + "h:" // list: the records base, base+1, … without their Data
	prefixData  = tag + "d:" // list: their Data
	prefixBases = tag + "s:" // sorted set: the numbers of records where journal.Range.FromSnapshot may start
)

// threadKeys returns the keys of a thread: meta, heads, data, bases.
func threadKeys(thread string) []string {
	return []string{prefixMeta + thread, prefixHeads + thread, prefixData + thread, prefixBases + thread}
}

// maxSeq is the largest number that scripts compute with exactly.
const maxSeq = 1<<53 - 1

// headStart is where the head begins in an element of the list of heads. Before it are the
// kind (1 byte), the time (8), the checksum (8), the mark of the append (8) and the length of
// the Data (4). appendScript reads the mark, and readScript the length.
const headStart = 29

// encodeRecord returns a record without its Data, as it is stored. mark identifies the append.
func encodeRecord(r *journal.Record, mark uint64) []byte {
	b := make([]byte, 0, headStart+len(r.Head))
	b = append(b, byte(r.Kind))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Time))
	b = binary.BigEndian.AppendUint64(b, r.Sum)
	b = binary.BigEndian.AppendUint64(b, mark)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Data)))
	return append(b, r.Head...)
}

// decodeRecord reads a stored record. One that this package cannot have written is damaged:
// it gets a checksum that does not match.
func decodeRecord(seq int64, stored string) journal.Record {
	b := []byte(stored)
	if len(b) < headStart {
		return journal.Record{Seq: seq, Sum: 1}
	}
	return journal.Record{
		Seq: seq, Kind: journal.Kind(b[0]), Time: int64(binary.BigEndian.Uint64(b[1:])), Sum: binary.BigEndian.Uint64(b[9:]), Head: b[headStart:],
	}
}

// A scriptReply reads the values of a script's reply one by one. The first that is not what was
// expected is kept as an error.
type scriptReply struct {
	values []any
	err    error
}

// newReply returns a reader of the reply of a script.
func newReply(value any) *scriptReply {
	values, ok := value.([]any)
	r := &scriptReply{values: values}
	if !ok {
		r.fail(value)
	}
	return r
}

func (r *scriptReply) fail(value any) {
	if r.err == nil {
		r.err = refusal(fmt.Sprintf("the server has replied with %T where raddle does not expect it: is it a Redis server?", value))
	}
}

// takeValue returns the next value; nil if none is left.
func (r *scriptReply) takeValue() (v any) {
	if len(r.values) > 0 {
		v = r.values[0]
		r.values = r.values[1:]
	}
	return v
}

func (r *scriptReply) takeText() string {
	v := r.takeValue()
	s, ok := v.(string)
	if !ok {
		r.fail(v)
	}
	return s
}

func (r *scriptReply) takeNumber() int64 {
	v := r.takeValue()
	n, ok := v.(int64)
	if !ok {
		r.fail(v)
	}
	return n
}
