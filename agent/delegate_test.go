package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/store/sqlite"
)

func TestAnAgentAsATool(t *testing.T) {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var c counted
	helper := &asked{name: "helper", answers: []llm.Message{
		both(call("h1", "put", `{}`), call("h2", "user__input", `{"question":"which?"}`)), call("h3", "user__confirm", `{"question":"sure?"}`)}}
	boss := &asked{name: "boss", answers: []llm.Message{both(call("a", "helper", `{"request":"find it"}`), call("b", "helper", `{"task":1}`))}}
	runner := func() *graph.Runner {
		inner := loop(t, helper, append(agent.UserTools(false), c.tool("put", "dangerous", false))...)
		return &graph.Runner{Store: store, Graph: compile(t, agent.Config{Model: boss, Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: inner}}})}
	}
	res, err := runner().Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	for _, k := range []struct{ prompt, answer string }{{"which?", "that"}, {"sure?", "yes"}} {
		if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || res.Questions[0].Prompt != k.prompt {
			t.Fatalf("status %v, error %v, questions %v; want %s", res.Status, err, res.Questions, k.prompt)
		}
		res, err = runner().InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: k.answer}}})
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	equal(t, "the caller", boss.seen(1), `user: Go. | call a helper{"request":"find it"} | call b helper{"task":1} | `+
		`result a: {"output":"helper 3"} | result b: {"tool_call_error":"'request' is required and must be a text"}`)
	if got := helper.seen(2); len(c.calls) != 1 || len(helper.requests) != 3 || !strings.Contains(got, "that") || !strings.HasPrefix(got, "user: find it") {
		t.Errorf("%d calls, %d requests, the last %s", len(c.calls), len(helper.requests), got)
	}
}

// bosses is an agent with an agent for a tool, which is called twice in one reply, and
// then once more. Each asks a person and does what may not be done twice.
func bosses(t testing.TB, boss, helper *world, b agent.Budget) *graph.Graph {
	helper.many = true
	inner := compile(t, agent.Config{Name: "helper", Model: helper.model([][]planned{{{"send"}, {"asks"}}, {{"keep"}}}), Tools: helper.tools()})
	return compile(t, agent.Config{Name: "boss", Model: boss.model([][]planned{{{"helper"}, {"helper"}, {"send"}}, {{"helper"}}}), Tools: boss.tools(), Budget: b,
		Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper", Schema: []byte(`{"type":"object"}`)}, Graph: inner}}})
}

// The run is broken after each of its records, with the inner agents in the middle:
// no recorded reply is asked for again, nothing is done twice without a word, and what
// all have cost counts once.
func TestAnAgentAsAToolCrashes(t *testing.T) {
	in := graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go.")}
	total := func(w ...*world) (requests, calls int) {
		for _, w := range w {
			for _, n := range w.requests {
				requests += n
			}
			for _, n := range w.calls {
				calls += n
			}
		}
		return requests, calls
	}
	boss, helper := newWorld(), newWorld()
	calm := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
	want, _ := finish(t, &graph.Runner{Graph: bosses(t, boss, helper, agent.Budget{}), Store: calm}, in)
	all, works := total(boss, helper)
	if got := agent.Spent.Get(want.State); all != 3+3*3 || works != 1+3*3 || got.Calls != all || got.ToolCalls != 4+3*3 {
		t.Fatalf("%d requests, %d works, spent %+v", all, works, got)
	}
	for limit := range calm.RecordCount() - 3 {
		boss, helper := newWorld(), newWorld()
		g := bosses(t, boss, helper, agent.Budget{})
		store := &graphtest.Crash{Store: journal.NewMemory(), Limit: limit, Lost: limit%2 == 1}
		finish(t, &graph.Runner{Graph: g, Store: store}, in)
		_, recorded := recordedCalls(t, store.Store)
		before, _ := total(boss, helper)
		res, doubts := finish(t, &graph.Runner{Graph: g, Store: store.Store}, in)
		if d := cmp.Diff(agent.Messages.Get(want.State), agent.Messages.Get(res.State)); d != "" {
			t.Fatalf("crash after record %d: the conversation differs (-want +got):\n%s", limit, d)
		}
		after, did := total(boss, helper)
		if recorded+after-before != all {
			t.Errorf("crash after record %d: %d replies were recorded, and %d asked for later; want %d", limit, recorded, after-before, all)
		}
		if repeatable := 3; did > works+len(doubts)+repeatable {
			t.Errorf("crash after record %d: %d works, %d doubts", limit, did, len(doubts))
		}
		if a, b := agent.Spent.Get(want.State), agent.Spent.Get(res.State); a != b {
			t.Errorf("crash after record %d: spent %+v, want %+v", limit, b, a)
		}
	}
}

// What two of them ask at once is answered in any order, and reaches the one that
// asked.
func TestTwoAgentToolsAsk(t *testing.T) {
	helper := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			who, m := r.Messages[0].Text(), llm.Message{}
			if m = call("q", "user__input", fmt.Sprintf(`{"question":"What is %s?"}`, who)); len(r.Messages) > 1 {
				m = say(who + " is " + shape(r.Messages)[2])
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m, Usage: llm.Usage{Input: 1}}}, nil)
		}
	})
	boss := &asked{name: "boss", answers: []llm.Message{both(call("one", "helper", `{"request":"x"}`), call("two/2", "helper", `{"request":"y"}`))}}
	g := compile(t, agent.Config{Model: boss, Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: loop(t, helper, agent.UserTools(false)...)}}})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || len(res.Questions) != 2 || res.Questions[0].ID != "act/one/act" || res.Questions[1].ID != "act/two-2/act" {
		t.Fatalf("%v, %+v", err, res.Questions)
	}
	for i, q := range []graph.Question{res.Questions[1], res.Questions[0]} {
		if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: fmt.Sprint("answer ", i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "the caller", boss.seen(1), `user: Go. | call one helper{"request":"x"} | call two/2 helper{"request":"y"} | `+
		`result one: {"output":"x is result q: {\"answer\":\"answer 1\"}"} | result two/2: {"output":"y is result q: {\"answer\":\"answer 0\"}"}`)
}

// The caller's budget bounds what the agents that it calls cost, although these have
// none; with more, all continue where they were.
func TestAgentToolsSpendFromTheCaller(t *testing.T) {
	boss, helper := newWorld(), newWorld()
	in := graph.Input{Thread: "t", Run: "run", Set: agent.Turn("Go.")}
	r := &graph.Runner{Graph: bosses(t, boss, helper, agent.Budget{Calls: 4}), Store: journal.NewMemory()}
	answer := func(res graph.Result, err error) (graph.Result, error) {
		for n := 0; err == nil && res.Status == graph.Waiting && n < 10; n++ {
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{reply(res.Questions[0])}})
		}
		return res, err
	}
	_, err := answer(r.Invoke(t.Context(), in))
	var over *agent.BudgetError
	if requests := len(boss.requests) + helper.requests[0] + helper.requests[1]; !errors.As(err, &over) || !over.Shared || over.Of != "boss" || requests != 4 {
		t.Fatalf("%v after %d requests", err, requests)
	}
	r.Graph = bosses(t, boss, helper, agent.Budget{Calls: 12})
	res, err := answer(r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}))
	if err != nil || agent.Spent.Get(res.State).Calls != 12 || helper.requests[0] != 3 {
		t.Errorf("%v, %v, spent %+v, %v", res.Status, err, agent.Spent.Get(res.State), helper.requests)
	}
}

// An agent that fails or takes too long is an outcome that the model reads.
func TestAgentToolsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		helper := agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				if r.Messages[0].Text() == "fail" {
					yield(llm.Delta{}, &llm.Error{Class: llm.Auth, Message: "no key"})
					return
				}
				<-ctx.Done()
				yield(llm.Delta{}, context.Cause(ctx))
			}
		})
		boss := &asked{name: "boss", answers: []llm.Message{both(call("a", "helper", `{"request":"fail"}`), call("b", "helper", `{"request":"hang"}`))}}
		g := compile(t, agent.Config{Model: boss, Calls: agent.Calls{Timeout: time.Minute, Retry: agent.ToolRetry{Attempts: 2, If: func(error) bool { return true }}},
			Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: loop(t, helper)}}})
		res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		if err != nil || res.Status != graph.Done {
			t.Fatal(res.Status, err)
		}
		if got := boss.seen(1); !strings.Contains(got, `no key`) || !strings.Contains(got, `{"tool_call_error":"Tool call 'helper' timed out after 1m0s"}`) {
			t.Error(got)
		}
	})
	if _, err := (agent.Config{Model: countReplies(), Agents: []agent.AgentTool{{Spec: llm.ToolSpec{Name: "x"}}}}).Compile(); err == nil || !strings.Contains(err.Error(), "has no graph") {
		t.Error(err)
	}
}
