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
			h.append(thread, 0, records(thread, 0, int(n))...)
			head, seen := n, int64(0)
			for _, err := range h.s.Read(h.Context(), thread, graph.Range{Newest: newest}) {
				if err != nil {
					h.Fatal(err)
				}
				if seen++; seen > n {
					h.Fatal("Read yields what is appended while it runs: such a loop never ends")
				}
				h.append(thread, head, records(thread, head, 1)...)
				h.append("other", head-n, records("other", head-n, 1)...)
				head++
			}
			if seen != n {
				h.Errorf("%d records seen, want %d", seen, n)
			}
			h.holds(thread, records(thread, 0, int(2*n)))
			h.prune("other", head)
		}
	}},
	{"ReadWhileReading", func(h *harness) {
		h.append("a", 0, records("a", 0, 300)...)
		if n := h.nest(40); n != 40 {
			h.Errorf("%d of 40 nested loops ran", n)
		}
	}},
	{"ListWhileReading", func(h *harness) {
		for i := range 5 {
			h.append(fmt.Sprint("t", i), 0, records("", 0, 5)...)
		}
		for range h.s.Read(h.Context(), "t0", graph.Range{}) {
			if l := h.threads("t"); len(l) != 5 {
				h.Errorf("%d threads listed, want 5", len(l))
			}
		}
	}},
	{"AppendReadAndPruneWhileListing", func(h *harness) {
		const n = 200
		for i := range n {
			h.append(fmt.Sprintf("t%03d", i), 0, records("", 0, 2)...)
		}
		for info, err := range h.s.Threads(h.Context(), "t") {
			if err != nil {
				h.Fatal(err)
			}
			h.append(info.Name, info.Head, records("", 2, 1)...)
			if l := h.read(info.Name, graph.Range{}); len(l) != 3 {
				h.Fatalf("%q has %d records, want 3", info.Name, len(l))
			}
			h.prune(info.Name, 4)
		}
		if l := h.threads(""); len(l) != 0 {
			h.Errorf("%d threads left, want none", len(l))
		}
	}},
	{"BreakEarly", func(h *harness) {
		h.append("a", 0, records("a", 0, 600)...)
		for i := range 100 {
			for _, err := range h.s.Read(h.Context(), "a", graph.Range{}) {
				if err != nil {
					h.Fatal(err)
				}
				break
			}
			h.append("a", int64(600+i), records("a", int64(600+i), 1)...)
		}
		h.holds("a", records("a", 0, 700))
	}},
	{"SlowReadersDoNotBlock", func(h *harness) {
		h.append("a", 0, records("a", 0, 600)...)
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
		h.append("a", 600, records("a", 600, 1)...)
		h.append("b", 0, records("b", 0, 50)...)
		h.prune("b", 51)
	}},
}

// nest reads inside a loop that reads, and returns how deep it came.
func (h *harness) nest(depth int) int {
	if depth == 0 {
		return 0
	}
	for range h.s.Read(h.Context(), "a", graph.Range{}) {
		return 1 + h.nest(depth-1)
	}
	return 0
}

// contextCases call the store with a context that has ended.
var contextCases = []storeCase{
	{"CancelledDoesNothing", func(h *harness) {
		h.append("a", 0, records("a", 0, 5)...)
		ctx, cancel := context.WithCancel(h.Context())
		cancel()
		_, read := collect(h.s.Read(ctx, "a", graph.Range{}))
		_, list := collect(h.s.Threads(ctx, ""))
		for _, call := range []struct {
			name string
			err  error
		}{
			{"Append", h.s.Append(ctx, "a", 5, records("a", 5, 1))},
			{"Append of a batch", h.s.Append(ctx, "a", 5, records("a", 5, 50))},
			{"Append to a new thread", h.s.Append(ctx, "b", 0, records("b", 0, 1))},
			{"Prune", h.s.Prune(ctx, "a", 3)},
			{"Read", read},
			{"Threads", list},
		} {
			if !errors.Is(call.err, context.Canceled) {
				h.Errorf("%s: %v, want context.Canceled", call.name, call.err)
			}
		}
		h.holds("a", records("a", 0, 5))
		h.holds("b", nil)
	}},
	{"CancelLaterIsHarmless", func(h *harness) {
		after := int64(0)
		for range 50 {
			ctx, cancel := context.WithCancel(h.Context())
			if err := h.s.Append(ctx, "a", after, records("a", after, 3)); err != nil {
				h.Fatal(err)
			}
			cancel()
			after += 3
		}
		h.holds("a", records("a", 0, int(after)))
	}},
}

var closeCases = []storeCase{
	{"Twice", func(h *harness) {
		h.append("a", 0, records("a", 0, 1)...)
		for range 2 {
			if err := h.s.Close(); err != nil {
				h.Errorf("Close: %v", err)
			}
		}
	}},
	{"WithoutUse", func(*harness) {}},
}
