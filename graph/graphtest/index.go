package graphtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph/journal"
)

// indexCases are what a journal.Index must do.
var indexCases = []storeCase{
	{"LineComesWithTheRecord", lineComesWithTheRecord},
	{"LineIsRefusedWithTheRecord", lineIsRefusedWithTheRecord},
	{"RecordsWithoutALine", recordsWithoutALine},
	{"FillLine", fillLine},
	{"WhichLines", whichLines},
	{"PagesOfLines", pagesOfLines},
	{"WaitingLines", waitingLines},
	{"LinesOfForks", linesOfForks},
	{"CountLines", countLines},
	{"LinesOfDeletedThreads", linesOfDeletedThreads},
	{"LineWithAJob", lineWithAJob},
	{"LeasesOfLines", leasesOfLines},
}

// index returns the index of the store.
func (h *harness) index() journal.Index { return h.s.(journal.Index) }

// appendLine appends one record of a kind to a thread, with its line.
func (h *harness) appendLine(l journal.Line, after int64, kind journal.Kind) error {
	return journal.Append(journal.WithLine(h.Context(), &l), h.s, l.Thread, after, journal.Record{Kind: kind, Time: 1})
}

// mustAppendLine is appendLine that must succeed.
func (h *harness) mustAppendLine(l journal.Line, after int64, kind journal.Kind) {
	h.Helper()
	if err := h.appendLine(l, after, kind); err != nil {
		h.Fatal(err)
	}
}

// mustAppendPlain appends a record without a line.
func (h *harness) mustAppendPlain(thread string, after int64, kind journal.Kind) {
	h.Helper()
	if err := journal.Append(h.Context(), h.s, thread, after, journal.Record{Kind: kind, Time: 1}); err != nil {
		h.Fatal(err)
	}
}

// lines returns the lines of a range.
func (h *harness) lines(r journal.LineRange) []journal.Line {
	h.Helper()
	list, err := h.index().ListLines(h.Context(), r)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// wantLine compares the line of a thread, as it is read and as it is listed.
func (h *harness) wantLine(want journal.Line) {
	h.Helper()
	got, ok, err := h.index().ReadLine(h.Context(), want.Thread)
	if err != nil || !ok {
		h.Fatalf("the line of %s: %v, %v", want.Thread, ok, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		h.Errorf("the line of %s (-want +got):\n%s", want.Thread, d)
	}
	list := h.lines(journal.LineRange{Prefix: want.Thread})
	at := slices.IndexFunc(list, func(l journal.Line) bool { return l.Thread == want.Thread })
	if at < 0 {
		h.Fatalf("the list of %s is %+v", want.Thread, list)
	}
	if d := cmp.Diff(want, list[at]); d != "" {
		h.Errorf("%s in a list (-want +got):\n%s", want.Thread, d)
	}
}

// newLine returns a line whose thread is its order.
func newLine(thread, status, label string) journal.Line {
	return journal.Line{Thread: thread, Order: thread, Status: status, Label: label, Details: []byte("of " + thread)}
}

func lineComesWithTheRecord(h *harness) {
	l := journal.Line{Thread: "a", Order: "run-é", Status: "running", Label: "agent\x00", Details: []byte{0, 255, '\''}}
	h.mustAppendLine(l, 0, journal.KindStart)
	h.wantLine(l)
	l.Order = "run-f"
	l.Status = "done"
	l.Label = ""
	l.Details = nil
	h.mustAppendLine(l, 1, journal.KindEffect)
	h.wantLine(l)
	l.Status = "waiting"
	l.Details = []byte(strings.Repeat("x", 100_000))
	recs := make([]journal.Record, 70)
	for i := range recs {
		recs[i] = journal.Record{Kind: journal.KindStep, Time: 1}
	}
	if err := journal.Append(journal.WithLine(h.Context(), &l), h.s, "a", 2, recs...); err != nil {
		h.Fatal(err)
	}
	h.wantLine(l)
	other := newLine("b", "done", "")
	if err := journal.Append(journal.WithLine(h.Context(), &other), h.s, "a", 72, journal.Record{Kind: journal.KindStep, Time: 1}); err != nil {
		h.Fatal(err)
	}
	h.wantLine(l) // the line of another thread is not written
	if _, ok, err := h.index().ReadLine(h.Context(), "b"); ok || err != nil {
		h.Errorf("a thread that is not there has a line: %v, %v", ok, err)
	}
}

func lineIsRefusedWithTheRecord(h *harness) {
	l := newLine("a", "running", "x")
	h.mustAppendLine(l, 0, journal.KindStart)
	for _, after := range []int64{0, 2, -1} {
		if err := h.appendLine(newLine("a", "done", "y"), after, journal.KindEnd); err == nil {
			h.Errorf("an append after %d succeeded", after)
		}
	}
	h.wantLine(l)
	if err := h.appendLine(newLine("b", "done", "y"), 1, journal.KindEnd); err == nil {
		h.Error("an append to no thread succeeded")
	}
	if list := h.lines(journal.LineRange{}); len(list) != 1 {
		h.Errorf("the lines are %+v", list)
	}
}

func recordsWithoutALine(h *harness) {
	plain := journal.Line{Thread: "a", Order: "a"}
	h.mustAppendPlain("a", 0, journal.KindTask)
	h.wantLine(plain)
	full := newLine("a", "done", "x")
	full.Order = "z"
	h.mustAppendLine(full, 1, journal.KindEnd)
	h.mustAppendPlain("a", 2, journal.KindStep)
	h.wantLine(full) // a step changes nothing in a list
	after := int64(3)
	for _, kind := range []journal.Kind{journal.KindClaim, journal.KindAnswer, journal.KindEdit, journal.KindEnd, journal.KindStart} {
		h.mustAppendPlain("a", after, kind)
		h.wantLine(plain)
		h.mustAppendLine(full, after+1, journal.KindEnd)
		after += 2
	}
}

func fillLine(h *harness) {
	h.mustAppendPlain("a", 0, journal.KindStart)
	l := newLine("a", "done", "x")
	l.Order = "q"
	fill := func(l journal.Line) {
		h.Helper()
		if err := h.index().FillLine(h.Context(), l); err != nil {
			h.Fatal(err)
		}
	}
	fill(l)
	h.wantLine(l)
	fill(newLine("a", "failed", "y"))
	h.wantLine(l) // it has a status
	fill(newLine("gone", "done", "x"))
	if list := h.lines(journal.LineRange{}); len(list) != 1 {
		h.Errorf("the lines are %+v", list)
	}
}

func whichLines(h *harness) {
	for i, s := range []string{"done", "waiting", "done", "failed"} {
		for _, label := range []string{"x", "y"} {
			l := newLine(fmt.Sprintf("t%d%s", i, label), s, label)
			h.mustAppendLine(l, 0, journal.KindStart)
		}
	}
	h.mustAppendPlain("s", 0, journal.KindStart)
	top := newLine("session/a", "waiting", "x")
	top.Order = "t2"
	h.mustAppendLine(top, 0, journal.KindStart)
	for _, c := range []struct {
		r    journal.LineRange
		want string
	}{
		{journal.LineRange{}, "t3y t3x t2y t2x session/a t1y t1x t0y t0x s"},
		{journal.LineRange{Limit: 3}, "t3y t3x t2y"},
		{journal.LineRange{Prefix: "t"}, "t3y t3x t2y t2x t1y t1x t0y t0x"},
		{journal.LineRange{Prefix: "session/"}, "session/a"},
		{journal.LineRange{Statuses: []string{"done"}}, "t2y t2x t0y t0x s"},
		{journal.LineRange{Statuses: []string{"waiting", "failed"}}, "t3y t3x session/a t1y t1x s"},
		{journal.LineRange{Statuses: []string{}}, "s"},
		{journal.LineRange{Label: "x"}, "t3x t2x session/a t1x t0x s"},
		{journal.LineRange{Label: "x", Statuses: []string{"waiting"}}, "session/a t1x s"},
		{journal.LineRange{Label: "y", Statuses: []string{"done"}, Limit: 1}, "t2y"},
		{journal.LineRange{Below: "t2x"}, "session/a t1y t1x t0y t0x s"},
		{journal.LineRange{Below: "t2", BelowThread: "session/a"}, "t1y t1x t0y t0x s"},
		{journal.LineRange{Below: "t2", Statuses: []string{"done"}, Label: "y"}, "t0y s"},
		{journal.LineRange{Statuses: []string{"nosuch"}, Prefix: "t"}, ""},
	} {
		var names []string
		for _, l := range h.lines(c.r) {
			names = append(names, l.Thread)
		}
		if got := strings.Join(names, " "); got != c.want {
			h.Errorf("%+v selects %q, want %q", c.r, got, c.want)
		}
	}
}

func pagesOfLines(h *harness) {
	const n = 300
	for i := range n {
		l := newLine(fmt.Sprintf("t%03d", i), "done", "x")
		l.Order = fmt.Sprintf("o%02d", i/7) // several of one order
		h.mustAppendLine(l, 0, journal.KindStart)
	}
	whole := h.lines(journal.LineRange{})
	for _, size := range []int{1, 7, 64, n} {
		var all []journal.Line
		r := journal.LineRange{Limit: size}
		for {
			page := h.lines(r)
			all = append(all, page...)
			if len(page) < size {
				break
			}
			r.Below = page[size-1].Order
			r.BelowThread = page[size-1].Thread
		}
		if d := cmp.Diff(whole, all); d != "" || len(all) != n {
			h.Errorf("in pages of %d there are %d lines (-whole +pages):\n%s", size, len(all), d)
		}
	}
}

func waitingLines(h *harness) {
	for i := range 40 {
		l := newLine(fmt.Sprintf("t%02d", i), "waiting", "x")
		l.Wait = int64(1e15) - int64(i/4) // four with each
		if i%10 == 0 {
			l.Wait = 0
		}
		h.mustAppendLine(l, 0, journal.KindStart)
	}
	h.mustAppendPlain("u", 0, journal.KindStart)
	changed := newLine("t01", "done", "x")
	h.mustAppendLine(changed, 1, journal.KindEnd)
	changed = newLine("t02", "waiting", "x")
	changed.Wait = 7
	h.mustAppendLine(changed, 1, journal.KindEnd)
	h.wantLine(changed)
	filled := newLine("u", "paused", "")
	filled.Wait = 8
	if err := h.index().FillLine(h.Context(), filled); err != nil {
		h.Fatal(err)
	}
	for _, thread := range []string{"t03", "t35"} {
		if err := h.s.Prune(h.Context(), thread, 10); err != nil {
			h.Fatal(err)
		}
	}
	h.mustAppendPlain("t34", 1, journal.KindEnd) // a line that says nothing waits for nothing
	want := []string{"t02", "u"}
	for i := 36; i >= 4; i -= 4 {
		for n := i; n < i+4; n++ {
			if n%10 != 0 && n != 34 && n != 35 {
				want = append(want, fmt.Sprintf("t%02d", n))
			}
		}
	}
	for _, size := range []int{0, 1, 3, 100} {
		var got []string
		for r := (journal.WaitRange{Limit: size}); ; {
			page, err := h.index().ListWaiting(h.Context(), r)
			if err != nil {
				h.Fatal(err)
			}
			for _, l := range page {
				got = append(got, l.Thread)
				r.After = l.Wait
				r.AfterThread = l.Thread
			}
			if size == 0 || len(page) < size {
				break
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			h.Errorf("what waits, in pages of %d (-want +got):\n%s", size, d)
		}
	}
}

func linesOfForks(h *harness) {
	for thread, parent := range map[string]string{"a": "", "b": "a", "c": "a", "d": "b", "e": "a", "f": "x\x00é", "g": "a"} {
		l := newLine(thread, "done", "x")
		l.Parent = parent
		h.mustAppendLine(l, 0, journal.KindFork)
		h.wantLine(l)
	}
	h.mustAppendLine(newLine("e", "done", "x"), 1, journal.KindEnd)
	if err := h.s.Prune(h.Context(), "g", 10); err != nil {
		h.Fatal(err)
	}
	many := []string{"a", "a", "x\x00é"}
	for i := range 100 {
		many = append(many, fmt.Sprint(i))
	}
	for _, c := range []struct {
		parents []string
		want    string
	}{
		{nil, ""},
		{[]string{"a"}, "b c"},
		{[]string{"nosuch", ""}, ""},
		{[]string{"b", "a"}, "b c d"},
		{many, "b c f"},
	} {
		list, err := h.index().ListForks(h.Context(), c.parents)
		if err != nil {
			h.Fatal(err)
		}
		var names []string
		for _, l := range list {
			names = append(names, l.Thread)
		}
		if got := strings.Join(names, " "); got != c.want {
			h.Errorf("the forks of %q are %q, want %q", c.parents, got, c.want)
		}
	}
}

func countLines(h *harness) {
	want := func(want map[string]int) {
		h.Helper()
		got, err := h.index().CountLines(h.Context())
		if err != nil {
			h.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			h.Errorf("counts (-want +got):\n%s", d)
		}
	}
	want(map[string]int{})
	for _, thread := range []string{"a", "b", "c"} {
		h.mustAppendLine(newLine(thread, "running", "x"), 0, journal.KindStart)
	}
	h.mustAppendPlain("d", 0, journal.KindStart)
	want(map[string]int{"running": 3, "": 1})
	h.mustAppendLine(newLine("a", "done", "x"), 1, journal.KindEnd)
	h.mustAppendLine(newLine("b", "running", "x"), 1, journal.KindEffect)
	if err := h.index().FillLine(h.Context(), newLine("d", "done", "")); err != nil {
		h.Fatal(err)
	}
	_ = h.appendLine(newLine("c", "failed", "x"), 7, journal.KindEnd) // refused
	want(map[string]int{"running": 2, "done": 2})
	for _, thread := range []string{"a", "b", "d"} {
		if err := h.s.Prune(h.Context(), thread, 10); err != nil {
			h.Fatal(err)
		}
	}
	want(map[string]int{"running": 1})
}

func linesOfDeletedThreads(h *harness) {
	l := newLine("a", "done", "x")
	h.mustAppendLine(l, 0, journal.KindStart)
	h.mustAppendLine(l, 1, journal.KindEnd)
	if err := h.s.Prune(h.Context(), "a", 2); err != nil {
		h.Fatal(err)
	}
	h.wantLine(l) // its newest record is left
	if err := h.s.Prune(h.Context(), "a", 3); err != nil {
		h.Fatal(err)
	}
	if list := h.lines(journal.LineRange{}); len(list) > 0 {
		h.Errorf("the lines are %+v", list)
	}
	l.Status = "running"
	h.mustAppendLine(l, 0, journal.KindStart)
	h.wantLine(l)
}

func lineWithAJob(h *harness) {
	q, ok := h.s.(journal.Queue)
	if !ok {
		return
	}
	hold := newHold(journal.DriveJob{Thread: "a", Run: "r", Token: "1", Worker: "w"}, time.Hour, journal.RemoveAtEnd)
	l := newLine("a", "running", "x")
	ctx := journal.WithHold(journal.WithLine(h.Context(), &l), hold)
	if err := journal.Append(ctx, h.s, "a", 0, journal.Record{Kind: journal.KindStart, Time: 1}); err != nil {
		h.Fatal(err)
	}
	if _, ok, err := q.ReadJob(ctx, "a"); !ok || err != nil {
		h.Errorf("there is no job: %v", err)
	}
	h.wantLine(l)
	l.Status = "done"
	ctx = journal.WithHold(journal.WithLine(h.Context(), &l), hold)
	if err := journal.Append(ctx, h.s, "a", 1, journal.Record{Kind: journal.KindEnd, Time: 1}); err != nil {
		h.Fatal(err)
	}
	if _, ok, err := q.ReadJob(ctx, "a"); ok || err != nil {
		h.Errorf("the job is left: %v", err)
	}
	h.wantLine(l)
}

func leasesOfLines(h *harness) {
	st, ok := h.s.(journal.Leaser)
	if !ok {
		return
	}
	h.mustAppendLine(newLine("a", "running", "x"), 0, journal.KindStart)
	h.mustAppendPlain("b", 0, journal.KindStart)
	for _, thread := range []string{"a", "b"} {
		if _, err := st.AcquireLease(h.Context(), thread, "owner of "+thread, "", time.Hour); err != nil {
			h.Fatal(err)
		}
	}
	for _, l := range h.lines(journal.LineRange{}) {
		read, _, err := h.index().ReadLine(h.Context(), l.Thread)
		if err != nil || l.Lease.Owner != "owner of "+l.Thread || !l.Lease.IsLive() || read.Lease.Owner != l.Lease.Owner {
			h.Errorf("the leases of %s are %+v and %+v (%v)", l.Thread, l.Lease, read.Lease, err)
		}
	}
}
