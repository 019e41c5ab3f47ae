package runs

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/readtest"
)

// countedLines is a store that counts the lines which lists have read, and how often something was looked up.
type countedLines struct {
	*readtest.Counting
	lines int
	looks int
}

func (c *countedLines) noteLines(list []journal.Line, err error) ([]journal.Line, error) {
	c.lines += len(list)
	c.looks++
	return list, err
}

func (c *countedLines) ListLines(ctx context.Context, r journal.LineRange) ([]journal.Line, error) {
	return c.noteLines(c.Counting.ListLines(ctx, r))
}

func (c *countedLines) ListWaiting(ctx context.Context, r journal.WaitRange) ([]journal.Line, error) {
	return c.noteLines(c.Counting.ListWaiting(ctx, r))
}

func (c *countedLines) ListForks(ctx context.Context, parents []string) ([]journal.Line, error) {
	return c.noteLines(c.Counting.ListForks(ctx, parents))
}

func (c *countedLines) ReadLine(ctx context.Context, thread string) (journal.Line, bool, error) {
	c.looks++
	return c.Counting.ReadLine(ctx, thread)
}

func (c *countedLines) CountLines(ctx context.Context) (map[string]int, error) {
	c.looks++
	return c.Counting.CountLines(ctx)
}

// takeCost returns what was read since the last call: lines, looks at the index, and records of all threads.
func (c *countedLines) takeCost(threads iter.Seq[string]) (lines, looks, records int) {
	for thread := range threads {
		records += c.Take(thread).Records
	}
	lines = c.lines
	looks = c.looks
	c.lines = 0
	c.looks = 0
	return lines, looks, records
}

// parkRuns adds copies of a run that waits to a store, the first of which waits longest, and returns their ids.
func parkRuns(t *testing.T, st *Store, n int) (ids []string) {
	t.Helper()
	source := journal.NewMemory()
	if _, err := (&graph.Runner{Graph: compileAsking(t), Store: source}).Invoke(t.Context(), graph.Input{Thread: "a", Run: "a", Label: "asking"}); err != nil {
		t.Fatal(err)
	}
	var recs []journal.Record
	for r, err := range source.Read(t.Context(), "a", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.Sum = 0
		recs = append(recs, r)
	}
	for i := range n {
		id := fmt.Sprintf("1park%06d", (i*7919)%n)
		copied := slices.Clone(recs)
		for k := range copied {
			copied[k].Time += int64(i) * 1000
		}
		if err := st.Append(t.Context(), id, 0, copied); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// openCounted returns an archive of a store in memory that counts.
func openCounted(t *testing.T) (*Archive, *countedLines, *Store) {
	t.Helper()
	counted := &countedLines{Counting: &readtest.Counting{Memory: journal.NewMemory()}}
	a := NewArchive(config.Dirs{State: t.TempDir()}, "memory:")
	if err := a.AttachStore(counted); err != nil {
		t.Fatal(err)
	}
	st, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	return a, counted, st
}

// A page of the inbox reads as many lines as it shows, and no journal, however many runs wait.
func TestCostOfOpenRuns(t *testing.T) {
	const limit = 50
	var costs []string
	for _, n := range []int{100, 10_000} {
		a, counted, st := openCounted(t)
		ids := parkRuns(t, st, n)
		counted.takeCost(slices.Values(ids))
		var after OpenPoint
		var all []string
		for page := 0; ; page++ {
			open, damaged, more, err := a.ListOpenRuns(t.Context(), after, limit)
			if err != nil || len(damaged) > 0 {
				t.Fatalf("%v, %v", damaged, err)
			}
			for i := range open {
				r := &open[i]
				if len(r.Open) != 1 || r.Open[0].Part || !r.Open[0].Since.Equal(r.Since) || r.Status != "waiting" {
					t.Fatalf("%+v", r)
				}
				all = append(all, r.Run)
				after = r.Point()
			}
			lines, looks, records := counted.takeCost(slices.Values(ids))
			if page == 0 {
				costs = append(costs, fmt.Sprint(lines, looks, records))
			}
			if lines > limit+1 || records > 0 {
				t.Fatalf("page %d of %d runs reads %d lines, %d records", page, n, lines, records)
			}
			if !more {
				break
			}
		}
		if !slices.Equal(all, ids) {
			t.Errorf("of %d runs, the pages have %d, or another order", n, len(all))
		}
	}
	if costs[0] != costs[1] {
		t.Errorf("a page of 100 and of 10,000 runs costs (lines, looks, records) %v", costs)
	}
}

// What the index says of questions is what it says after it was written again, and what the journals say: of runs that
// were changed, whose questions are long, or many, and of sessions.
func TestReindexedQuestions(t *testing.T) {
	a, counted, st := openCounted(t)
	parkRuns(t, st, 5)
	long := strings.Repeat("é", maxLineQuestion)
	for thread, recs := range recordRuns(t) {
		if err := st.Append(t.Context(), thread, 0, recs); err != nil {
			t.Fatal(err)
		}
	}
	asking := func(name, prompt string, n int) {
		r := &graph.Runner{Graph: compileQuestions(t, prompt, n), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: name, Run: "2" + name, Label: "many"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: name, Answers: []graph.Answer{{ID: "ask0", Value: "yes"}}}); err != nil {
			t.Fatal(err)
		}
	}
	asking("long", long, 2)
	asking("many", "Why?", maxLineAsked+20)
	asking(NameSession("many", "talk"), "Who?", 3)
	if err := history.Fork(t.Context(), st, "many", 0, "copy"); err != nil {
		t.Fatal(err)
	}
	list := func() (rows []string) {
		open, _, _, err := a.ListOpenRuns(t.Context(), OpenPoint{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range open {
			r := &open[i]
			d, err := a.ReadRunDetail(t.Context(), r.threadName())
			if err != nil {
				t.Fatal(err)
			}
			if asked := graph.ForPeople(d.Snapshot.Questions); len(r.Open) != min(len(asked), maxLineAsked) {
				t.Errorf("%s has %d questions, want %d", r.Run, len(r.Open), len(asked))
			} else {
				for n, q := range r.Open {
					if q.Part {
						asked[n].Prompt = cutText(asked[n].Prompt, maxLineAsk)
						asked[n].Options = nil
					}
					if d := cmp.Diff(asked[n], q.Question); d != "" {
						t.Errorf("%s (-journal +index): %s", r.Run, d)
					}
				}
			}
			r.line = nil
			rows = append(rows, fmt.Sprintf("%+v", *r))
		}
		return rows
	}
	first := list()
	if len(first) < 9 || !strings.Contains(strings.Join(first, ""), "Part:true") {
		t.Fatalf("the list has %d runs: %s", len(first), first)
	}
	all, err := counted.ListLines(t.Context(), journal.LineRange{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all { // as an earlier version leaves the store
		var recs []journal.Record
		for r, err := range counted.Read(t.Context(), l.Thread, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			recs = append(recs, r)
		}
		if err := counted.Prune(t.Context(), l.Thread, math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		if err := counted.Append(t.Context(), l.Thread, 0, recs); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(first, list()); d != "" {
		t.Errorf("after the index was written again (-before +after):\n%s", d)
	}
	if count, err := counted.CountLines(t.Context()); err != nil || count[""] > 0 {
		t.Errorf("the lines are %v (%v)", count, err)
	}
}

// A run that is asked something while other tasks of it work is in the inbox.
func TestOpenRunThatWorks(t *testing.T) {
	a, _, st := openCounted(t)
	id := parkRuns(t, st, 1)[0]
	whole, err := history.Inspect(t.Context(), st, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var recs []journal.Record
	for r, err := range st.Read(t.Context(), id, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.Sum = 0
		recs = append(recs, r)
	}
	leaser := st.Store.(journal.Leaser)
	if _, err := leaser.AcquireLease(t.Context(), "works", "elsewhere", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	for i, r := range recs[:len(recs)-1] { // without its end
		if err := st.Append(t.Context(), "works", int64(i), []journal.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	open, _, _, err := a.ListOpenRuns(t.Context(), OpenPoint{}, 0)
	if err != nil || len(open) != 2 || open[1].Run != "works" || open[1].Status != Running || open[1].Open[0].Prompt != whole.Questions[0].Prompt {
		t.Errorf("the open runs are %+v (%v)", open, err)
	}
}

// What lists and changes some runs reads the lines of these alone: of 10,000 that wait, two work, three have ended, and
// two are forks.
func TestCostOfSomeRuns(t *testing.T) {
	a, counted, st := openCounted(t)
	ids := parkRuns(t, st, 10_000)
	r := &graph.Runner{Graph: compileAsking(t), Store: st}
	for _, id := range []string{"2a", "2b", "2c"} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: id, Run: id, Label: "asking", Ahead: []graph.Answer{{Value: "lake"}}}); err != nil {
			t.Fatal(err)
		}
	}
	leaser := st.Store.(journal.Leaser)
	for _, id := range []string{"2works", "2works2"} {
		if _, err := leaser.AcquireLease(t.Context(), id, "elsewhere", "", time.Minute); err != nil {
			t.Fatal(err)
		}
		for rec, err := range st.Read(t.Context(), "2a", journal.Range{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			rec.Sum = 0
			if err := st.Append(t.Context(), id, 0, []journal.Record{rec}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range []string{"3fork", "3fork2"} {
		if err := ForkThread(t.Context(), st, journal.Point{Thread: "2b", Seq: 2}, id); err != nil {
			t.Fatal(err)
		}
	}
	cost := func(what string, most int, list func() ([]string, error), want ...string) {
		t.Helper()
		counted.takeCost(slices.Values(ids))
		got, err := list()
		lines, looks, records := counted.takeCost(slices.Values(ids))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
		if lines+looks > most || records > 0 {
			t.Errorf("%s reads %d lines with %d looks, and %d records", what, lines, looks, records)
		}
	}
	cost("those that work", 12, func() (got []string, err error) {
		for i, err := range a.EachRun(t.Context(), RunRange{Status: Running}) {
			if err != nil {
				return nil, err
			}
			got = append(got, i.Run)
		}
		return got, nil
	}, "2works2", "2works")
	cost("those that have ended", 12, func() ([]string, error) {
		list, err := a.ListEnded(t.Context())
		return listed(list), err
	}, "2c", "2b", "2a")
	cost("those that ended some time ago", 24, func() ([]string, error) { return a.ListEndedRuns(t.Context(), time.Nanosecond, time.Hour) }, "2c", "2b", "2a")
	cost("the newest", firstLines+4, func() ([]string, error) {
		list, err := a.ListNewest(t.Context(), "", 2)
		return listed(list), err
	}, "3fork2", "3fork")
	cost("those whose ids begin so", firstLines+4, func() ([]string, error) {
		list, err := a.ListNewest(t.Context(), "1park00999", 3)
		return listed(list), err
	}, "1park009999", "1park009998", "1park009997")
	cost("forks", 4, func() (got []string, err error) {
		forks, err := ListForks(t.Context(), a, "2b")
		for _, f := range forks {
			got = append(got, f.String())
		}
		return got, err
	}, "3fork2@2", "3fork@2")
	cost("how many there are", 12, func() ([]string, error) {
		count, err := a.CountRuns(t.Context())
		return []string{fmt.Sprint(count)}, err
	}, "map[done:3 paused:2 running:2 waiting:10000]")
}

// The tree of runs is the same from the index as from the records, and a part of it costs what it shows.
func TestTreeOfRuns(t *testing.T) {
	a, counted, st := openCounted(t)
	ids := parkRuns(t, st, 3000)
	fork := func(from string, at int64, into string) {
		t.Helper()
		if err := history.Fork(t.Context(), st, from, at, into); err != nil {
			t.Fatal(err)
		}
	}
	fork("1park002990", 2, "3b")
	fork("1park002990", 1, "3a")
	fork("3b", 0, "3c")
	fork("1park000001", 0, "4gone")
	fork("4gone", 0, "4left")
	turn := graph.Input{Thread: NameSession("asking", "main"), Run: "9turn", Label: "asking"}
	if _, err := (&graph.Runner{Graph: compileAsking(t), Store: st}).Invoke(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	fork(turn.Thread, 0, turn.Thread+"~2")
	fork("3a", 0, "5x") // a circle
	fork("5x", 0, "5y")
	for _, id := range []string{"4gone", "5x"} {
		if _, err := a.RemoveRun(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	fork("5y", 0, "5x")
	want, wantDepths, err := st.listLineage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counted.takeCost(slices.Values(ids))
	for _, enough := range []int{0, 5} {
		got, depths, err := a.ListRunTree(t.Context(), enough)
		if err != nil || len(got) < min(max(enough, 1), len(want)) {
			t.Fatal(err, len(got))
		}
		for i := range got {
			got[i].line = nil
		}
		if d := cmp.Diff(want[:len(got)], got, cmp.AllowUnexported(Info{})); d != "" || !slices.Equal(depths, wantDepths[:len(got)]) {
			t.Errorf("of %d, the tree is another one (-records +index):\n%.3000s\n%v, want %v", enough, d, depths, wantDepths[:len(got)])
		}
		lines, _, records := counted.takeCost(slices.Values(ids))
		if enough > 0 && (lines > firstLines+20 || len(got) > firstLines+20) || records > 0 || enough == 0 && len(got) != len(want) {
			t.Errorf("a tree of %d runs of %d reads %d lines and %d records", len(got), len(want), lines, records)
		}
	}
}

// compileQuestions returns a graph whose nodes ask all at once.
func compileQuestions(t *testing.T, prompt string, n int) *graph.Graph {
	t.Helper()
	def := graph.Def{Name: "many"}
	for i := range n {
		name := fmt.Sprint("ask", i)
		def.Start = append(def.Start, name)
		def.Edges = append(def.Edges, graph.Edge{From: []string{name}, To: []string{graph.End}})
		def.Nodes = append(def.Nodes, graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (u graph.Update, err error) {
			_, err = graph.Interrupt[string](ctx, graph.Ask{Prompt: prompt, Options: []string{"yes", "no"}})
			return u, err
		}})
	}
	g, err := graph.Compile(def)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
