package graph_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// idle does nothing.
func idle(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }

// writes is a node that writes.
func writes(ws ...graph.Write) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) { return graph.Put(ws...), nil }
}

// fails is a node that fails.
func fails(why string) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, errors.New(why) }
}

// asks is a node that asks for a text and hands it to then.
func asks(then func(answer string)) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		if err == nil && then != nil {
			then(a)
		}
		return graph.Update{}, err
	}
}

// branch is an edge with a Pick that sees the state.
func branch(from string, cases map[string]string, pick func(graph.State) string) graph.Edge {
	return graph.Edge{From: []string{from}, Cases: cases, Pick: func(s graph.State) ([]string, error) { return []string{pick(s)}, nil }}
}

func join(to string, from ...string) graph.Edge { return graph.Edge{From: from, To: []string{to}} }

// kept is a Runner with a store of its own.
func kept(g *graph.Graph) *graph.Runner {
	return &graph.Runner{Graph: g, Store: journal.NewMemory()}
}

// The thread of all scenarios.
const thread = "t"

func start(t testing.TB, r *graph.Runner, set ...graph.Write) (graph.Result, error) {
	t.Helper()
	return r.Invoke(t.Context(), graph.Input{Thread: thread, Set: set})
}

func resume(t testing.TB, r *graph.Runner, answers ...graph.Answer) (graph.Result, error) {
	t.Helper()
	return r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Answers: answers})
}

// is requires a status, and an error where the status is bad news.
func is(t testing.TB, want graph.Status, res graph.Result, err error) graph.Result {
	t.Helper()
	bad := want != graph.Done && want != graph.Waiting && want != graph.Paused
	if res.Status != want || (err != nil) != bad {
		t.Fatalf("status %v, want %v; error %v", res.Status, want, err)
	}
	return res
}

func ids(qs []graph.Question) (ids []string) {
	for _, q := range qs {
		ids = append(ids, q.ID)
	}
	return ids
}

// says answers a question with a text.
func says(id, text string) graph.Answer { return graph.Answer{ID: id, Value: text} }

// copyBefore returns the thread as a process left it that died before the first record
// for which stop is true.
func copyBefore(t testing.TB, s journal.Store, stop func(journal.Record) bool) *journal.Memory {
	t.Helper()
	m := journal.NewMemory()
	recs := journalOf(t, s, thread)
	if i := slices.IndexFunc(recs, stop); i >= 0 {
		recs = recs[:i]
	}
	if err := m.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	return m
}

// nth stops before the nth record of a kind.
func nth(k journal.Kind, n int) func(journal.Record) bool {
	return func(r journal.Record) bool {
		if r.Kind == k {
			n--
		}
		return n == 0
	}
}

// A tally counts, from any goroutine.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
	return c.n[what]
}

func (c *tally) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// counts is a node that counts that it ran.
func (c *tally) counts(what string) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) {
		c.add(what)
		return graph.Update{}, nil
	}
}

var counter = graph.Last[int]("count")

func inc(_ context.Context, s graph.State) (graph.Update, error) {
	return graph.Put(counter.Set(counter.Get(s) + 1)), nil
}
