package journal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph/journal"
)

// selectSeqs says which records of a thread a range selects, as slowly as its description.
func selectSeqs(recs []journal.Record, r journal.Range) (seqs []int64) {
	for i := range recs {
		rec := &recs[i]
		if rec.Seq <= r.After || r.UpTo > 0 && rec.Seq > r.UpTo {
			continue
		}
		if r.FromSnapshot && rec.Kind.IsBase() {
			seqs = nil
		}
		seqs = append(seqs, rec.Seq)
	}
	if r.Newest {
		slices.Reverse(seqs)
	}
	if r.Limit > 0 {
		seqs = seqs[:min(r.Limit, len(seqs))]
	}
	return seqs
}

// Ranges select what they say, also of a thread whose beginning was pruned.
func TestRangesOfMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		st := journal.NewMemory()
		var recs []journal.Record
		for i := range 1 + random.Int64N(12) {
			kinds := []journal.Kind{journal.KindStep, journal.KindStep, journal.KindTask, journal.KindSnapshot}
			recs = append(recs, journal.Record{Seq: i + 1, Kind: kinds[random.IntN(len(kinds))], Data: []byte("d")})
		}
		if err := st.Append(t.Context(), "t", 0, recs); err != nil {
			t.Fatal(err)
		}
		pruned := random.Int64N(int64(len(recs)) + 2)
		if err := st.Prune(t.Context(), "t", pruned); err != nil {
			t.Fatal(err)
		}
		recs = slices.DeleteFunc(recs, func(r journal.Record) bool { return r.Seq < pruned })
		for range 20 {
			r := journal.Range{
				After:        random.Int64N(14) - 1,
				UpTo:         random.Int64N(14),
				FromSnapshot: random.IntN(2) == 0,
				Heads:        random.IntN(2) == 0,
				Newest:       random.IntN(2) == 0,
				Limit:        random.IntN(4),
			}
			var got []int64
			for rec, err := range st.Read(t.Context(), "t", r) {
				if err != nil || (len(rec.Data) == 0) != r.Heads {
					t.Fatalf("%+v: %+v, %v", r, rec, err)
				}
				got = append(got, rec.Seq)
			}
			if want := selectSeqs(recs, r); !slices.Equal(got, want) {
				t.Fatalf("%+v of %d records, pruned below %d: %v, want %v", r, len(recs), pruned, got, want)
			}
		}
		var got []int64
		st.EachFromSnapshot(t.Context(), "t", func(rec journal.Record, _ error) bool {
			got = append(got, rec.Seq)
			return true
		})
		if want := selectSeqs(recs, journal.Range{FromSnapshot: true}); !slices.Equal(got, want) {
			t.Fatalf("from the snapshot: %v, want %v", got, want)
		}
	}
}

// Pages of lines have each line once, in their order; what was pruned has none, and a line that was filled stays.
func TestLinesOfMemory(t *testing.T) {
	st := journal.NewMemory()
	random := rand.New(rand.NewPCG(3, 4))
	counts := map[string]int{}
	for i := range 30 {
		l := &journal.Line{
			Thread: fmt.Sprintf("t%02d", i),
			Order:  fmt.Sprint(random.IntN(5)),
			Status: []string{"done", "waiting"}[i%2],
			Wait:   random.Int64N(3),
			Parent: []string{"", "t00", "t01"}[random.IntN(3)],
		}
		ctx := journal.WithLine(t.Context(), l)
		if err := st.Append(ctx, l.Thread, 0, []journal.Record{newRecord("a")}); err != nil {
			t.Fatal(err)
		}
		if counts[l.Status]++; i == 4 {
			counts[l.Status]--
			if err := st.Prune(t.Context(), l.Thread, 5); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := st.ListLines(t.Context(), journal.LineRange{})
	if err != nil || len(all) != 29 {
		t.Fatalf("%d lines, %v", len(all), err)
	}
	var paged []journal.Line
	for r := (journal.LineRange{Limit: 4}); len(paged) <= len(all); {
		page, err := st.ListLines(t.Context(), r)
		if err != nil || len(page) > r.Limit {
			t.Fatal(page, err)
		}
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		last := page[len(page)-1]
		r.Below = last.Order
		r.BelowThread = last.Thread
	}
	if !reflect.DeepEqual(paged, all) {
		t.Errorf("pages have %v, want %v", paged, all)
	}
	waiting, err := st.ListWaiting(t.Context(), journal.WaitRange{})
	if err != nil || len(waiting) == 0 {
		t.Fatal(waiting, err)
	}
	middle := waiting[len(waiting)/2]
	rest, err := st.ListWaiting(t.Context(), journal.WaitRange{After: middle.Wait, AfterThread: middle.Thread})
	if err != nil || !reflect.DeepEqual(rest, waiting[len(waiting)/2+1:]) {
		t.Errorf("after %+v: %v, want the end of %v (%v)", middle, rest, waiting, err)
	}
	forks, err := st.ListForks(t.Context(), []string{"t01", "t99"})
	isOther := func(l journal.Line) bool { return l.Parent != "t01" }
	if err != nil || len(forks) == 0 || slices.ContainsFunc(forks, isOther) {
		t.Errorf("forks %v, %v", forks, err)
	}
	filled := journal.Line{Thread: "t00", Order: "9", Status: "other"}
	if err := st.FillLine(t.Context(), filled); err != nil {
		t.Error(err)
	}
	if got, err := st.CountLines(t.Context()); err != nil || !maps.Equal(got, counts) {
		t.Errorf("counts %v, want %v (%v)", got, counts, err)
	}
}

// What the store holds changes neither with what was appended nor with what was read.
func TestMemorySharesNothing(t *testing.T) {
	st := journal.NewMemory()
	recs := []journal.Record{newRecord("a"), newRecord("b")}
	if err := journal.Append(t.Context(), st, "t", 0, recs...); err != nil {
		t.Fatal(err)
	}
	recs[0].Head[0] = 'x'
	for range 2 {
		for rec, err := range journal.Records(t.Context(), st, "t", journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if _ = append(rec.Head, "overwritten"...); string(rec.Data) != "data of "+string(rec.Head) {
				t.Errorf("%q %q", rec.Head, rec.Data)
			}
			rec.Head[0] = 'x'
			rec.Data[0] = 'x'
		}
	}
	info := journal.ThreadInfo{}
	for i, err := range st.Threads(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		info = i
	}
	if info.Head != 2 || info.First.Seq != 1 || info.Last.Seq != 2 || info.Last.Data != nil {
		t.Errorf("%+v", info)
	}
}

// A call whose context has ended does nothing, whatever the method.
func TestMemoryAfterTheEnd(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	st := journal.NewMemory()
	if err := st.Append(t.Context(), "t", 0, []journal.Record{newRecord("a")}); err != nil {
		t.Fatal(err)
	}
	_, triggerErr := st.PutTrigger(ended, journal.Trigger{ID: "x"})
	_, addErr := st.AddTicks(ended, nil, []journal.Tick{{Key: "k"}})
	_, takeErr := st.TakeTicks(ended, 1, time.Minute)
	_, leaseErr := st.AcquireLease(ended, "t", "me", "", time.Minute)
	_, lineErr := st.ListLines(ended, journal.LineRange{})
	var readErr, threadsErr, eachErr error
	for _, readErr = range st.Read(ended, "t", journal.Range{}) {
	}
	for _, threadsErr = range st.Threads(ended, "") {
	}
	st.EachFromSnapshot(ended, "t", func(_ journal.Record, err error) bool {
		eachErr = err
		return true
	})
	for i, err := range []error{
		st.Append(ended, "t", 1, []journal.Record{newRecord("b")}),
		st.Prune(ended, "t", 5), st.ReleaseLease(ended, "t", "me"), st.RemoveTrigger(ended, "x"),
		st.ChangeTick(ended, journal.Tick{Key: "k"}, 0), st.FillLine(ended, journal.Line{Thread: "t", Status: "done"}),
		triggerErr, addErr, takeErr, leaseErr, lineErr, readErr, threadsErr, eachErr,
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	countRecords(t, st, 1)
	list, _, err := st.ListTriggers(t.Context())
	ticks, tickErr := st.ListTicks(t.Context(), "", 9)
	lease, leaseErr := st.ReadLease(t.Context(), "t")
	line, _, lineErr := st.ReadLine(t.Context(), "t")
	err = errors.Join(err, tickErr, leaseErr, lineErr)
	if len(list)+len(ticks) > 0 || lease.Owner != "" || line.Status != "" || err != nil {
		t.Errorf("%v %v %v %v: %v", list, ticks, lease, line, err)
	}
}

// A tick is there once, is given to one at a time, and is forgotten long after its end.
func TestTicksOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := journal.NewMemory()
		ctx := t.Context()
		trigger := journal.Trigger{ID: "x", Data: []byte("d")}
		tick := func(key string) journal.Tick {
			return journal.Tick{Trigger: "x", Key: key, State: journal.TickWaiting, Time: time.Now()}
		}
		stored, err := st.AddTicks(ctx, &trigger, []journal.Tick{tick("b"), tick("a")})
		if err != nil || trigger.Token == "" || len(stored) != 2 {
			t.Fatal(trigger, stored, err)
		}
		stale := journal.Trigger{ID: "x", Token: "stale"}
		if _, err := st.AddTicks(ctx, &stale, []journal.Tick{tick("c")}); !errors.Is(err, journal.ErrConflict) {
			t.Errorf("a trigger that was changed meanwhile: %v", err)
		}
		time.Sleep(time.Second)
		changed := tick("a")
		changed.Note = "again"
		again, err := st.AddTicks(ctx, nil, []journal.Tick{changed})
		if err != nil || again[0].Token != stored[1].Token || again[0].Note != "" {
			t.Errorf("added again: %+v, %v", again, err)
		}
		take := func(limit int) (keys string) {
			taken, err := st.TakeTicks(ctx, limit, time.Minute)
			if err != nil {
				t.Error(err)
			}
			for _, k := range taken {
				keys += fmt.Sprint(k.Key, k.Attempts)
			}
			return keys
		}
		if got := take(1) + " " + take(9) + " " + take(9); got != "a1 b1 " {
			t.Errorf("taken: %q", got)
		}
		if err := st.ChangeTick(ctx, stored[1], 0); !errors.Is(err, journal.ErrConflict) {
			t.Errorf("a tick that someone else has taken: %v", err)
		}
		time.Sleep(time.Minute)
		taken, err := st.TakeTicks(ctx, 9, time.Minute)
		if err != nil || len(taken) != 2 || taken[0].Attempts != 2 {
			t.Fatalf("after the time: %+v, %v", taken, err)
		}
		taken[0].State = "done"
		if err := st.ChangeTick(ctx, taken[0], 0); err != nil {
			t.Error(err)
		}
		time.Sleep(journal.TicksKept + time.Second)
		if _, err := st.AddTicks(ctx, nil, nil); err != nil {
			t.Error(err)
		}
		if list, err := st.ListTicks(ctx, "x", 9); err != nil || len(list) != 1 || list[0].Key != "b" {
			t.Errorf("what is remembered: %+v, %v", list, err)
		}
		if err := st.RemoveTrigger(ctx, "x"); err != nil || take(9) != "" {
			t.Errorf("ticks of a trigger that was removed are taken (%v)", err)
		}
	})
}
