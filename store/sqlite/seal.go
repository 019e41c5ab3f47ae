package sqlite

import (
	"encoding/binary"

	"raddle.dev/graph"
)

// If a record has a checksum, its row holds it before the head and marks that in the
// kind. Two bits mark it, so that one flipped bit is detected. Files of schema 1 have
// records without checksums.
const (
	sumBytes = 8
	sealed   = 0x60 // for kinds below narrow: all kinds of package graph
	narrow   = 0x20
	wide     = 0x10000 // for all others
	sealWide = 0x600
)

// bases are the kinds that graph.Range.FromSnapshot looks for, as stored in rows:
// graph.KindFork and graph.KindSnapshot, without a checksum and with one.
const bases = "12, 14, 108, 110"

// kindOf returns the kind of a record as stored in its row.
func kindOf(r *graph.Record) int64 {
	k := int64(r.Kind)
	switch {
	case k < narrow && r.Sum == 0:
		return k
	case k < narrow:
		return k | sealed
	case r.Sum == 0:
		return k | wide
	}
	return k | wide | sealWide
}

// putHead appends the head of a record as stored in its row.
func putHead(b []byte, r *graph.Record) []byte {
	if r.Sum != 0 {
		b = binary.BigEndian.AppendUint64(b, r.Sum)
	}
	return append(b, r.Head...)
}

// headBytes returns how many bytes putHead appends.
func headBytes(r *graph.Record) int {
	if r.Sum != 0 {
		return sumBytes + len(r.Head)
	}
	return len(r.Head)
}

// decodeRow reads kind, head and checksum of a record from its row. A row that this
// package cannot have written is damaged: its record gets a checksum that does not
// match.
func decodeRow(r *graph.Record, kind int64) {
	r.Kind = graph.Kind(kind)
	if kind&^(narrow-1) == sealed {
		r.Kind &^= sealed
	}
	want := graph.Record{Kind: r.Kind}
	if kind == kindOf(&want) {
		return
	}
	if want.Sum = 1; kind == kindOf(&want) && len(r.Head) >= sumBytes {
		r.Sum, r.Head = binary.BigEndian.Uint64(r.Head), r.Head[sumBytes:]
		return
	}
	r.Sum = 1
}
