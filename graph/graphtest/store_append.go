package graphtest

import (
	"bytes"
	"fmt"
	"math"

	"raddle.dev/graph"
)

var appendCases = []storeCase{
	{"NumbersFromOne", func(h *harness) {
		h.mustAppend("a", 0, graph.Record{Kind: graph.KindStart, Seq: 77})
		h.mustAppend("a", 1, graph.Record{Kind: graph.KindStep, Seq: -1}, graph.Record{Kind: graph.KindEnd})
		h.expectRecords("a", []graph.Record{{Seq: 1, Kind: graph.KindStart}, {Seq: 2, Kind: graph.KindStep}, {Seq: 3, Kind: graph.KindEnd}})
	}},
	{"KeepsThreadsApart", func(h *harness) {
		for _, thread := range []string{"a", "b", "A", "a/b"} {
			h.mustAppend(thread, 0, newRecords(thread, 0, 3)...)
		}
		for _, thread := range []string{"a", "b", "A", "a/b"} {
			h.expectRecords(thread, newRecords(thread, 0, 3))
		}
	}},
	{"NothingIsNothing", func(h *harness) {
		h.mustAppend("a", 0)
		h.expectRecords("a", nil)
		h.mustAppend("a", 0, newRecords("a", 0, 1)...)
		h.mustAppend("a", 1)
		h.expectRecords("a", newRecords("a", 0, 1))
	}},
	{"ConflictsUnlessBehindTheHead", appendConflicts},
	{"BatchesOfAllSizes", func(h *harness) {
		after := int64(0)
		for _, n := range []int{1, 2, 3, 10, 31, 32, 33, 64, 100, 1, 500} {
			h.mustAppend("a", after, newRecords("a", after, n)...)
			after += int64(n)
		}
		h.expectRecords("a", newRecords("a", 0, int(after)))
	}},
	{"BatchBeginsThread", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 100)...)
		h.expectRecords("a", newRecords("a", 0, 100))
	}},
	{"KeepsNothingOfItsArguments", func(h *harness) {
		recs := newRecords("a", 0, 40)
		h.mustAppend("a", 0, recs[:1]...)
		h.mustAppend("a", 1, recs[1:2]...)
		h.mustAppend("a", 2, recs[2:]...)
		for i := range recs {
			clear(recs[i].Head)
			clear(recs[i].Data)
			recs[i] = graph.Record{}
		}
		h.expectRecords("a", newRecords("a", 0, 40))
	}},
	{"LeavesItsArgumentsAlone", func(h *harness) {
		recs := newRecords("a", 100, 40)
		h.mustAppend("a", 0, recs...)
		if d := diffSlices(newRecords("a", 100, 40), recs); d != "" {
			h.Errorf("the records given to Append have changed:\n%s", d)
		}
	}},
	{"Values", appendValues},
	{"LargeValues", appendLarge},
}

func appendConflicts(h *harness) {
	for _, after := range []int64{-1, 1, 2, math.MaxInt64, math.MinInt64} {
		h.expectConflict("new", after, newRecords("new", 0, 1)...)
		h.expectConflict("new", after, newRecords("new", 0, 3)...)
	}
	h.expectRecords("new", nil)
	h.mustAppend("a", 0, newRecords("a", 0, 5)...)
	for _, n := range []int{1, 2, 5, 50} {
		for _, after := range []int64{-1, 0, 1, 3, 4, 6, 7, 1 << 33, math.MaxInt64, math.MinInt64} {
			h.expectConflict("a", after, newRecords("lost", after, n)...)
		}
	}
	h.expectRecords("a", newRecords("a", 0, 5))
	h.mustAppend("a", 5, newRecords("a", 5, 2)...)
	h.expectRecords("a", newRecords("a", 0, 7))
}

// appendValues checks that everything is read back as it was written.
func appendValues(h *harness) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	recs := []graph.Record{
		{Seq: 1},
		{Seq: 2, Head: []byte{}, Data: []byte{}},
		{Seq: 3, Head: []byte{0}},
		{Seq: 4, Data: []byte{0}},
		{Seq: 5, Kind: 255, Time: math.MaxInt64, Head: all, Data: all},
		{Seq: 6, Kind: 1, Time: math.MinInt64, Head: []byte("not \xff text"), Data: []byte("'; DROP TABLE record; --")},
		{Seq: 7, Kind: graph.KindStep, Time: -1, Head: []byte("12"), Data: []byte("null")},
	}
	for i, r := range recs {
		h.mustAppend("one by one", int64(i), r)
	}
	h.mustAppend("together", 0, recs[0])
	h.mustAppend("together", 1, recs[1:]...)
	h.expectRecords("one by one", recs)
	h.expectRecords("together", recs)
}

func appendLarge(h *harness) {
	const size = 8 << 20
	big := func(c byte) []byte { return bytes.Repeat([]byte{c}, size) }
	h.mustAppend("a", 0, graph.Record{Kind: graph.KindStart, Head: []byte("first"), Data: big('a')})
	h.mustAppend("a", 1, graph.Record{Head: []byte("b"), Data: big('b')}, graph.Record{Head: []byte("c")}, graph.Record{Head: []byte("d"), Data: big('d')})
	h.mustAppend("a", 4, graph.Record{Kind: graph.KindSnapshot, Head: []byte("e"), Data: big('e')})
	for _, r := range []graph.Range{{}, {Newest: true}} {
		var got string
		for _, rec := range h.mustRead("a", r) {
			got += fmt.Sprintf("%d:%s ", rec.Seq, rec.Head)
			if len(rec.Data) > 0 && (len(rec.Data) != size || !bytes.Equal(rec.Data, big(rec.Data[0]))) {
				h.Errorf("record %d: its %d bytes of data are not what was appended", rec.Seq, len(rec.Data))
			}
		}
		want := "1:first 2:b 3:c 4:d 5:e "
		if r.Newest {
			want = "5:e 4:d 3:c 2:b 1:first "
		}
		if got != want {
			h.Errorf("Read(%+v): %s, want %s", r, got, want)
		}
	}
	if l := h.mustListThreads(""); len(l) != 1 || l[0].Head != 5 || string(l[0].Last.Head) != "e" {
		h.Errorf("Threads: %d lines, %+v", len(l), l)
	}
}
