package agent_test

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
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// countingModel is a model whose calls take a second and cost 30 tokens. It counts how
// many run at once, and records in which second each began.
type countingModel struct {
	mu        sync.Mutex
	now, most int
	seconds   []int
	began     time.Time
}

func (p *countingModel) model(say func(r llm.Request) (llm.Message, error)) llm.Model {
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			p.mu.Lock()
			p.now++
			p.most = max(p.most, p.now)
			p.seconds = append(p.seconds, int(time.Since(p.began)/time.Second))
			p.mu.Unlock()
			defer func() {
				p.mu.Lock()
				p.now--
				p.mu.Unlock()
			}()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				yield(llm.Delta{}, context.Cause(ctx))
				return
			}
			m, err := say(r)
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m, Usage: llm.Usage{Input: 10, Output: 20}}}, nil)
		}
	})
}

// parallelAgents returns a graph with agents that start together.
func parallelAgents(t testing.TB, p *countingModel, agents map[string]func(r llm.Request) (llm.Message, error), tools ...tool.Tool) *graph.Graph {
	t.Helper()
	d := graph.Def{Name: "parallel", Keys: agent.Keys()}
	for _, name := range []string{"a", "b", "c", "d"} {
		if agents[name] == nil {
			continue
		}
		g := compile(t, agent.Config{Name: name, Model: p.model(agents[name]), Request: llm.Request{MaxTokens: 20}, Tools: tools, Retry: agent.Retry{Patience: -1}})
		d.Nodes = append(d.Nodes, agent.Agent{Graph: g}.Node(name))
		d.Start = append(d.Start, name)
		d.Edges = append(d.Edges, graph.Edge{From: []string{name}, To: []string{graph.End}})
	}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func fine(llm.Request) (llm.Message, error) { return say("fine"), nil }

// TestCallsWaitForTheSharedBudget: calls begin together if the budget is enough for all
// of them, and else wait for each other.
func TestCallsWaitForTheSharedBudget(t *testing.T) {
	four := map[string]func(llm.Request) (llm.Message, error){"a": fine, "b": fine, "c": fine, "d": fine}
	for _, k := range []struct {
		budget  agent.Budget
		seconds string // in which the calls began
		done    bool
	}{
		{agent.Budget{Tokens: 1000}, "[0 0 0 0]", true},
		{agent.Budget{Tokens: 125}, "[0 0 0 1]", true}, // what may be spent counts, until it is known what was
		{agent.Budget{Tokens: 70}, "[0 0 1]", false},
		{agent.Budget{Tokens: 1}, "[0]", false},
		{agent.Budget{Calls: 3}, "[0 0 0]", false},
		{agent.Budget{Calls: 4}, "[0 0 0 0]", true},
		{agent.Budget{Money: 0.07, Price: agent.Price{Input: 1000, Output: 1000}}, "[0 0 1]", false},
		{agent.Budget{}, "[0 0 0 0]", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &countingModel{began: time.Now()}
			ctx := k.budget.Share(t.Context(), "", agent.Spend{})
			_, err := (&graph.Runner{Graph: parallelAgents(t, p, four)}).Invoke(ctx, graph.Input{Set: agent.Turn("Go.")})
			var over *agent.BudgetError
			if got := fmt.Sprint(p.seconds); (err == nil) != k.done || !k.done && (!errors.As(err, &over) || !over.Shared) {
				t.Errorf("%+v: calls began at %s, %v", k.budget, got, err)
			} else if got != k.seconds {
				t.Errorf("%+v: calls began at %s, want %s", k.budget, got, k.seconds)
			}
		})
	}
}

// TestAWaitForTheBudgetEnds: a call waits only for other calls, not for an agent that asks
// a person or that has failed.
func TestAWaitForTheBudgetEnds(t *testing.T) {
	ask := tool.Tool{Name: "ask", Effect: tool.ReadOnly, Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Name: c.ID, Prompt: "Which?"})
		return tool.TextResult(answer), err
	}}
	asks := func(r llm.Request) (llm.Message, error) {
		if len(r.Messages) == 1 {
			return call("x", "ask", `{}`), nil
		}
		return say("asked"), nil
	}
	fails := func(llm.Request) (llm.Message, error) {
		return llm.Message{}, &llm.Error{Class: llm.Auth, Message: "no key"}
	}
	whole := agent.Budget{Calls: 100, Tokens: 100_000}
	synctest.Test(t, func(t *testing.T) {
		p := &countingModel{began: time.Now()}
		r := &graph.Runner{Store: journal.NewMemory(), Graph: parallelAgents(t, p, map[string]func(llm.Request) (llm.Message, error){"a": asks, "b": fine, "c": fails, "d": fine}, ask)}
		ctx := agent.Budget{Tokens: 165}.Share(whole.Share(t.Context(), "run", agent.Spend{}), "", agent.Spend{})
		_, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		if err == nil || !strings.Contains(err.Error(), "no key") {
			t.Fatal(err)
		}
		r.Graph = parallelAgents(t, p, map[string]func(llm.Request) (llm.Message, error){"a": asks, "b": fine, "c": fine, "d": fine}, ask)
		res, err := r.InvokeResume(ctx, graph.Resume{Thread: "t"})
		if err != nil || res.Status != graph.Waiting || len(p.seconds) != 5 {
			t.Fatalf("%v, %v, %d calls", res.Status, err, len(p.seconds))
		}
		res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "this"}}})
		if err != nil || res.Status != graph.Done || len(p.seconds) != 6 {
			t.Errorf("%v, %v, %d calls", res.Status, err, len(p.seconds))
		}
		if got := agent.Spent.Get(res.State); got.Calls != 5 || got.Usage.Input != 50 {
			t.Errorf("spent %+v", got)
		}
	})
}

// TestCancelledWhileWaitingForTheBudget: a call that is cancelled while it waits reserves
// nothing of the budget.
func TestCancelledWhileWaitingForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &countingModel{began: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		ctx = agent.Budget{Tokens: 40}.Share(agent.Budget{Tokens: 10_000}.Share(ctx, "outer", agent.Spend{}), "", agent.Spend{Usage: llm.Usage{Input: 1}})
		long := func(llm.Request) (llm.Message, error) { time.Sleep(time.Hour); return say("late"), nil }
		res, err := (&graph.Runner{Graph: parallelAgents(t, p, map[string]func(llm.Request) (llm.Message, error){"a": long, "b": long})}).Invoke(ctx, graph.Input{Set: agent.Turn("Go.")})
		if res.Status != graph.Canceled || err == nil || p.most != 1 {
			t.Errorf("%v, %v, %d calls at once", res.Status, err, p.most)
		}
		time.Sleep(2 * time.Hour) // until the model that does not look at its context has returned
	})
}

// TestSharedCallsOfTools: each call of a tool is counted once, also if it asks, and starts
// again after the answer.
func TestSharedCallsOfTools(t *testing.T) {
	ask := tool.Tool{Name: "ask", Effect: tool.ReadOnly, Parallel: true, Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Name: c.ID, Prompt: "Which?"})
		return tool.TextResult(answer), err
	}}
	asks := func(r llm.Request) (llm.Message, error) {
		if len(r.Messages) == 1 {
			return both(call("x", "ask", `{}`), call("y", "ask", `{"n":2}`)), nil
		}
		return say("asked"), nil
	}
	for limit, want := range map[int]graph.Status{4: graph.Done, 3: graph.Failed} {
		p := &countingModel{began: time.Now()}
		r := &graph.Runner{Store: journal.NewMemory(), Graph: parallelAgents(t, p, map[string]func(llm.Request) (llm.Message, error){"a": asks, "b": asks}, ask)}
		ctx := agent.Budget{ToolCalls: limit}.Share(t.Context(), "", agent.Spend{})
		res, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		for n := 0; err == nil && res.Status == graph.Waiting && n < 10; n++ {
			res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "this"}}})
		}
		if res.Status != want {
			t.Errorf("with %d calls of tools: %v, %v", limit, res.Status, err)
		}
		var over *agent.BudgetError
		if want == graph.Failed && (!errors.As(err, &over) || over.What != "tool calls" || over.Spent != "3" || !strings.Contains(err.Error(), "the budget of the run and the agents below it for tool calls")) {
			t.Errorf("with %d calls of tools: %v", limit, err)
		}
	}
}

// TestChargedTwice: a call of a model that two budgets meter is counted once, and does not
// wait for itself.
func TestChargedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &countingModel{began: time.Now()}
		g := compile(t, agent.Config{Model: agent.Budget{}.MeterModel(p.model(fine))})
		ctx := agent.Budget{Tokens: 40}.Share(t.Context(), "", agent.Spend{})
		r := &graph.Runner{Graph: g}
		if _, err := r.Invoke(ctx, graph.Input{Set: agent.Turn("Go.")}); err != nil {
			t.Error(err)
		}
	})
}

// TestFailedAgentsInABudget: Agent.Failed is not called if the shared budget is used up. If
// it is called, the cost of the failed agent counts.
func TestFailedAgentsInABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &countingModel{began: time.Now()}
		calls := func(r llm.Request) (llm.Message, error) {
			if len(r.Messages) > 1 {
				return llm.Message{}, &llm.Error{Class: llm.Auth, Message: "no key"}
			}
			return call("x", "todo__list", `{}`), nil
		}
		inner := compile(t, agent.Config{Model: p.model(calls), Request: llm.Request{MaxTokens: 20}})
		asked := 0
		g, err := graph.Compile(graph.Def{Name: "g", Keys: agent.Keys(), Start: []string{"a"}, Nodes: []graph.Node{
			agent.Agent{Graph: inner, Failed: func(graph.State, error) (graph.Update, error) { asked++; return graph.Update{}, nil }}.Node("a")},
			Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}}})
		if err != nil {
			t.Fatal(err)
		}
		for tokens, want := range map[int]int{30: 0, 1000: 1} {
			asked = 0
			ctx := agent.Budget{Tokens: tokens}.Share(t.Context(), "", agent.Spend{})
			res, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{Set: agent.Turn("Go.")})
			if asked != want || (err == nil) != (want == 1) || want == 1 && agent.Spent.Get(res.State).Calls != 1 {
				t.Errorf("with %d tokens: asked %d times, %v, spent %+v", tokens, asked, err, agent.Spent.Get(res.State))
			}
		}
	})
}
