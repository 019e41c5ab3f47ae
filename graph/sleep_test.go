package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// sleeps is a node that sleeps for durations, one after the other, and then counts that it has.
func (c *tally) sleeps(what string, durations ...time.Duration) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for _, d := range durations {
			if err := graph.Sleep(ctx, d); err != nil {
				return graph.Update{}, err
			}
			c.add(fmt.Sprint(what, " ", d))
		}
		c.add(what)
		return graph.Update{}, nil
	}
}

// countKind returns how many records of a kind the thread has.
func countKind(t testing.TB, s journal.Store, k journal.Kind) (n int) {
	t.Helper()
	for _, r := range journalOf(t, s, thread) {
		if r.Kind == k {
			n++
		}
	}
	return n
}

// dueIn requires that a result waits for a duration from now, everywhere where that shows.
func dueIn(t testing.TB, s journal.Store, res graph.Result, d time.Duration) {
	t.Helper()
	want := time.Now().Add(d).UTC()
	snap, err := history.Inspect(t.Context(), s, thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	var line history.Line
	for _, r := range journalOf(t, s, thread) {
		if err := line.Add(&r); err != nil {
			t.Fatal(err)
		}
	}
	var listed history.RunInfo
	for info, err := range s.Threads(t.Context(), thread) {
		if listed, err = history.Describe(info); err != nil {
			t.Fatal(err)
		}
	}
	for where, due := range map[string]time.Time{"result": res.Due, "snapshot": snap.Due, "line": line.Due, "listing": listed.Due} {
		if !due.Equal(want) {
			t.Errorf("the %s says that the run is due at %v, want %v", where, due, want)
		}
	}
	if len(snap.Timers) != len(res.Timers) || len(snap.Questions) != len(res.Questions) {
		t.Errorf("%d timers and %d questions are inspected, want %d and %d", len(snap.Timers), len(snap.Questions), len(res.Timers), len(res.Questions))
	}
}

// A run that sleeps is parked: a resume before its time parks it again, one at its time continues it, once.
func TestSleepParksTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		g := compile(t, graph.Def{
			Name:    "g",
			Start:   []string{"a"},
			Timeout: time.Minute,
			Nodes: []graph.Node{
				{Name: "a", Run: c.sleeps("a", 2*time.Hour, 30*time.Minute), Timeout: time.Second},
				{Name: "b", Run: c.counts("b")},
			},
			Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
		})
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		dueIn(t, r.Store, res, 2*time.Hour)
		if len(res.Timers) != 1 || res.Timers[0].Node != "a" || len(res.Questions) != 0 {
			t.Errorf("timers %v, questions %v", res.Timers, res.Questions)
		}

		time.Sleep(2*time.Hour - time.Microsecond)
		res, err = resume(t, r)
		is(t, graph.Waiting, res, err)
		dueIn(t, r.Store, res, time.Microsecond)
		if n := countKind(t, r.Store, journal.KindAnswer); n != 0 {
			t.Errorf("the timer has fired before its time: %d answers", n)
		}

		time.Sleep(time.Microsecond)
		res, err = resume(t, r)
		is(t, graph.Waiting, res, err)
		dueIn(t, r.Store, res, 30*time.Minute)
		time.Sleep(24 * time.Hour)
		res, err = resume(t, r)
		is(t, graph.Done, res, err)
		if asked, fired := countKind(t, r.Store, journal.KindQuestion), countKind(t, r.Store, journal.KindAnswer); asked != 2 || fired != 2 {
			t.Errorf("%d timers were recorded and %d have fired, want 2 and 2", asked, fired)
		}
		if c.of("a") != 1 || c.of("b") != 1 || c.of("a 2h0m0s") != 2 {
			t.Errorf("the nodes ran %v", c.n)
		}
		if !res.Due.IsZero() {
			t.Errorf("a run that is done is due at %v", res.Due)
		}
	})
}

// A time that has come already is recorded, and nothing waits.
func TestSleepOfThePast(t *testing.T) {
	var c tally
	g := compile(t, graph.Def{
		Name:  "g",
		Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			if err := graph.SleepUntil(ctx, time.Now().Add(-time.Hour)); err != nil {
				return graph.Update{}, err
			}
			return c.sleeps("a", 0, -time.Second)(ctx, s)
		}}},
		Edges: []graph.Edge{edge("a", graph.End)},
	})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Done, res, err)
	if n := countKind(t, r.Store, journal.KindAnswer); n != 3 || c.of("a") != 1 {
		t.Errorf("%d timers have fired, want 3; the node has ended %d times", n, c.of("a"))
	}
	if _, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{}); err == nil || !strings.Contains(err.Error(), "needs a store") {
		t.Errorf("without a store: %v", err)
	}
	if err := graph.Sleep(t.Context(), 0); err == nil {
		t.Error("a Sleep outside a node succeeds")
	}
}

// Timers of parallel tasks and of children are waited for together, the first first. One that is due when the others
// have ended continues in the same drive. Answers to other questions do not disturb them, and none can be given to
// them.
func TestSleepBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tally
		child := compile(t, graph.Def{
			Name:  "child",
			Start: []string{"x"},
			Nodes: []graph.Node{{Name: "x", Run: c.sleeps("x", 3*time.Hour)}},
			Edges: []graph.Edge{edge("x", graph.End)},
		})
		slow := func(context.Context, graph.State) (graph.Update, error) {
			if c.add("slow") == 1 {
				time.Sleep(time.Minute)
			}
			return graph.Update{}, nil
		}
		together := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			long := graph.Sleep(graph.NameQuestions(ctx, "long"), 10*time.Hour)
			short := graph.Sleep(ctx, time.Hour)
			if again := graph.Sleep(ctx, time.Hour); short != nil && !strings.Contains(fmt.Sprint(again), "sleeps already") {
				t.Errorf("a second timer of the same name: %v", again)
			}
			return graph.Update{}, errors.Join(long, short)
		}
		g := compile(t, graph.Def{
			Name:  "g",
			Start: []string{"ask", "brief", "kid", "slow", "two"},
			Nodes: []graph.Node{
				{Name: "ask", Run: asks(nil)},
				{Name: "brief", Run: c.sleeps("brief", time.Second)},
				{Name: "kid", Graph: child},
				{Name: "slow", Run: slow},
				{Name: "two", Run: together},
				{Name: "end", Run: c.counts("end")},
			},
			Edges: []graph.Edge{join("end", "ask", "brief", "kid", "slow", "two"), edge("end", graph.End)},
		})
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		if c.of("brief") != 1 {
			t.Error("the timer that was due when the others had stopped has not fired")
		}
		dueIn(t, r.Store, res, time.Hour-time.Minute)
		if len(res.Timers) != 3 || !slices.Equal(ids(res.Questions), []string{"ask"}) {
			t.Fatalf("timers %v, questions %v", ids(res.Timers), ids(res.Questions))
		}
		_, err = resume(t, r, says(res.Timers[0].ID, "now"))
		if err == nil || !strings.Contains(err.Error(), "waits for a time") {
			t.Errorf("an answer to a timer: %v", err)
		}
		res, err = resume(t, r, says("", "fine"))
		is(t, graph.Waiting, res, err)
		for hours := 1; hours <= 12 && res.Status == graph.Waiting; hours++ {
			time.Sleep(time.Hour)
			res, err = resume(t, r)
		}
		is(t, graph.Done, res, err)
		if c.of("end") != 1 || c.of("x") != 1 || c.of("slow") != 1 {
			t.Errorf("the nodes ran %v", c.n)
		}
	})
}

// asksUntil is a node that asks with a deadline, and says how it went.
func asksUntil(d time.Duration, then func(answer string, err error)) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?", Deadline: d})
		if errors.Is(err, graph.ErrWaiting) {
			return graph.Update{}, err
		}
		then(a, err)
		return graph.Update{}, nil
	}
}

// A question whose deadline passes is answered by time, once. A late answer is refused, before and after the deadline
// is recorded.
func TestDeadlineOfAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got error
		var c tally
		g := compile(t, graph.Def{
			Name:  "g",
			Start: []string{"ask", "other"},
			Nodes: []graph.Node{
				{Name: "ask", Run: asksUntil(48*time.Hour, func(_ string, err error) {
					c.add("ask")
					got = err
				})},
				{Name: "other", Run: asks(nil)},
			},
			Edges: []graph.Edge{edge("ask", graph.End), edge("other", graph.End)},
		})
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		dueIn(t, r.Store, res, 48*time.Hour)
		time.Sleep(49 * time.Hour)
		late := func(when string) {
			t.Helper()
			if err := r.CheckAnswers(t.Context(), thread, says("ask", "yes")); err == nil || !strings.Contains(err.Error(), "too late") {
				t.Errorf("%s, a late answer is checked: %v", when, err)
			}
			_, err = resume(t, r, says("ask", "yes"))
			if ae := (*graph.AnswerError)(nil); !errors.As(err, &ae) || !strings.Contains(err.Error(), "too late") {
				t.Errorf("%s, a late answer: %v", when, err)
			}
		}
		late("before it is recorded")
		res, err = resume(t, r)
		is(t, graph.Waiting, res, err)
		late("after it is recorded")
		refused := (*graph.RefusedError)(nil)
		if !errors.Is(got, graph.ErrDeadline) || !errors.As(got, &refused) || !refused.Due.Equal(time.Now().Add(-time.Hour)) {
			t.Errorf("the node got %v", got)
		}
		if !res.Due.IsZero() || !slices.Equal(ids(res.Questions), []string{"other"}) {
			t.Errorf("due %v, open %v", res.Due, ids(res.Questions))
		}
		res, err = resume(t, r, says("other", "fine"))
		is(t, graph.Done, res, err)
		if n := countKind(t, r.Store, journal.KindAnswer); n != 2 || c.of("ask") != 1 {
			t.Errorf("%d answers, and the node has ended %d times", n, c.of("ask"))
		}
	})
}

// An answer before the deadline wins, also one that was given ahead and one that must be given again. A person who
// declines is no deadline.
func TestAnswerBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got error
		answered := ""
		g := compile(t, graph.Def{
			Name:  "g",
			Start: []string{"ask"},
			Nodes: []graph.Node{
				{Name: "ask", Run: asksUntil(time.Hour, func(a string, err error) {
					answered = a
					got = err
				})},
				{Name: "wait", Run: (&tally{}).sleeps("wait", 5*time.Hour)},
			},
			Edges: []graph.Edge{edge("ask", "wait"), edge("wait", graph.End)},
		})
		for _, given := range []graph.Answer{says("ask", "yes"), {ID: "ask", Refused: "no one is here"}} {
			r := kept(g)
			res, err := start(t, r)
			is(t, graph.Waiting, res, err)
			time.Sleep(time.Hour - time.Second)
			res, err = resume(t, r, given)
			is(t, graph.Waiting, res, err)
			if answered != given.Value && given.Refused == "" || (got != nil) != (given.Refused != "") || errors.Is(got, graph.ErrDeadline) {
				t.Errorf("the node got %q, %v", answered, got)
			}
			time.Sleep(5 * time.Hour)
			res, err = resume(t, r)
			is(t, graph.Done, res, err)
		}
		r := kept(g)
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("", "ahead")}})
		is(t, graph.Waiting, res, err)
		if answered != "ahead" {
			t.Errorf("the node got %q", answered)
		}
	})
}

// An answer through a handle to a question whose deadline passes while a sibling works is refused, and the deadline
// counts when the sibling has stopped.
func TestDeadlineWhileASiblingWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handle graph.Handle
		var got, late error
		slow := func(context.Context, graph.State) (graph.Update, error) {
			time.Sleep(2 * time.Hour)
			_, late = handle.Answer(says("ask", "yes"))
			return graph.Update{}, nil
		}
		g := compile(t, graph.Def{
			Name:  "g",
			Start: []string{"ask", "slow"},
			Nodes: []graph.Node{
				{Name: "ask", Run: asksUntil(time.Hour, func(_ string, err error) { got = err })},
				{Name: "slow", Run: slow},
			},
			Edges: []graph.Edge{edge("ask", graph.End), edge("slow", graph.End)},
		})
		r := kept(g)
		var answered []graph.QuestionAnswered
		for e, err := range r.Run(t.Context(), graph.Input{Thread: thread, Handle: &handle, Topics: graph.AllTopics}) {
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := e.Body.(graph.QuestionAnswered); ok {
				answered = append(answered, a)
			}
		}
		if late == nil || !strings.Contains(late.Error(), "too late") || !errors.Is(got, graph.ErrDeadline) {
			t.Errorf("the late answer: %v; the node got %v", late, got)
		}
		if len(answered) != 1 || answered[0].ID != "ask" || answered[0].Refused == "" {
			t.Errorf("answered: %+v", answered)
		}
	})
}

// After a fork or an edit in the step that sleeps, its timers begin again; a copy of the journal keeps their time.
func TestSleepAfterForkEditAndCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := compile(t, graph.Def{
			Name:  "g",
			Keys:  []graph.AnyKey{counter},
			Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Run: (&tally{}).sleeps("a", time.Hour)}},
			Edges: []graph.Edge{edge("a", graph.End)},
		})
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		time.Sleep(30 * time.Minute)
		copied := &graph.Runner{Graph: g, Store: copyBefore(t, r.Store, func(journal.Record) bool { return false })}
		res, err = resume(t, copied)
		is(t, graph.Waiting, res, err)
		dueIn(t, copied.Store, res, 30*time.Minute)
		if _, err := r.Edit(t.Context(), thread, counter.Set(1)); err != nil {
			t.Fatal(err)
		}
		if snap, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || !snap.Due.IsZero() {
			t.Errorf("an edited run is due at %v (%v)", snap.Due, err)
		}
		res, err = resume(t, r)
		is(t, graph.Waiting, res, err)
		dueIn(t, r.Store, res, time.Hour)
		if err := history.Fork(t.Context(), r.Store, thread, res.Head, "fork"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "fork"})
		is(t, graph.Waiting, res, err)
		if want := time.Now().Add(time.Hour); !res.Due.Equal(want) {
			t.Errorf("the fork is due at %v, want %v", res.Due, want)
		}
	})
}

// Timers and deadlines are in snapshots, with what time has answered.
func TestSleepInASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := compile(t, graph.Def{
			Name:  "g",
			Keys:  []graph.AnyKey{counter},
			Start: []string{"loop", "ask"},
			Nodes: []graph.Node{
				{Name: "loop", Run: (&tally{}).sleeps("a", time.Hour, 10*time.Hour)},
				{Name: "ask", Run: asksUntil(time.Hour, func(string, error) {})},
			},
			Edges: []graph.Edge{edge("loop", graph.End), edge("ask", graph.End)},
		})
		r := kept(g)
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		time.Sleep(time.Hour)
		res, err = resume(t, r)
		is(t, graph.Waiting, res, err)
		if _, err := history.Prune(t.Context(), r.Store, thread, history.Keep{}); err != nil {
			t.Fatal(err)
		}
		dueIn(t, r.Store, res, 10*time.Hour)
		time.Sleep(10 * time.Hour)
		res, err = resume(t, r)
		is(t, graph.Done, res, err)
	})
}

// Whatever disturbs a run that sleeps and asks with deadlines, it ends in the same way.
func TestExploreSleep(t *testing.T) {
	log := graph.Append[string]("log")
	nap := func(what string, durations ...time.Duration) graph.Func {
		return func(ctx context.Context, _ graph.State) (graph.Update, error) {
			for i, d := range durations {
				name := fmt.Sprint(what, i)
				if _, err := graph.Do(ctx, name, func(context.Context) (string, error) { return name, nil }); err != nil {
					return graph.Update{}, err
				}
				if err := graph.Sleep(ctx, d); err != nil {
					return graph.Update{}, err
				}
			}
			return graph.Put(log.Set([]string{what})), nil
		}
	}
	build := func() (*graph.Graph, error) {
		child, err := graph.Compile(graph.Def{
			Name:  "child",
			Keys:  []graph.AnyKey{log},
			Start: []string{"x", "y"},
			Nodes: []graph.Node{{Name: "x", Run: nap("x", time.Minute)}, {Name: "y", Run: nap("y", time.Hour)}},
			Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)},
		})
		if err != nil {
			return nil, err
		}
		ask := func(ctx context.Context, _ graph.State) (graph.Update, error) {
			a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?", Deadline: -time.Second})
			if errors.Is(err, graph.ErrDeadline) {
				return graph.Put(log.Set([]string{"deadline"})), nil
			}
			return graph.Put(log.Set([]string{a})), err
		}
		return graph.Compile(graph.Def{
			Name:  "g",
			Keys:  []graph.AnyKey{log},
			Start: []string{"a", "ask", "kid"},
			Nodes: []graph.Node{{Name: "a", Run: nap("a", time.Second, 2*time.Hour)}, {Name: "ask", Run: ask}, {Name: "kid", Graph: child}, {Name: "b", Run: nap("b", time.Hour)}},
			Edges: []graph.Edge{join("b", "a", "ask", "kid"), edge("b", graph.End)},
		})
	}
	graphtest.Explore(t, func() graphtest.Subject {
		return graphtest.Subject{Runner: func() (*graph.Runner, error) {
			g, err := build()
			return &graph.Runner{Graph: g}, err
		}}
	}, graphtest.ExploreOptions{Runs: 300})
}
