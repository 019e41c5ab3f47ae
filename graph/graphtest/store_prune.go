package graphtest

import (
	"math"

	"raddle.dev/graph"
)

var pruneCases = []storeCase{
	{"KeepsFromBeforeOn", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 10)...)
		h.mustAppend("b", 0, newRecords("b", 0, 10)...)
		for _, before := range []int64{math.MinInt64, -1, 0, 1} {
			h.mustPrune("a", before)
			h.expectRecords("a", newRecords("a", 0, 10))
		}
		h.mustPrune("a", 4)
		h.expectRecords("a", newRecords("a", 3, 7))
		h.mustPrune("a", 4)
		h.mustPrune("a", 2)
		h.expectRecords("a", newRecords("a", 3, 7))
		h.mustPrune("a", 10)
		h.expectRecords("a", newRecords("a", 9, 1))
		h.expectRecords("b", newRecords("b", 0, 10))
	}},
	{"GoesOnAtTheHead", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 10)...)
		h.mustPrune("a", 10)
		for _, after := range []int64{0, 1, 8, 9, 11} {
			h.expectConflict("a", after, newRecords("a", after, 1)...)
			h.expectConflict("a", after, newRecords("a", after, 3)...)
		}
		h.mustAppend("a", 10, newRecords("a", 10, 3)...)
		h.mustAppend("a", 13, newRecords("a", 13, 1)...)
		h.expectRecords("a", newRecords("a", 9, 5))
	}},
	{"BeyondTheHeadDeletes", func(h *harness) {
		for i, before := range []int64{4, 5, 1 << 33, math.MaxInt64} {
			h.mustAppend("a", 0, newRecords("a", 0, 3)...)
			h.mustAppend("b", int64(i), newRecords("b", int64(i), 1)...)
			h.mustPrune("a", before)
			h.expectRecords("a", nil)
			h.expectConflict("a", 3, newRecords("a", 3, 1)...)
			h.expectConflict("a", 1, newRecords("a", 1, 2)...)
			h.expectRecords("a", nil)
		}
		h.expectRecords("b", newRecords("b", 0, 4))
	}},
	{"DeletedThreadStartsAfresh", func(h *harness) {
		h.mustAppend("a", 0, newRecords("old", 0, 10)...)
		h.mustPrune("a", 11)
		h.mustAppend("a", 0, newRecords("a", 0, 2)...)
		h.expectRecords("a", newRecords("a", 0, 2))
		h.expectConflict("a", 10, newRecords("a", 10, 1)...)
		h.mustAppend("a", 2, newRecords("a", 2, 1)...)
		h.expectRecords("a", newRecords("a", 0, 3))
		if l := h.mustRead("a", graph.Range{FromSnapshot: true}); len(l) != 3 {
			h.Errorf("a snapshot of the deleted thread is left: FromSnapshot reads %d of 3 records", len(l))
		}
	}},
	{"UnknownThreadIsNoFault", func(h *harness) {
		h.mustPrune("a", 1)
		h.mustPrune("a", 5)
		h.expectRecords("a", nil)
	}},
	{"ManyRecords", func(h *harness) {
		const n = 2000
		for after := int64(0); after < n; after += 500 {
			h.mustAppend("a", after, newRecords("a", after, 500)...)
		}
		h.mustPrune("a", 1500)
		h.expectRecords("a", newRecords("a", 1499, n-1499))
	}},
}
