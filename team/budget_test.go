package team_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// perCall is what every call of a till costs, in tokens.
const perCall = 300

// A till counts what calls of models have cost that came to their end.
type till struct {
	mu          sync.Mutex
	made        int // by the model: what a crash has kept from the agent, too
	paid        int
	now, most   int // calls in progress
	begun, done int
}

// slow makes calls take a second, so that those that may overlap do.
func (x *till) slow(m llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			x.mu.Lock()
			x.begun++
			x.now++
			x.most = max(x.most, x.now)
			x.mu.Unlock()
			defer func() {
				x.mu.Lock()
				x.now--
				x.mu.Unlock()
			}()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				yield(llm.Delta{}, context.Cause(ctx))
				return
			}
			m.Stream(ctx, r)(func(d llm.Delta, err error) bool {
				if d.Done != nil {
					d.Done.Usage = llm.Usage{Input: perCall - 20, Output: 20}
					x.mu.Lock()
					x.made += perCall
					x.mu.Unlock()
				}
				return yield(d, err)
			})
		}
	})
}

// counts sees the replies that were paid for.
func (x *till) counts(next llm.Model) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			next.Stream(ctx, r)(func(d llm.Delta, err error) bool {
				if err == nil && d.Done != nil {
					x.mu.Lock()
					x.paid += d.Done.Usage.Input + d.Done.Usage.Output
					x.done++
					x.mu.Unlock()
				}
				return yield(d, err)
			})
		}
	})
}

// eight is a lead and eight agents that work three rounds each, all at once.
func eight(x *till, b agent.Budget) team.Config {
	s := newStage()
	prompts := strings.Split("a b c d e f g h", " ")
	c := pair(s, one(prompts, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			var pairs []string
			for _, id := range ids(v) {
				pairs = append(pairs, collectCall(id)...)
			}
			return calls(v, pairs...)
		}
		return words("all is done")
	}), func(_ context.Context, v view) llm.Message {
		if v.round < 3 {
			return calls(v, "work", fmt.Sprintf(`{"for":%q,"round":%d}`, v.asked, v.round))
		}
		return words(v.asked + " is done")
	}, team.Spawn{Max: len(prompts)})
	outfit := func(a *agent.Config) {
		a.Model, a.Request.MaxTokens, a.AroundModel = x.slow(a.Model), 20, []agent.ModelMiddleware{x.counts}
	}
	m := c.Agents["explore"]
	outfit(&m.Agent)
	outfit(&c.Lead.Agent)
	m.Agent.Tools[0].Effect, c.Agents["explore"], c.Lead.Agent.Budget = tool.Idempotent, m, b
	return c
}

// wholeTurn is what the turn of eight costs: the lead's three calls, and four of each other.
const wholeTurn = (3 + 8*4) * perCall

// Eight agents side by side spend from the lead's budget: together they exceed it
// by one call at most, and no call is refused that it had room for.
func TestAgentsShareABudget(t *testing.T) {
	for name, k := range map[string]struct {
		budget agent.Budget
		most   int // tokens
	}{
		"tokens":          {agent.Budget{Tokens: 5000}, 5000 + perCall},
		"few tokens":      {agent.Budget{Tokens: 700}, 700 + perCall},
		"money":           {agent.Budget{Money: 0.5, Price: agent.Price{Input: 100, Output: 100}}, 5000 + perCall},
		"calls":           {agent.Budget{Calls: 11}, 11 * perCall},
		"calls of tools":  {agent.Budget{ToolCalls: 20}, wholeTurn},
		"enough":          {agent.Budget{Tokens: wholeTurn}, wholeTurn},
		"without a limit": {agent.Budget{}, wholeTurn},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := &till{}
				r := &graph.Runner{Graph: compile(t, eight(x, k.budget)), Store: graph.NewMemory()}
				res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
				if x.paid > k.most {
					t.Errorf("%d tokens were spent, want %d at most", x.paid, k.most)
				}
				if k.most == wholeTurn && k.budget.ToolCalls == 0 {
					if err != nil || x.paid != wholeTurn || x.most < 2 {
						t.Errorf("%v, %d tokens of %d were spent, %d calls at once", err, x.paid, wholeTurn, x.most)
					}
					return
				}
				var over *agent.BudgetError
				if !errors.As(err, &over) || !over.Shared || over.Of != "lead" {
					t.Fatalf("%v, %v", res.Status, err)
				}
				if k.budget.ToolCalls == 0 && x.paid < k.most-2*perCall {
					t.Errorf("only %d tokens were spent of %d", x.paid, k.most)
				}
				// With more, all continue where they were: nothing is done again.
				r.Graph = compile(t, eight(x, agent.Budget{Tokens: 2 * wholeTurn}))
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
				if err != nil || agent.LastResponse(res.State) != "all is done" {
					t.Fatalf("%v, %v, %q", res.Status, err, agent.LastResponse(res.State))
				}
				if got := agent.Spent.Get(res.State); got.Calls != wholeTurn/perCall || got.Usage.Input+got.Usage.Output != x.paid || x.paid != wholeTurn {
					t.Errorf("the turn has cost %+v, %d tokens were paid, want %d", got, x.paid, wholeTurn)
				}
			})
		})
	}
}

// A process that continues knows what the one that was killed has spent, at whatever
// record that was.
func TestSharedBudgetAfterACrash(t *testing.T) {
	budget := agent.Budget{Tokens: 4000}
	run := func(t *testing.T, x *till, store graph.Store) (err error) {
		synctest.Test(t, func(t *testing.T) {
			r := &graph.Runner{Graph: compile(t, eight(x, budget)), Store: store}
			_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			if errors.Is(err, graph.ErrNoThread) {
				_, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			}
		})
		return err
	}
	count := &graphtest.Crash{Store: graph.NewMemory(), Limit: -1}
	var over *agent.BudgetError
	if err := run(t, &till{}, count); !errors.As(err, &over) {
		t.Fatal(err)
	}
	for limit := range count.RecordCount() {
		x, store := &till{}, &graphtest.Crash{Store: graph.NewMemory(), Limit: limit}
		if err := run(t, x, store); !errors.As(err, &over) && !errors.Is(err, graphtest.ErrCrash) {
			t.Fatalf("crash after %d records: %v", limit, err)
		}
		known := x.paid
		if err := run(t, x, store.Store); !errors.As(err, &over) {
			t.Fatalf("crash after %d records: resumed: %v", limit, err)
		}
		if x.paid > budget.Tokens+perCall || x.made < budget.Tokens {
			t.Errorf("crash after %d records: %d tokens were spent before and %d after it, of %d, want %d to %d", limit, known, x.paid-known, x.made, budget.Tokens, budget.Tokens+perCall)
		}
	}
}

// An agent that has used up a budget of its own, for itself and the agents that are
// its tools, has failed: the others continue.
func TestOwnBudgetIsNobodyElses(t *testing.T) {
	s := newStage()
	helper, err := agent.Config{Model: s.model("helper", func(context.Context, view) llm.Message { return words("helped") })}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	c := pair(s, one([]string{"a"}, func(_ context.Context, v view) llm.Message {
		if v.round == 1 {
			return calls(v, collectCall(ids(v)[0])...)
		}
		return words(v.last())
	}), func(_ context.Context, v view) llm.Message {
		return calls(v, "helper", `{"request":"x"}`, "helper", `{"request":"y"}`)
	}, team.Spawn{})
	c.Lead.Agent.Budget = agent.Budget{Calls: 100}
	m := c.Agents["explore"]
	m.Agent.Name, m.Agent.Budget = "explorer", agent.Budget{Calls: 2}
	m.Agent.Agents = []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: helper}}
	c.Agents["explore"] = m
	res := invoke(t, c)
	if got := agent.LastResponse(res.State); !strings.Contains(got, `"status":"failed"`) || !strings.Contains(got, "the budget of explorer and the agents below it for calls is used up: 2 of 2") {
		t.Error(got)
	}
	if n, _ := s.total(); n != 3+1+1 {
		t.Errorf("%d requests: %v", n, s.requests)
	}
}
