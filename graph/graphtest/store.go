package graphtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"raddle.dev/graph/journal"
)

// TestStore is the suite that every journal.Store must pass. open returns a new, empty
// store each time it is called; the suite closes it. A store that outlives its process
// must pass TestDurable too.
//
// In addition to the text of journal.Store, the suite checks what the users of stores
// rely on: a loop over Read ends even if its body appends to the same thread; a reader
// sees a batch whole or not at all; nil and empty Head or Data are the same. If a store
// implements journal.Leaser, journal.Queue, journal.Triggers or journal.Index, the suite checks that too.
func TestStore(t *testing.T, open func(t *testing.T) journal.Store) {
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
	if has[journal.Leaser](t, open(t)) {
		groups = append(groups, storeGroup{"Lease", leaseCases})
	}
	if has[journal.Queue](t, open(t)) {
		groups = append(groups, storeGroup{"Queue", queueCases})
	}
	if has[journal.Triggers](t, open(t)) {
		groups = append(groups, storeGroup{"Triggers", triggerCases})
	}
	if has[journal.Index](t, open(t)) {
		groups = append(groups, storeGroup{"Index", indexCases})
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newHarness(t, open(t))) })
			}
		})
	}
}

// has says whether a store implements an interface too, and closes it: the time that a harness allows is that of one
// case, not of the suite.
func has[T any](t *testing.T, s journal.Store) bool {
	t.Helper()
	_, ok := s.(T)
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return ok
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
	s journal.Store
}

// A store that has not ended a case for this long has deadlocked.
const stuck = 2 * time.Minute

func newHarness(t *testing.T, s journal.Store) *harness {
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
func (h *harness) mustAppend(thread string, after int64, recs ...journal.Record) {
	h.Helper()
	if err := h.s.Append(h.Context(), thread, after, recs); err != nil {
		h.Fatalf("Append(%q, after %d, %d records): %v", thread, after, len(recs), err)
	}
}

// expectConflict adds records that must be refused.
func (h *harness) expectConflict(thread string, after int64, recs ...journal.Record) {
	h.Helper()
	if err := h.s.Append(h.Context(), thread, after, recs); !errors.Is(err, journal.ErrConflict) {
		h.Errorf("Append(%q, after %d, %d records): %v, want graph.ErrConflict", thread, after, len(recs), err)
	}
}

func (h *harness) mustPrune(thread string, before int64) {
	h.Helper()
	if err := h.s.Prune(h.Context(), thread, before); err != nil {
		h.Fatalf("Prune(%q, %d): %v", thread, before, err)
	}
}

func (h *harness) mustRead(thread string, r journal.Range) []journal.Record {
	h.Helper()
	l, err := collectAll(h.s.Read(h.Context(), thread, r))
	if err != nil {
		h.Fatalf("Read(%q, %+v): %v", thread, r, err)
	}
	return l
}

func (h *harness) mustListThreads(prefix string) []journal.ThreadInfo {
	h.Helper()
	l, err := collectAll(h.s.Threads(h.Context(), prefix))
	if err != nil {
		h.Fatalf("Threads(%q): %v", prefix, err)
	}
	return l
}

// expectRecords checks all records of a thread; no records means that there is no thread.
func (h *harness) expectRecords(thread string, want []journal.Record) {
	h.Helper()
	if d := diffSlices(want, h.mustRead(thread, journal.Range{})); d != "" {
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
func diffSlices[T journal.Record | journal.ThreadInfo | string](want, got []T) string {
	if slices.EqualFunc(want, got, func(a, b T) bool { return reflect.DeepEqual(a, b) }) {
		return "" // hundreds of times faster, and nearly always the case
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// newThreadInfos returns the line of a listing that a thread with these records has.
func newThreadInfos(thread string, recs []journal.Record) []journal.ThreadInfo {
	if len(recs) == 0 {
		return nil
	}
	i := journal.ThreadInfo{Name: thread, First: recs[0], Last: recs[len(recs)-1]}
	i.First.Data, i.Last.Data, i.Head = nil, nil, i.Last.Seq
	return []journal.ThreadInfo{i}
}

// newRecords returns n different records with Seq from after+1; every fifth is a snapshot,
// every seventh a fork, and every third has no checksum.
func newRecords(thread string, after int64, n int) []journal.Record {
	l := make([]journal.Record, n)
	for i := range l {
		seq := after + int64(i) + 1
		kind := journal.KindStep
		switch {
		case seq%5 == 0:
			kind = journal.KindSnapshot
		case seq%7 == 0:
			kind = journal.KindFork
		}
		l[i] = journal.Record{
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

var appendCases = []storeCase{
	{"NumbersFromOne", func(h *harness) {
		h.mustAppend("a", 0, journal.Record{Kind: journal.KindStart, Seq: 77})
		h.mustAppend("a", 1, journal.Record{Kind: journal.KindStep, Seq: -1}, journal.Record{Kind: journal.KindEnd})
		h.expectRecords("a", []journal.Record{{Seq: 1, Kind: journal.KindStart}, {Seq: 2, Kind: journal.KindStep}, {Seq: 3, Kind: journal.KindEnd}})
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
			recs[i] = journal.Record{}
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
	recs := []journal.Record{
		{Seq: 1},
		{Seq: 2, Head: []byte{}, Data: []byte{}},
		{Seq: 3, Head: []byte{0}},
		{Seq: 4, Data: []byte{0}},
		{Seq: 5, Kind: 255, Time: math.MaxInt64, Head: all, Data: all},
		{Seq: 6, Kind: 1, Time: math.MinInt64, Head: []byte("not \xff text"), Data: []byte("'; DROP TABLE record; --")},
		{Seq: 7, Kind: journal.KindStep, Time: -1, Head: []byte("12"), Data: []byte("null")},
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
	h.mustAppend("a", 0, journal.Record{Kind: journal.KindStart, Head: []byte("first"), Data: big('a')})
	h.mustAppend("a", 1, journal.Record{Head: []byte("b"), Data: big('b')}, journal.Record{Head: []byte("c")}, journal.Record{Head: []byte("d"), Data: big('d')})
	h.mustAppend("a", 4, journal.Record{Kind: journal.KindSnapshot, Head: []byte("e"), Data: big('e')})
	for _, r := range []journal.Range{{}, {Newest: true}} {
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

var readCases = []storeCase{
	{"UnknownThreadIsEmpty", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 3)...)
		for _, r := range []journal.Range{{}, {Newest: true, Limit: 1}, {FromSnapshot: true}, {After: 2, UpTo: 3}} {
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
		for _, r := range []journal.Range{{}, {Newest: true}, {After: 255, UpTo: 2817}, {Newest: true, Limit: 1025, Heads: true}, {Limit: 1}} {
			h.checkRange("a", all, r)
		}
	}},
	{"YieldedBelongsToTheCaller", func(h *harness) {
		h.mustAppend("a", 0, newRecords("a", 0, 20)...)
		for rec, err := range h.s.Read(h.Context(), "a", journal.Range{}) {
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
		l := h.mustRead("a", journal.Range{})
		h.mustPrune("a", n+1)
		h.mustAppend("a", 0, newRecords("b", 0, n)...)
		if d := diffSlices(newRecords("a", 0, n), l); d != "" {
			h.Errorf("what was read has changed since:\n%s", d)
		}
	}},
}

// checkRanges reads every combination of bounds and flags around the thread's records.
func (h *harness) checkRanges(thread string, all []journal.Record) {
	h.Helper()
	for _, after := range []int64{-1, 0, 1, 4, 5, 6, 9, 10, 15, 16, 17, 1 << 40} {
		for _, upTo := range []int64{-1, 0, 1, 4, 5, 7, 14, 15, 16, 17, 1 << 40} {
			for _, limit := range []int{-1, 0, 1, 3, 100} {
				for flags := range 8 {
					h.checkRange(thread, all, journal.Range{
						After: after, UpTo: upTo, Limit: limit,
						FromSnapshot: flags&1 != 0, Heads: flags&2 != 0, Newest: flags&4 != 0,
					})
				}
			}
		}
	}
}

// checkRange checks that a range yields the right records of a thread that holds all.
func (h *harness) checkRange(thread string, all []journal.Record, r journal.Range) {
	h.Helper()
	if d := diffSlices(selectRecords(all, r), h.mustRead(thread, r)); d != "" {
		h.Fatalf("Read(%q, %+v) (-want +got):\n%s", thread, r, d)
	}
}

// selectRecords implements journal.Range in the simplest way.
func selectRecords(all []journal.Record, r journal.Range) (l []journal.Record) {
	for _, rec := range all {
		if rec.Seq <= r.After || r.UpTo > 0 && rec.Seq > r.UpTo {
			continue
		}
		if r.FromSnapshot && (rec.Kind == journal.KindSnapshot || rec.Kind == journal.KindFork) {
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

var threadsCases = []storeCase{
	{"NoneAtFirst", func(h *harness) {
		if l := h.mustListThreads(""); len(l) != 0 {
			h.Errorf("an empty store lists %v", l)
		}
	}},
	{"FirstAndLastRecord", func(h *harness) {
		h.mustAppend("one", 0, newRecords("one", 0, 1)...)
		h.mustAppend("two", 0, newRecords("two", 0, 2)...)
		h.mustAppend("ten", 0, newRecords("ten", 0, 10)...)
		var want []journal.ThreadInfo
		want = append(want, newThreadInfos("two", newRecords("two", 0, 2))...)
		want = append(want, newThreadInfos("ten", newRecords("ten", 0, 10))...)
		want = append(want, newThreadInfos("one", newRecords("one", 0, 1))...)
		if d := diffSlices(want, h.mustListThreads("")); d != "" {
			h.Errorf("-want +got:\n%s", d)
		}
	}},
	{"Prefixes", func(h *harness) {
		names := []string{
			"a", "A", "ab", "a%", "a%b", "a_", "a_b", "a b", "a'b", `a"b`, `a\b`, "a*", "a?", "a[b]", "aé", "a\u00ff", "a\U0010ffff", "a\U0010ffffb",
			"b", "B", "%", "_", "*", "日本", "日本語", "日", "run/1", "run/1.a", "run/10", " ", "\t",
		}
		for _, name := range names {
			h.mustAppend(name, 0, newRecords(name, 0, 1)...)
		}
		for _, prefix := range append(names, "", "r", "run/", "zzz", "a%%", "日本語学", "\U0010ffff", "é") {
			h.checkListing(prefix, names)
		}
	}},
	{"TenThousand", func(h *harness) {
		const n = 10_000
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("run-%05d", i)
			h.mustAppend(names[i], 0, newRecords(names[i], 0, 1)...)
		}
		h.checkListing("", names)
		h.checkListing("run-01", names)
		h.checkListing("run-09999", names)
	}},
	{"BreakEarly", func(h *harness) {
		for i := range 100 {
			h.mustAppend(fmt.Sprintf("run-%02d", i), 0, newRecords("", 0, 1)...)
		}
		for range 50 {
			for info, err := range h.s.Threads(h.Context(), "run-") {
				if err != nil || info.Name != "run-99" {
					h.Fatalf("%q first, %v", info.Name, err)
				}
				break
			}
		}
		h.mustAppend("run-99", 1, newRecords("", 1, 1)...)
	}},
}

// checkListing checks which of the names a listing has, and in which order.
func (h *harness) checkListing(prefix string, names []string) {
	h.Helper()
	var want, got []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	slices.Reverse(want)
	for _, info := range h.mustListThreads(prefix) {
		got = append(got, info.Name)
		if d := diffSlices(newThreadInfos(info.Name, newRecords(info.Name, 0, 1)), []journal.ThreadInfo{info}); d != "" {
			h.Errorf("Threads(%q) (-want +got):\n%s", prefix, d)
		}
	}
	if d := diffSlices(want, got); d != "" {
		h.Errorf("Threads(%q) (-want +got):\n%s", prefix, d)
	}
}

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
		if l := h.mustRead("a", journal.Range{FromSnapshot: true}); len(l) != 3 {
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

// loopCases call the store from within loops over it.
var loopCases = []storeCase{
	{"AppendWhileReading", func(h *harness) {
		for _, newest := range []bool{false, true} {
			thread := fmt.Sprint("newest ", newest)
			n := int64(600)
			h.mustAppend(thread, 0, newRecords(thread, 0, int(n))...)
			head := n
			seen := int64(0)
			for _, err := range h.s.Read(h.Context(), thread, journal.Range{Newest: newest}) {
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
		for range h.s.Read(h.Context(), "t0", journal.Range{}) {
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
			if l := h.mustRead(info.Name, journal.Range{}); len(l) != 3 {
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
			for _, err := range h.s.Read(h.Context(), "a", journal.Range{}) {
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
			next, stop := iter.Pull2(h.s.Read(h.Context(), "a", journal.Range{}))
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
	for range h.s.Read(h.Context(), "a", journal.Range{}) {
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
		_, read := collectAll(h.s.Read(ctx, "a", journal.Range{}))
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

// concurrentCases are meant to run under the race detector too.
var concurrentCases = []storeCase{
	{"OneWinner", func(h *harness) { raceAppends(h, []journal.Store{h.s, h.s, h.s, h.s, h.s, h.s}) }},
	{"EachItsOwnThread", func(h *harness) {
		const rounds = 60
		h.runParallel(6, func(ctx context.Context, i int) error {
			thread := fmt.Sprint("t", i)
			after := int64(0)
			for k := range rounds {
				n := 1 + k%3
				if err := h.s.Append(ctx, thread, after, newRecords(thread, after, n)); err != nil {
					return err
				}
				after += int64(n)
			}
			return nil
		})
		for i := range 6 {
			thread := fmt.Sprint("t", i)
			h.expectRecords(thread, newRecords(thread, 0, 2*rounds))
		}
	}},
	{"ReadersSeeWholeBatches", func(h *harness) {
		const batch, looks = 70, 300 // a batch is larger than one statement of most stores
		var seen atomic.Int64
		done := make(chan struct{})
		h.runParallel(4, func(ctx context.Context, i int) error {
			if i > 0 {
				return h.watchBatches(ctx, batch, &seen, done)
			}
			defer close(done)
			for after := int64(0); seen.Load() < looks && ctx.Err() == nil; after += batch {
				if err := h.s.Append(ctx, "a", after, newRecords("a", after, batch)); err != nil {
					return err
				}
				runtime.Gosched()
			}
			return nil
		})
	}},
}

// watchBatches reads the last n records until done is closed: they must be a whole
// batch.
func (h *harness) watchBatches(ctx context.Context, n int, seen *atomic.Int64, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		default:
		}
		l, err := collectAll(h.s.Read(ctx, "a", journal.Range{Newest: true, Limit: n}))
		if err != nil {
			return err
		}
		if len(l) == 0 {
			continue
		}
		if seen.Add(1); len(l) != n || l[0].Seq%int64(n) != 0 {
			return fmt.Errorf("a reader saw %d records up to %d: part of a batch of %d", len(l), l[0].Seq, n)
		}
		infos, err := collectAll(h.s.Threads(ctx, "a"))
		if err != nil {
			return err
		}
		if infos[0].Head%int64(n) != 0 || infos[0].Last.Seq != infos[0].Head {
			return fmt.Errorf("a listing saw head %d: part of a batch of %d", infos[0].Head, n)
		}
	}
}

// runParallel calls f concurrently and reports what fails; the first failure cancels
// the context.
func (h *harness) runParallel(n int, f func(ctx context.Context, i int) error) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		h.Error(err)
	}
}

// raceAppends lets each of the stores, which share one content, append after the same record:
// exactly one may succeed each time.
func raceAppends(h *harness, stores []journal.Store) {
	const rounds = 40
	var want []journal.Record
	for round := range rounds {
		after := int64(len(want))
		n := 1 + round%3*20 // one record, and batches of one and of several statements
		start := make(chan struct{})
		won := make([]bool, len(stores))
		var wg sync.WaitGroup
		errs := make([]error, len(stores))
		for i, s := range stores {
			wg.Go(func() {
				<-start
				err := s.Append(h.Context(), "raced", after, newRecords(fmt.Sprint("writer ", i), after, n))
				if won[i] = err == nil; !won[i] && !errors.Is(err, journal.ErrConflict) {
					errs[i] = err
				}
			})
		}
		close(start)
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			h.Fatalf("the losers of round %d got %v, want graph.ErrConflict", round, err)
		}
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			h.Fatalf("round %d: not exactly one writer has won: %v", round, won)
		}
		want = append(want, newRecords(fmt.Sprint("writer ", winner), after, n)...)
	}
	h.expectRecords("raced", want)
}
