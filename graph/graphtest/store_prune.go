package graphtest

import (
	"math"

	"raddle.dev/graph"
)

var pruneCases = []storeCase{
	{"KeepsFromBeforeOn", func(h *harness) {
		h.append("a", 0, records("a", 0, 10)...)
		h.append("b", 0, records("b", 0, 10)...)
		for _, before := range []int64{math.MinInt64, -1, 0, 1} {
			h.prune("a", before)
			h.holds("a", records("a", 0, 10))
		}
		h.prune("a", 4)
		h.holds("a", records("a", 3, 7))
		h.prune("a", 4)
		h.prune("a", 2)
		h.holds("a", records("a", 3, 7))
		h.prune("a", 10)
		h.holds("a", records("a", 9, 1))
		h.holds("b", records("b", 0, 10))
	}},
	{"GoesOnAtTheHead", func(h *harness) {
		h.append("a", 0, records("a", 0, 10)...)
		h.prune("a", 10)
		for _, after := range []int64{0, 1, 8, 9, 11} {
			h.conflict("a", after, records("a", after, 1)...)
			h.conflict("a", after, records("a", after, 3)...)
		}
		h.append("a", 10, records("a", 10, 3)...)
		h.append("a", 13, records("a", 13, 1)...)
		h.holds("a", records("a", 9, 5))
	}},
	{"BeyondTheHeadDeletes", func(h *harness) {
		for i, before := range []int64{4, 5, 1 << 33, math.MaxInt64} {
			h.append("a", 0, records("a", 0, 3)...)
			h.append("b", int64(i), records("b", int64(i), 1)...)
			h.prune("a", before)
			h.holds("a", nil)
			h.conflict("a", 3, records("a", 3, 1)...)
			h.conflict("a", 1, records("a", 1, 2)...)
			h.holds("a", nil)
		}
		h.holds("b", records("b", 0, 4))
	}},
	{"DeletedThreadStartsAfresh", func(h *harness) {
		h.append("a", 0, records("old", 0, 10)...)
		h.prune("a", 11)
		h.append("a", 0, records("a", 0, 2)...)
		h.holds("a", records("a", 0, 2))
		h.conflict("a", 10, records("a", 10, 1)...)
		h.append("a", 2, records("a", 2, 1)...)
		h.holds("a", records("a", 0, 3))
		if l := h.read("a", graph.Range{FromSnapshot: true}); len(l) != 3 {
			h.Errorf("a snapshot of the deleted thread is left: FromSnapshot reads %d of 3 records", len(l))
		}
	}},
	{"UnknownThreadIsNoFault", func(h *harness) {
		h.prune("a", 1)
		h.prune("a", 5)
		h.holds("a", nil)
	}},
	{"ManyRecords", func(h *harness) {
		const n = 2000
		for after := int64(0); after < n; after += 500 {
			h.append("a", after, records("a", after, 500)...)
		}
		h.prune("a", 1500)
		h.holds("a", records("a", 1499, n-1499))
	}},
}
