package disturb

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A schedule is read back as it was written, and every kind has words.
func TestScheduleIsReadBack(t *testing.T) {
	var all Schedule
	for _, k := range Kinds {
		d := Disturbance{k, "effect:1.pay.0/charge/0,n=2"}
		if all = append(all, d); d.InWords() == "" {
			t.Errorf("no words for %s", k)
		}
	}
	read, err := ParseSchedule(all.String())
	if err != nil || !slices.Equal(read, all) {
		t.Errorf("%v, %v", read, err)
	}
	if strings.ContainsAny(all.String(), "' \"") {
		t.Errorf("it needs quotes: %s", all)
	}
	for _, bad := range []string{"", "burn@x", "crash-before@x++pause@y"} {
		if _, err := ParseSchedule(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Records have one label each, which another run has too.
func TestLabels(t *testing.T) {
	entries := []history.Entry{
		{Kind: journal.KindStart, What: "run-7"},
		{Kind: journal.KindEffect, Path: "0.sub.0/", What: "1.pay.0 the 'call' 0"},
		{Kind: journal.KindEffect, Path: "0.sub.0/", What: "1.pay.0 the 'call' 0"},
		{Kind: journal.KindStep, Step: 3},
		{Kind: journal.KindEnd, What: "done"},
	}
	var got []string
	for _, m := range LabelRecords(entries, func(text string) string { return strings.ReplaceAll(text, "sub", "child") }) {
		got = append(got, m.Label)
	}
	want := []string{"start", "effect:0.child.0/1.pay.0/the/_call_/0", "effect:0.child.0/1.pay.0/the/_call_/0,n=2", "step:/3", "end:done"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A run continues after some ends by itself.
func TestHasEnded(t *testing.T) {
	for status := graph.Running; status <= graph.NotStarted; status++ {
		continues := status == graph.Running || status == graph.Waiting || status == graph.Paused || status == graph.Canceled || status == graph.Crashed || status == graph.NotStarted
		for _, saved := range []bool{true, false} {
			trial := newTrial(nil)
			trial.saved, trial.last = saved, []history.Entry{{Kind: journal.KindEnd, What: status.String()}}
			if trial.HasEnded() != (saved && !continues) {
				t.Errorf("%s, saved %v: HasEnded is %v", status, saved, trial.HasEnded())
			}
			if trial.HasWaited() != (saved && status == graph.Waiting) {
				t.Errorf("%s, saved %v: HasWaited is %v", status, saved, trial.HasWaited())
			}
		}
	}
}

// appendTo appends one record to the thread of a trial.
func appendTo(t *testing.T, st journal.Store, after int64, k journal.Kind) error {
	t.Helper()
	return st.Append(t.Context(), "t", after, []journal.Record{{Kind: k}})
}

// What a killed drive tries fails: its appends are not stored, and its context has ended.
func TestKilledDrive(t *testing.T) {
	for _, test := range []struct {
		kind   Kind
		stored int64
	}{{CrashBefore, 1}, {CrashAfter, 2}} {
		mem, ended := journal.NewMemory(), false
		trial := newTrial(Schedule{{test.kind, "claim"}})
		d := trial.NewDrive(func() { ended = true })
		st := d.WrapStore(struct{ journal.Store }{mem})
		if err := appendTo(t, st, 0, journal.KindSnapshot); err != nil || trial.HasFired() {
			t.Fatal(err)
		}
		first, second := appendTo(t, st, 1, journal.KindClaim), appendTo(t, st, test.stored, journal.KindEnd)
		if !errors.Is(first, ErrKilled) || !errors.Is(second, ErrKilled) || !ended || !trial.HasFired() || d.CutOff() != test.kind {
			t.Errorf("%s: %v, %v, ended %v", test.kind, first, second, ended)
		}
		if err := trial.NewDrive(nil).WrapStore(struct{ journal.Store }{mem}).Append(t.Context(), "t", test.stored, []journal.Record{{Kind: journal.KindClaim}}); err != nil {
			t.Errorf("%s: the next drive: %v", test.kind, err)
		}
	}
}

// A schedule that is combined has disturbances of the single ones, and two kills at each record come first.
func TestCombineSingles(t *testing.T) {
	singles := ListSingles([]Milestone{{"start", journal.KindStart, true}, {"made:a", 0, false}, {"effect:a", journal.KindEffect, true}, {"made:b", 0, false}, {"step:", journal.KindStep, true}, {"effect:c", journal.KindEffect, false}}, Kinds)
	text := fmt.Sprint(singles)
	for at, want := range map[string]bool{"takeover@start": false, "pause@effect:a": false, "pause@step:": true, "crash-made@made:a": false, "crash-made@made:b": true, "crash-after@effect:c": true, "away@effect:c": false, "fork@effect:a": true} {
		if strings.Contains(text, at) != want {
			t.Errorf("%s is tried: %v", at, !want)
		}
	}
	list := CombineSingles(singles, 50, rand.New(rand.NewPCG(1, 2)))
	if len(list) != 50 || list[0].String() != "crash-before@start+crash-before@start" {
		t.Errorf("%d, %v", len(list), list[0])
	}
	for _, s := range list {
		for _, d := range s {
			if !slices.ContainsFunc(singles, func(one Schedule) bool { return one[0] == d }) {
				t.Errorf("%s is of no single one", d)
			}
		}
	}
}
