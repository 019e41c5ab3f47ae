package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

func loop(t testing.TB, m llm.Model, tools ...tool.Tool) *graph.Graph {
	return compile(t, agent.Config{Model: m, Tools: tools})
}

func TestAgentsInAChain(t *testing.T) {
	for _, k := range []struct {
		name   string
		second agent.Agent
		want   string
	}{
		{"with the reply of the one before", agent.Agent{Input: agent.FromLastResponse, Visibility: agent.IsolatedInvocation}, "user: a 1"},
		{"with the reply of a node", agent.Agent{Input: agent.FromResponse("a"), Visibility: agent.IsolatedInvocation}, "user: a 1"},
		{"with what the user has said", agent.Agent{Visibility: agent.IsolatedInvocation}, "user: hi"},
		{"with all of it", agent.Agent{Input: agent.FromLastResponse}, "user: hi | assistant: a 1 | user: a 1"},
	} {
		t.Run(k.name, func(t *testing.T) {
			a, b := &asked{name: "a"}, &asked{name: "b"}
			k.second.Graph = loop(t, b)
			s := invoke(t, chain(t, agent.Agent{Graph: loop(t, a)}.Node("a"), k.second.Node("b")), agent.TurnInput("hi")...)
			equal(t, "a reads", a.seen(0), "user: hi")
			equal(t, "b reads", b.seen(0), k.want)
			equal(t, "the conversation", conversation(s), "user: hi | assistant: a 1 | assistant: b 1")
			equal(t, "the last response", agent.LastResponse(s), "b 1")
			if d := cmp.Diff(map[string]string{"a": "a 1", "b": "b 1"}, agent.Responses(s)); d != "" {
				t.Error(d)
			}
			if got := agent.Spent.Get(s); got.Calls != 2 {
				t.Errorf("spent %+v, want two calls of models", got)
			}
		})
	}
}

func TestAnAgentGetsNothingTwice(t *testing.T) {
	a := &asked{name: "a"}
	invoke(t, chain(t, agent.Agent{Graph: loop(t, a)}.Node("a")), agent.Turn("hi")...)
	equal(t, "a reads", a.seen(0), "user: hi")
}

func TestAnAgentWithoutInputFails(t *testing.T) {
	r := &graph.Runner{Graph: chain(t, agent.Agent{Graph: loop(t, &asked{})}.Node("a"))}
	if _, err := r.Invoke(t.Context(), graph.Input{}); err == nil || !strings.Contains(err.Error(), "no messages in state") {
		t.Errorf("error %v", err)
	}
}

func TestAnIsolatedAgentSeesItsOwnCalls(t *testing.T) {
	var c counted
	a := &asked{name: "a", answers: []llm.Message{call("x", "look", `{}`)}}
	g := chain(t, agent.Agent{Graph: loop(t, a, c.tool("look", tool.ReadOnly, false)), Visibility: agent.IsolatedInvocation}.Node("a"))
	s := invoke(t, g, append(agent.ResetTurn(), agent.AppendMessages(llm.User("secret"), say("kept"), llm.User("go")))...)
	equal(t, "the first request", a.seen(0), "user: go")
	equal(t, "the second request", a.seen(1), `user: go | call x look{} | result x: {"output":"look did {}"}`)
	equal(t, "the conversation", conversation(s), "user: secret | assistant: kept | user: go | assistant: a 2")
}

func TestASharedAgentAddsAllThatItDoes(t *testing.T) {
	var c counted
	a, b := &asked{name: "a", answers: []llm.Message{call("x", "look", `{}`)}}, &asked{name: "b"}
	g := chain(t, agent.Agent{Graph: loop(t, a, c.tool("look", tool.ReadOnly, false)), Share: true}.Node("a"), agent.Agent{Graph: loop(t, b)}.Node("b"))
	s := invoke(t, g, agent.Turn("go")...)
	equal(t, "the conversation", conversation(s), `user: go | call x look{} | result x: {"output":"look did {}"} | assistant: a 2 | assistant: b 1`)
	equal(t, "the other agent", b.seen(0), "user: go")
	equal(t, "the response of a", agent.Response(s, "a"), "a 2")
	if e := agent.Messages.Get(s)[1]; e.By != "a/think" || e.Path != "a/" || e.Run == "" || e.Visit == "" {
		t.Errorf("the entry says %q at %q, run %q, visit %q", e.By, e.Path, e.Run, e.Visit)
	}
}

func TestMappingInAndOutOfAnAgent(t *testing.T) {
	colour, shade, secret := graph.Last[string]("colour"), graph.Last[string]("shade"), graph.Last[string]("secret")
	var seen []string
	paint := graph.Node{Name: "paint", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		seen = s.Keys()
		return graph.Put(shade.Set("dark "+colour.Get(s)), agent.AppendMessages(say("painted"))), nil
	}}
	child, err := graph.Compile(graph.Def{Name: "painter", Keys: append(agent.Keys(), colour, shade, secret), Nodes: []graph.Node{paint},
		Start: []string{"paint"}, Edges: []graph.Edge{{From: []string{"paint"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	node := agent.Agent{Graph: child,
		In: func(s graph.State) ([]graph.Write, error) { return []graph.Write{colour.Set(colour.Get(s))}, nil },
		Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(shade.Set(shade.Get(c.State))), nil
		}}.Node("painter")
	g, err := graph.Compile(graph.Def{Name: "g", Keys: append(agent.Keys(), colour, shade, secret), Nodes: []graph.Node{node}, Start: []string{"painter"},
		Edges: []graph.Edge{{From: []string{"painter"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := invoke(t, g, append(agent.TurnInput("paint"), colour.Set("blue"), secret.Set("x"))...)
	if d := cmp.Diff([]string{"colour", "messages", "overrides"}, seen); d != "" {
		t.Errorf("the child has (-want +got):\n%s", d)
	}
	equal(t, "the parent's key", shade.Get(s), "dark blue")
	equal(t, "the conversation", conversation(s), "user: paint")
}

var errDown = errors.New("the model is down")

func broken() llm.Model {
	return agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{}, errDown) }
	})
}

func TestAFailedAgentFailsItsNode(t *testing.T) {
	m := &asked{name: "m"}
	a := agent.Agent{Graph: loop(t, broken())}
	r := &graph.Runner{Graph: chain(t, a.Node("a"), agent.Think{Model: m}.Node("m")), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")})
	var node *graph.NodeError
	if res.Status != graph.Failed || !errors.Is(err, errDown) || !errors.As(err, &node) || len(m.requests) != 0 {
		t.Errorf("status %v, error %v, %d requests behind it", res.Status, err, len(m.requests))
	}
}

func TestAFailedAgentMayBeTolerated(t *testing.T) {
	m := &asked{name: "m"}
	a := agent.Agent{Graph: loop(t, broken()), Failed: func(_ graph.State, failure error) (graph.Update, error) {
		return graph.Put(agent.AppendMessages(say("I could not: " + failure.Error()[strings.LastIndex(failure.Error(), "the model"):]))), nil
	}}
	ask := graph.Node{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "go on?"})
		return graph.Update{}, err
	}}
	r := &graph.Runner{Graph: chain(t, a.Node("a"), ask, agent.Think{Model: m, Input: agent.UserInput}.Node("m")), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.TurnInput("hi")})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	equal(t, "the node behind it", m.seen(0), "user: hi | assistant: I could not: the model is down | user: [Continue.]")
}

func TestAnAgentThatAsksContinuesWhereItWas(t *testing.T) {
	a := &asked{name: "a", answers: []llm.Message{call("x", "user__input", `{"question":"which?"}`)}}
	r := &graph.Runner{Graph: chain(t, agent.Agent{Graph: loop(t, a, agent.UserTools(false)...),
		Failed: func(graph.State, error) (graph.Update, error) { panic("waiting is not a failure") }}.Node("a")), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.TurnInput("hi")})
	if err != nil || res.Status != graph.Waiting || !strings.HasPrefix(res.Questions[0].ID, "a/act") {
		t.Fatalf("status %v, error %v, questions %v", res.Status, err, res.Questions)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "that"}}})
	if err != nil || agent.LastResponse(res.State) != "a 2" || len(a.requests) != 2 {
		t.Errorf("response %q, error %v, %d requests", agent.LastResponse(res.State), err, len(a.requests))
	}
	equal(t, "the conversation", conversation(res.State), "user: hi | assistant: a 2")
}
