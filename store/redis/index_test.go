package redis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/store/redis"
)

// listLines returns the lines of a range.
func listLines(t *testing.T, s *redis.Store, r journal.LineRange) []journal.Line {
	t.Helper()
	list, err := s.ListLines(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The first program that opens a database of format 1 gives its threads lines, also if an earlier one has ended
// meanwhile.
func TestExtraLinesOfOlderFormat(t *testing.T) {
	const threads = 1500 // of two batches
	for name, unlined := range map[string]string{"at once": "", "interrupted": "t0700"} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			c := connect(t, server.URL)
			s := open(t, server.URL)
			var want []journal.Line
			for i := range threads {
				thread := fmt.Sprintf("t%04d", i)
				if err := s.Append(t.Context(), thread, 0, records(thread, 1)); err != nil {
					t.Fatal(err)
				}
				want = append(want, journal.Line{Thread: thread, Order: thread})
			}
			slices.Reverse(want)
			pipe := c.Pipeline()
			for _, l := range want {
				if l.Thread <= unlined {
					continue
				}
				pipe.HDel(t.Context(), "{raddle}:t:"+l.Thread, "place", "status", "label", "wait", "parent", "details")
				pipe.ZRem(t.Context(), "{raddle}:l:", l.Order+"\x00\x00"+l.Thread)
				pipe.HIncrBy(t.Context(), "{raddle}:lines", "", -1)
			}
			if unlined == "" {
				pipe.Del(t.Context(), "{raddle}:lines")
				pipe.Set(t.Context(), "{raddle}:format", "1", 0)
			} else {
				pipe.Set(t.Context(), "{raddle}:unlined", unlined, 0)
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if list := listLines(t, s, journal.LineRange{}); len(list) > threads/2 {
				t.Fatalf("%d lines are left", len(list))
			}
			s = open(t, server.URL)
			if d := cmp.Diff(want, listLines(t, s, journal.LineRange{Statuses: []string{"done"}})); d != "" {
				t.Error(d)
			}
			if count, err := s.CountLines(t.Context()); err != nil || count[""] != threads {
				t.Errorf("there are %v lines (%v)", count, err)
			}
			left := c.Exists(t.Context(), "{raddle}:unlined").Val()
			if found := c.Get(t.Context(), "{raddle}:format").Val(); found != "3" || left > 0 {
				t.Errorf("the format is %q, and %d threads are noted", found, left)
			}
			line := journal.Line{Thread: "t0001", Order: "z", Status: "done", Label: "x"}
			if err := s.FillLine(t.Context(), line); err != nil {
				t.Fatal(err)
			}
			open(t, server.URL) // and changes nothing
			if got := listLines(t, s, journal.LineRange{Limit: 1}); len(got) != 1 || got[0].Order != "z" {
				t.Errorf("the first line is %+v", got)
			}
		})
	}
}

// Lines are in the order of bytes, whatever bytes their places, threads, statuses and labels have. A line whose thread
// was lost is still listed, and does not end the list.
func TestExtraLinesOfAnyBytes(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.URL)
	texts := []string{"a", "a\x00", "a\x00\x00", "a\x00\x00b", "a\x00\x01", "a\x00\xff", "a\x01", "a\xff", "\x00", "%1", "é"}
	var want []journal.Line
	for _, place := range texts {
		for i, thread := range texts {
			l := journal.Line{
				Thread: place + "|" + thread,
				Order:  place,
				Status: texts[(i+1)%len(texts)],
				Label:  thread,
			}
			if err := s.Append(journal.WithLine(t.Context(), &l), l.Thread, 0, records(l.Thread, 1)); err != nil {
				t.Fatal(err)
			}
			want = append(want, l)
		}
	}
	slices.SortFunc(want, func(a, b journal.Line) int {
		if order := strings.Compare(b.Order, a.Order); order != 0 {
			return order
		}
		return strings.Compare(b.Thread, a.Thread)
	})
	var all []journal.Line
	r := journal.LineRange{Limit: 7}
	for {
		page := listLines(t, s, r)
		all = append(all, page...)
		if len(page) < r.Limit || len(all) > len(want) {
			break
		}
		r.Below = page[r.Limit-1].Order
		r.BelowThread = page[r.Limit-1].Thread
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
	for _, l := range []journal.Line{want[3], want[len(want)-1]} {
		list := listLines(t, s, journal.LineRange{Statuses: []string{l.Status}, Label: l.Label})
		found := slices.ContainsFunc(list, func(found journal.Line) bool { return found.Thread == l.Thread })
		if len(list) != len(texts) || !found {
			t.Errorf("%q of %q: %+v", l.Status, l.Label, list)
		}
	}
	if err := connect(t, server.URL).Del(t.Context(), "{raddle}:t:"+want[0].Thread).Err(); err != nil {
		t.Fatal(err)
	}
	lost := journal.Line{Thread: want[0].Thread, Order: want[0].Order}
	if d := cmp.Diff([]journal.Line{lost, want[1]}, listLines(t, s, journal.LineRange{Limit: 2})); d != "" {
		t.Error(d)
	}
}
