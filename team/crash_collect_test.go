package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A gate is open once and for all.
type gate struct {
	opened chan struct{}
	open   func()
}

func newGate() gate {
	c := make(chan struct{})
	return gate{c, sync.OnceFunc(func() { close(c) })}
}

// crowd is a lead that spawns six agents where two may run. It cancels the last one,
// which waits for a place, collects the first two together, and then whichever is done
// next until it has collected all.
//
// The first two work until all are spawned, which opens the gate.
func crowd(s *stage, spawned gate) team.Config {
	leads := func(_ context.Context, v view) llm.Message {
		all := ids(v)
		if v.round == 1 {
			spawned.open()
		}
		switch {
		case v.round == 0:
			var list []string
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				list = append(list, spawnCall(name)...)
			}
			return calls(v, list...)
		case v.round == 1:
			return calls(v, "agent__cancel", fmt.Sprintf(`{"id":%q}`, all[5]), "agent__collect", fmt.Sprintf(`{"ids":[%q,%q,"agent_explore_ffffffff"]}`, all[0], all[1]))
		case !strings.Contains(v.last(), `"not_collected":[]`):
			return calls(v, "agent__collect", `{"any":true}`)
		}
		text, said := strings.Join(v.results, "\n"), ""
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			said += fmt.Sprintf("%s %d, ", name, strings.Count(text, `"output":"`+name+` is done"`))
		}
		return words(fmt.Sprintf("%s%d queued", said, strings.Count(text, `"queued":true`)))
	}
	explores := func(ctx context.Context, v view) llm.Message {
		switch {
		case v.asked == "f":
			<-ctx.Done()
		case v.round == 0:
			select {
			case <-spawned.opened:
			case <-ctx.Done():
			}
			return calls(v, "work", fmt.Sprintf(`{"for":%q}`, v.asked))
		}
		return words(v.asked + " is done")
	}
	return pair(s, leads, explores, team.Spawn{Max: 2, Reminders: 1})
}

// asked counts the requests to models, without those of the agent that is cancelled,
// and the different ones among them.
func (s *stage) asked() (all, different int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, n := range s.requests {
		if !strings.Contains(what, "/f/") {
			all, different = all+n, different+1
		}
	}
	return all, different
}

// recordedReplies counts the replies of models in the journal of a run.
func recordedReplies(t *testing.T, st graph.Store) (n int) {
	t.Helper()
	for e, err := range graph.History(t.Context(), st, "t") {
		if err != nil && !errors.Is(err, graph.ErrNoThread) {
			t.Fatal(err)
		}
		if e.Kind == graph.KindEffect && strings.Split(e.ID, "\x00")[1] == "model" {
			n++
		}
	}
	return n
}

// A team whose lead collects several agents, the first that is done, and spawns above
// its limit is broken after each of its records: each output is handed over once, no
// recorded reply is requested again, and no work is done twice without an answer.
func TestCrashInCollectsAndQueuedSpawns(t *testing.T) {
	build := func(s *stage, g gate) *graph.Graph { return compile(t, crowd(s, g)) }
	count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
	const want = "a 1, b 1, c 1, d 1, e 1, f 0, 4 queued"
	calm, _, err := finish(t, &graph.Runner{Graph: build(newStage(), newGate()), Store: count})
	if got := agent.LastResponse(calm.State); err != nil || calm.Status != graph.Done || got != want {
		t.Fatalf("%v, %v, %q", calm.Status, err, got)
	}
	for limit := range count.RecordCount() - 3 { // where all is quick there are fewer calls of agent__collect, and records
		s, g := newStage(), newGate()
		store := &graphtest.Crash{Store: graph.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		if _, _, err := finish(t, &graph.Runner{Graph: build(s, g), Store: store}); err != nil && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		recorded := recordedReplies(t, store.Store)
		before, _ := s.asked()
		res, doubts, err := finish(t, &graph.Runner{Graph: build(s, g), Store: store.Store})
		if got := agent.LastResponse(res.State); err != nil || res.Status != graph.Done || got != want {
			t.Fatalf("crash after %d records: %v, %v, %q, want %q", limit, res.Status, err, got, want)
		}
		after, different := s.asked()
		if all := recordedReplies(t, store.Store); recorded+after-before != different || all != different {
			t.Errorf("crash after %d records: %d replies recorded, %d requested later, %d recorded in the end, want %d", limit, recorded, after-before, all, different)
		}
		if _, works := s.total(); works < 5 || works > 5+doubts {
			t.Errorf("crash after %d records: %d works with %d doubts, want 5", limit, works, doubts)
		}
	}
}
