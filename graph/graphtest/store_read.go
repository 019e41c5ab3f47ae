package graphtest

import (
	"slices"

	"raddle.dev/graph"
)

var readCases = []storeCase{
	{"UnknownThreadIsEmpty", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 3)...)
		for _, r := range []graph.Range{{}, {Newest: true, Limit: 1}, {FromSnapshot: true}, {After: 2, UpTo: 3}} {
			if l := h.mustRead("b", r); len(l) != 0 {
				h.Errorf("Read(%+v) of an unknown thread: %v", r, l)
			}
		}
	}},
	{"AllRanges", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 16)...)
		h.checkRanges("a", newRecords("a", 0, 16))
	}},
	{"AllRangesOfPrunedThread", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 16)...)
		h.mustPrune("a", 6)
		h.checkRanges("a", newRecords("a", 5, 11))
	}},
	{"AllRangesWithoutSnapshot", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 4)...)
		h.checkRanges("a", newRecords("a", 0, 4))
	}},
	{"NeighboursDoNotMix", func(h *harness) {
		for _, thread := range []string{"a", "b", "c"} {
			h.mustAppend(thread, 0, newRecords(thread, 0, 16)...)
		}
		h.checkRanges("b", newRecords("b", 0, 16))
	}},
	{"ManyRecords", func(h *harness) {
		const n = 3000
		for after := 0; after < n; after += 100 {
			h.mustAppend("a", int64(after), newRecords("a", int64(after), 100)...)
		}
		all := newRecords("a", 0, n)
		for _, r := range []graph.Range{{}, {Newest: true}, {After: 255, UpTo: 2817}, {Newest: true, Limit: 1025, Heads: true}, {Limit: 1}} {
			h.checkRange("a", all, r)
		}
	}},
	{"YieldedBelongsToTheCaller", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 20)...)
		for rec, err := range h.s.Read(h.Context(), "a", graph.Range{}) {
			if err != nil {
				h.Fatal(err)
			}
			data := slices.Clone(rec.Data)
			_ = append(rec.Head, "overwritten by an append to Head"...)
			if !slices.Equal(data, rec.Data) {
				h.Fatalf("record %d: appending to Head changes Data", rec.Seq)
			}
			clear(rec.Head)
			clear(rec.Data)
		}
		for info, err := range h.s.Threads(h.Context(), "") {
			if err != nil {
				h.Fatal(err)
			}
			clear(info.First.Head)
			clear(info.Last.Head)
		}
		h.expectRecords("a", newRecords("a", 0, 20))
	}},
	{"YieldedStaysAsItIs", func(h *harness) {
		const n = 600
		h.mustAppend("a", 0, newRecords("a", 0, n)...)
		l := h.mustRead("a", graph.Range{})
		h.mustPrune("a", n+1)
		h.mustAppend("a", 0, newRecords("b", 0, n)...)
		if d := diffSlices(newRecords("a", 0, n), l); d != "" {
			h.Errorf("what was read has changed since:\n%s", d)
		}
	}},
}

// checkRanges reads every combination of bounds and flags around the thread's records.
func (h *harness) checkRanges(thread string, all []graph.Record) {
	h.Helper()
	for _, after := range []int64{-1, 0, 1, 4, 5, 6, 9, 10, 15, 16, 17, 1 << 40} {
		for _, upTo := range []int64{-1, 0, 1, 4, 5, 7, 14, 15, 16, 17, 1 << 40} {
			for _, limit := range []int{-1, 0, 1, 3, 100} {
				for flags := range 8 {
					h.checkRange(thread, all, graph.Range{
						After: after, UpTo: upTo, Limit: limit,
						FromSnapshot: flags&1 != 0, Heads: flags&2 != 0, Newest: flags&4 != 0,
					})
				}
			}
		}
	}
}

// checkRange checks that a range yields the right records of a thread that holds all.
func (h *harness) checkRange(thread string, all []graph.Record, r graph.Range) {
	h.Helper()
	if d := diffSlices(selectRecords(all, r), h.mustRead(thread, r)); d != "" {
		h.Fatalf("Read(%q, %+v) (-want +got):\n%s", thread, r, d)
	}
}

// selectRecords implements graph.Range in the simplest way.
func selectRecords(all []graph.Record, r graph.Range) (l []graph.Record) {
	for _, rec := range all {
		if rec.Seq <= r.After || r.UpTo > 0 && rec.Seq > r.UpTo {
			continue
		}
		if r.FromSnapshot && (rec.Kind == graph.KindSnapshot || rec.Kind == graph.KindFork) {
			l = nil
		}
		if r.Heads {
			rec.Data = nil
		}
		l = append(l, rec)
	}
	if r.Newest {
		slices.Reverse(l)
	}
	if r.Limit > 0 && len(l) > r.Limit {
		l = l[:r.Limit]
	}
	return l
}
