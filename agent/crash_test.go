package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A world is everything outside of a run: it counts what is done to it.
type world struct {
	mu       sync.Mutex
	requests map[int]int    // to the model, by the messages they held
	calls    map[string]int // of tools, by id
	keys     map[string]string
	many     bool // several agents use it, whose calls have the same ids
}

func newWorld() *world {
	return &world{requests: map[int]int{}, calls: map[string]int{}, keys: map[string]string{}}
}

// model asks for the rounds of a plan, one after the other, and then stops. What
// it says depends on the request alone.
func (w *world) model(plan [][]planned) llm.Model {
	return agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			round := 0
			for _, m := range r.Messages {
				if m.Role == llm.RoleAssistant {
					round++
				}
			}
			w.mu.Lock()
			w.requests[round]++
			w.mu.Unlock()
			m := say(fmt.Sprint("round ", round))
			if round < len(plan) {
				for i, p := range plan[round] {
					m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprintf("r%dc%d", round, i), Name: p.tool, Args: json.RawMessage(fmt.Sprintf(`{"n":%d,"r":%d}`, i, round))})
				}
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m, Usage: llm.Usage{Input: 10, Output: 2}}}, nil)
		}
	})
}

// planned is one call of a plan.
type planned struct{ tool string }

// tools are one of each sort.
func (w *world) tools() []tool.Tool {
	sort := func(name string, e tool.Effect, parallel bool) tool.Tool {
		return tool.Tool{Name: name, Effect: e, Parallel: parallel, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls[c.ID]++
			if was, again := w.keys[c.ID]; again && was != c.Key && !w.many {
				return tool.Result{}, fmt.Errorf("the key of %s was %q and is %q", c.ID, was, c.Key)
			}
			w.keys[c.ID] = c.Key
			return tool.TextResult("did " + c.ID), nil
		}}
	}
	asks := tool.Tool{Name: "asks", Effect: tool.Undeclared, Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Name: c.ID, Prompt: "Really?"})
		if err != nil {
			return tool.Result{}, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[c.ID]++
		return tool.TextResult("asked, and got " + answer), nil
	}}
	fails := tool.Tool{Name: "fails", Effect: tool.Dangerous, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[c.ID]++
		return tool.Result{}, errors.New("no luck")
	}}
	return slices.Concat([]tool.Tool{sort("read", tool.ReadOnly, true), sort("keep", tool.Idempotent, false), sort("send", tool.Undeclared, false),
		sort("side", tool.Undeclared, true), sort("wipe", tool.Dangerous, false), asks, fails}, agent.UserTools(false))
}

// guard asks before wipe.
type guard struct{}

func (guard) Decide(_ context.Context, t tool.Tool, _ tool.Call, _ []string) (agent.Decision, error) {
	if t.Name == "wipe" {
		return agent.Decision{Verdict: agent.Ask, Grant: []string{"wipe"}}, nil
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}
func (guard) Always(context.Context, []string) error { return nil }

func (w *world) graph(t testing.TB, plan [][]planned) *graph.Graph {
	return compile(t, agent.Config{Model: w.model(plan), Tools: w.tools(), Gate: guard{}, Continue: agent.Continue{Max: 2, Plain: true}, MaxIterations: 100})
}

// reply answers every question the way a patient person would.
func reply(q graph.Question) graph.Answer {
	switch q.Kind {
	case agent.KindPermission:
		return graph.Answer{ID: q.ID, Value: "once"}
	case agent.KindDoubt:
		return graph.Answer{ID: q.ID, Value: "retry"}
	}
	return graph.Answer{ID: q.ID, Value: "yes"}
}

// finish resumes a run until it is over, and lists the doubts it was asked about.
func finish(t testing.TB, r *graph.Runner, in graph.Input) (graph.Result, []string) {
	t.Helper()
	var doubts []string
	res, err := agentStart(t, r, in)
	for rounds := 0; err == nil && res.Status == graph.Waiting && rounds < 100; rounds++ {
		var answers []graph.Answer
		for _, q := range res.Questions {
			answers = append(answers, reply(q))
			if q.Kind == agent.KindDoubt {
				var d agent.CallData
				if err := json.Unmarshal(q.Data, &d); err != nil {
					t.Fatal(err)
				}
				doubts = append(doubts, d.ID)
			}
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: in.Thread, Answers: answers})
	}
	if err != nil && !errors.Is(err, graphtest.ErrCrash) {
		t.Fatal(err)
	}
	return res, doubts
}

// agentStart starts a run or resumes what a crash has left of it.
func agentStart(t testing.TB, r *graph.Runner, in graph.Input) (graph.Result, error) {
	t.Helper()
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: in.Thread})
	if errors.Is(err, journal.ErrNoThread) {
		return r.Invoke(t.Context(), in)
	}
	return res, err
}

// recordedCalls lists the calls whose outcome a journal holds, and counts its
// model replies.
func recordedCalls(t testing.TB, st journal.Store) (calls map[string]bool, replies int) {
	t.Helper()
	calls = map[string]bool{}
	for e, err := range history.Entries(t.Context(), st, "t") {
		if errors.Is(err, journal.ErrNoThread) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != journal.KindEffect {
			continue
		}
		if strings.Contains(e.What, "model") {
			replies++
		}
		if i := strings.LastIndex(e.What, "="); i >= 0 && !strings.Contains(e.What, "offer") {
			calls[strings.Split(e.What[i+1:], "#")[0]] = true
		}
	}
	return calls, replies
}

func TestCrashAfterEveryRecord(t *testing.T) {
	crashEverywhere(t, [][]planned{
		{{"read"}, {"read"}, {"send"}, {"side"}, {"side"}, {"wipe"}},
		{{"asks"}, {"fails"}, {"user__confirm"}, {"keep"}, {"unknown"}},
	})
}

func TestCrashInRandomPlans(t *testing.T) {
	names := []string{"read", "read", "keep", "send", "side", "side", "wipe", "asks", "fails", "user__input", "unknown", "todo__list"}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, seed))
		plan := make([][]planned, 1+rng.IntN(2))
		for i := range plan {
			for range 1 + rng.IntN(4) {
				plan[i] = append(plan[i], planned{names[rng.IntN(len(names))]})
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crashEverywhere(t, plan) })
	}
}

// crashEverywhere breaks a run after each of its records in turn. What was
// recorded is never done again; what may have been done is done again only by a
// tool that stands it, or with a person's consent; and all ends as if nothing had
// happened.
func crashEverywhere(t *testing.T, plan [][]planned) {
	in := graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go.")}
	calm := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	w := newWorld()
	want, _ := finish(t, &graph.Runner{Graph: w.graph(t, plan), Store: calm, IDs: graphtest.IDs("run")}, in)
	for limit := range calm.RecordCount() {
		for _, lost := range []bool{limit%2 == 1} { // of every other record the answer alone is lost
			store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: lost}
			w := newWorld()
			finish(t, &graph.Runner{Graph: w.graph(t, plan), Store: store}, in)
			calls, replies := recordedCalls(t, store.Store)
			before, asked := maps.Clone(w.calls), maps.Clone(w.requests)
			res, doubts := finish(t, &graph.Runner{Graph: w.graph(t, plan), Store: store.Store}, in)
			where := fmt.Sprintf("crash after record %d (lost: %v)", limit, lost)
			if d := cmp.Diff(shape(agent.History(want.State)), shape(agent.History(res.State))); d != "" {
				t.Fatalf("%s: the conversation differs (-want +got):\n%s", where, d)
			}
			if res.Status != graph.Done || agent.Spent.Get(res.State) != agent.Spent.Get(want.State) {
				t.Errorf("%s: status %v, spent %+v", where, res.Status, agent.Spent.Get(res.State))
			}
			for id, n := range w.calls {
				again := n - before[id]
				name := plan[id[1]-'0'][id[3]-'0'].tool
				switch {
				case calls[id] && again > 0:
					t.Errorf("%s: %s (%s) has a recorded outcome and ran again", where, id, name)
				case n > 2:
					t.Errorf("%s: %s (%s) ran %d times", where, id, name, n)
				case n > 1 && name != "read" && name != "keep" && !slices.Contains(doubts, id):
					t.Errorf("%s: %s (%s) ran twice and no person was asked", where, id, name)
				}
			}
			for round, n := range w.requests {
				if again := n - asked[round]; round < replies && again > 0 || n > 2 {
					t.Errorf("%s: the reply of round %d was requested %d times, %d after the crash; %d replies are recorded", where, round, n, again, replies)
				}
			}
		}
	}
}
