package graphtest

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/graph"
)

// TestStore is the suite that every graph.Store must pass. open returns a new, empty
// store each time it is called; the suite closes it. A store that outlives its process
// must pass TestDurable too.
//
// In addition to the text of graph.Store, the suite checks what the users of stores
// rely on: a loop over Read ends even if its body appends to the same thread; a reader
// sees a batch whole or not at all; nil and empty Head or Data are the same. If a store
// implements graph.Leaser, the suite checks that too.
func TestStore(t *testing.T, open func(t *testing.T) graph.Store) {
	groups := []storeGroup{
		{"Append", appendCases},
		{"Read", readCases},
		{"Threads", threadsCases},
		{"Prune", pruneCases},
		{"Loop", loopCases},
		{"Concurrent", concurrentCases},
		{"Context", contextCases},
		{"Close", closeCases},
	}
	if s := newHarness(t, open(t)); s.storeLeaser() != nil {
		groups = append(groups, storeGroup{"Lease", leaseCases})
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newHarness(t, open(t))) })
			}
		})
	}
}

type storeGroup struct {
	name  string
	cases []storeCase
}

type storeCase struct {
	name string
	run  func(h *harness)
}

// harness is a store under test; its methods fail the test on an error that is
// not expected.
type harness struct {
	*testing.T
	s graph.Store
}

// A store that has not answered for this long has deadlocked.
const stuck = 2 * time.Minute

func newHarness(t *testing.T, s graph.Store) *harness {
	watch := time.AfterFunc(stuck, func() { panic(fmt.Sprintf("%s: no end after %v: has the store deadlocked?", t.Name(), stuck)) })
	t.Cleanup(func() {
		watch.Stop()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &harness{T: t, s: s}
}

// mustAppend adds records that must be accepted.
func (h *harness) mustAppend(thread string, after int64, recs ...graph.Record) {
	h.Helper()
	if err := h.s.Append(h.Context(), thread, after, recs); err != nil {
		h.Fatalf("Append(%q, after %d, %d records): %v", thread, after, len(recs), err)
	}
}

// expectConflict adds records that must be refused.
func (h *harness) expectConflict(thread string, after int64, recs ...graph.Record) {
	h.Helper()
	if err := h.s.Append(h.Context(), thread, after, recs); !errors.Is(err, graph.ErrConflict) {
		h.Errorf("Append(%q, after %d, %d records): %v, want graph.ErrConflict", thread, after, len(recs), err)
	}
}

func (h *harness) mustPrune(thread string, before int64) {
	h.Helper()
	if err := h.s.Prune(h.Context(), thread, before); err != nil {
		h.Fatalf("Prune(%q, %d): %v", thread, before, err)
	}
}

func (h *harness) mustRead(thread string, r graph.Range) []graph.Record {
	h.Helper()
	l, err := collectAll(h.s.Read(h.Context(), thread, r))
	if err != nil {
		h.Fatalf("Read(%q, %+v): %v", thread, r, err)
	}
	return l
}

func (h *harness) mustListThreads(prefix string) []graph.ThreadInfo {
	h.Helper()
	l, err := collectAll(h.s.Threads(h.Context(), prefix))
	if err != nil {
		h.Fatalf("Threads(%q): %v", prefix, err)
	}
	return l
}

// expectRecords checks all records of a thread; no records means that there is no thread.
func (h *harness) expectRecords(thread string, want []graph.Record) {
	h.Helper()
	if d := diffSlices(want, h.mustRead(thread, graph.Range{})); d != "" {
		h.Errorf("thread %q (-want +got):\n%s", thread, d)
	}
	info := h.mustListThreads(thread)
	for len(info) > 0 && info[len(info)-1].Name != thread { // the shortest name is the last one
		info = info[:len(info)-1]
	}
	if d := diffSlices(newThreadInfos(thread, want), info[max(0, len(info)-1):]); d != "" {
		h.Errorf("listing of %q (-want +got):\n%s", thread, d)
	}
}

// collectAll drains an iterator.
func collectAll[T any](seq iter.Seq2[T, error]) (l []T, err error) {
	for v, err := range seq {
		if err != nil {
			return l, err
		}
		l = append(l, v)
	}
	return l, nil
}

// diffSlices compares two lists. It treats nil and empty slices as equal.
func diffSlices[T graph.Record | graph.ThreadInfo | string](want, got []T) string {
	if slices.EqualFunc(want, got, func(a, b T) bool { return reflect.DeepEqual(a, b) }) {
		return "" // hundreds of times faster, and nearly always the case
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// newThreadInfos returns the line of a listing that a thread with these records has.
func newThreadInfos(thread string, recs []graph.Record) []graph.ThreadInfo {
	if len(recs) == 0 {
		return nil
	}
	i := graph.ThreadInfo{Name: thread, First: recs[0], Last: recs[len(recs)-1]}
	i.First.Data, i.Last.Data, i.Head = nil, nil, i.Last.Seq
	return []graph.ThreadInfo{i}
}

// newRecords returns n different records with Seq from after+1; every fifth is a snapshot,
// every seventh a fork, and every third has no checksum.
func newRecords(thread string, after int64, n int) []graph.Record {
	l := make([]graph.Record, n)
	for i := range l {
		seq := after + int64(i) + 1
		kind := graph.KindStep
		switch {
		case seq%5 == 0:
			kind = graph.KindSnapshot
		case seq%7 == 0:
			kind = graph.KindFork
		}
		l[i] = graph.Record{
			Seq: seq, Kind: kind, Time: 1_760_000_000_000_000 + seq,
			Head: fmt.Appendf(nil, "head %d of %s", seq, thread),
			Data: fmt.Appendf(nil, "data %d of %s", seq, thread),
		}
		if seq%3 != 0 {
			l[i].Sum = uint64(seq) << 60 / 7 * 5
		}
	}
	return l
}
