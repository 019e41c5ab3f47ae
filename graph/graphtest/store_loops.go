package graphtest

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"raddle.dev/graph"
)

// loopCases call the store from within loops over it.
var loopCases = []storeCase{
	{"AppendWhileReading", func(h *harness) {
		for _, newest := range []bool{false, true} {
			thread, n := fmt.Sprint("newest ", newest), int64(600)
			h.mustAppend(thread, 0, newRecords(thread, 0, int(n))...)
			head, seen := n, int64(0)
			for _, err := range h.s.Read(h.Context(), thread, graph.Range{Newest: newest}) {
				if err != nil {
					h.Fatal(err)
				}
				if seen++; seen > n {
					h.Fatal("Read yields what is appended while it runs: such a loop never ends")
				}
				h.mustAppend(thread, head, newRecords(thread, head, 1)...)
				h.mustAppend("other", head-n, newRecords("other", head-n, 1)...)
				head++
			}
			if seen != n {
				h.Errorf("%d records seen, want %d", seen, n)
			}
			h.expectRecords(thread, newRecords(thread, 0, int(2*n)))
			h.mustPrune("other", head)
		}
	}},
	{"ReadWhileReading", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 300)...)
		if n := h.nestReads(40); n != 40 {
			h.Errorf("%d of 40 nested loops ran", n)
		}
	}},
	{"ListWhileReading", func(h *harness) {
		for i := range 5 {
			h.mustAppend(fmt.Sprint("t", i), 0, newRecords("", 0, 5)...)
		}
		for range h.s.Read(h.Context(), "t0", graph.Range{}) {
			if l := h.mustListThreads("t"); len(l) != 5 {
				h.Errorf("%d threads listed, want 5", len(l))
			}
		}
	}},
	{"AppendReadAndPruneWhileListing", func(h *harness) {
		const n = 200
		for i := range n {
			h.mustAppend(fmt.Sprintf("t%03d", i), 0, newRecords("", 0, 2)...)
		}
		for info, err := range h.s.Threads(h.Context(), "t") {
			if err != nil {
				h.Fatal(err)
			}
			h.mustAppend(info.Name, info.Head, newRecords("", 2, 1)...)
			if l := h.mustRead(info.Name, graph.Range{}); len(l) != 3 {
				h.Fatalf("%q has %d records, want 3", info.Name, len(l))
			}
			h.mustPrune(info.Name, 4)
		}
		if l := h.mustListThreads(""); len(l) != 0 {
			h.Errorf("%d threads left, want none", len(l))
		}
	}},
	{"BreakEarly", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 600)...)
		for i := range 100 {
			for _, err := range h.s.Read(h.Context(), "a", graph.Range{}) {
				if err != nil {
					h.Fatal(err)
				}
				break
			}
			h.mustAppend("a", int64(600+i), newRecords("a", int64(600+i), 1)...)
		}
		h.expectRecords("a", newRecords("a", 0, 700))
	}},
	{"SlowReadersDoNotBlock", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 600)...)
		for range 50 {
			next, stop := iter.Pull2(h.s.Read(h.Context(), "a", graph.Range{}))
			defer stop()
			if _, err, ok := next(); !ok || err != nil {
				h.Fatal(ok, err)
			}
			next2, stop2 := iter.Pull2(h.s.Threads(h.Context(), ""))
			defer stop2()
			if _, err, ok := next2(); !ok || err != nil {
				h.Fatal(ok, err)
			}
		}
		h.mustAppend("a", 600, newRecords("a", 600, 1)...)
		h.mustAppend("b", 0, newRecords("b", 0, 50)...)
		h.mustPrune("b", 51)
	}},
}

// nestReads reads inside a loop that reads, and returns how deep it came.
func (h *harness) nestReads(depth int) int {
	if depth == 0 {
		return 0
	}
	for range h.s.Read(h.Context(), "a", graph.Range{}) {
		return 1 + h.nestReads(depth-1)
	}
	return 0
}

// contextCases call the store with a context that has ended.
var contextCases = []storeCase{
	{"CancelledDoesNothing", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 5)...)
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, read := collectAll(h.s.Read(ctx, "a", graph.Range{}))
		_, list := collectAll(h.s.Threads(ctx, ""))
		for _, call := range []struct {
			name string
			err  error
		}{
			{"Append", h.s.Append(ctx, "a", 5, newRecords("a", 5, 1))},
			{"Append of a batch", h.s.Append(ctx, "a", 5, newRecords("a", 5, 50))},
			{"Append to a new thread", h.s.Append(ctx, "b", 0, newRecords("b", 0, 1))},
			{"Prune", h.s.Prune(ctx, "a", 3)},
			{"Read", read},
			{"Threads", list},
		} {
			if !errors.Is(call.err, context.Canceled) {
				h.Errorf("%s: %v, want context.Canceled", call.name, call.err)
			}
		}
		h.expectRecords("a", newRecords("a", 0, 5))
		h.expectRecords("b", nil)
	}},
	{"CancelLaterIsHarmless", func(h *harness) {
		after := int64(0)
		for range 50 {
			ctx, cancel := context.WithCancel(h.Context())
			if err := h.s.Append(ctx, "a", after, newRecords("a", after, 3)); err != nil {
				h.Fatal(err)
			}
			cancel()
			after += 3
		}
		h.expectRecords("a", newRecords("a", 0, int(after)))
	}},
}

var closeCases = []storeCase{
	{"Twice", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 1)...)
		for range 2 {
			if err := h.s.Close(); err != nil {
				h.Errorf("Close: %v", err)
			}
		}
	}},
	{"WithoutUse", func(*harness) {}},
}
