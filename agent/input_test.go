package agent_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// asked is a model that keeps its requests and answers each with a number.
type asked struct {
	mu       sync.Mutex
	name     string
	requests []llm.Request
	answers  []llm.Message // first; then numbers
}

func (a *asked) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		a.mu.Lock()
		a.requests = append(a.requests, r)
		n := len(a.requests)
		m := say(a.name + " " + string(rune('0'+n)))
		if n <= len(a.answers) {
			m = a.answers[n-1]
		}
		a.mu.Unlock()
		yield(llm.Delta{Done: &llm.Reply{ID: a.name + "-" + string(rune('0'+n)), Message: m}}, nil)
	}
}

// seen is the messages of a request, as text.
func (a *asked) seen(n int) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n >= len(a.requests) {
		return "no request"
	}
	return strings.Join(shape(a.requests[n].Messages), " | ")
}

func prepare(name string, writes ...graph.Write) graph.Node {
	return graph.Node{Name: name, Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Put(writes...), nil }}
}

// chain is a graph whose nodes run one after the other.
func chain(t testing.TB, nodes ...graph.Node) *graph.Graph {
	t.Helper()
	d := graph.Def{Name: "chain", Keys: agent.Keys(), Nodes: nodes, Start: []string{nodes[0].Name}}
	for i, n := range nodes {
		to := graph.End
		if i+1 < len(nodes) {
			to = nodes[i+1].Name
		}
		d.Edges = append(d.Edges, graph.Edge{From: []string{n.Name}, To: []string{to}})
	}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func invoke(t testing.TB, g *graph.Graph, set ...graph.Write) graph.State {
	t.Helper()
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: set})
	if err != nil {
		t.Fatal(err)
	}
	return res.State
}

func conversation(s graph.State) string { return strings.Join(shape(agent.History(s)), " | ") }

func equal(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestUserInputIsHeardOnce(t *testing.T) {
	for _, k := range []struct {
		name, want string
		before     []graph.Write
	}{
		{"alone", "user: hi", nil},
		{"in the place of what was not answered", "user: hi", []graph.Write{agent.AppendMessages(llm.User("old"))}},
		{"once where it is the same", "user: hi", []graph.Write{agent.AppendMessages(llm.User("hi"))}},
		{"behind an answer", "user: hi | assistant: yes | user: hi", []graph.Write{agent.AppendMessages(llm.User("hi"), say("yes"))}},
	} {
		t.Run(k.name, func(t *testing.T) {
			m := &asked{name: "m"}
			g := chain(t, agent.Think{Model: m, Request: llm.Request{System: "Be good."}}.Node("m"))
			s := invoke(t, g, append(agent.TurnInput("hi"), k.before...)...)
			equal(t, "the request", m.seen(0), k.want)
			equal(t, "the conversation", conversation(s), k.want+" | assistant: m 1")
			if agent.UserInput.Get(s) != "" || m.requests[0].System != "Be good." {
				t.Errorf("input left: %q, system %q", agent.UserInput.Get(s), m.requests[0].System)
			}
			if agent.LastResponseID(s) != "m-1" || !cmp.Equal(agent.Responses(s), map[string]string{"m": "m 1"}) {
				t.Errorf("response %q of %v", agent.LastResponseID(s), agent.Responses(s))
			}
		})
	}
}

func TestOneShotTakesThePlaceOfTheConversation(t *testing.T) {
	m := &asked{name: "m"}
	think := agent.Think{Model: m}
	g := chain(t, think.Node("m"), think.Node("again"))
	s := invoke(t, g, append(agent.Turn("long story"), agent.OneShot(llm.User("example"), say("answer"), llm.User("short")))...)
	equal(t, "the request", m.seen(0), "user: example | assistant: answer | user: short")
	equal(t, "the next one", m.seen(1), "user: short | assistant: m 1 | user: [Continue.]")
	equal(t, "the conversation", conversation(s), "user: short | assistant: m 1 | assistant: m 2")
	equal(t, "of the first node", agent.Response(s, "m"), "m 1")
}

func TestOneShotThatEndsWithAnAnswerLeavesTheUserAlone(t *testing.T) {
	m := &asked{name: "m"}
	s := invoke(t, chain(t, agent.Think{Model: m}.Node("m")), append(agent.Turn("story"), agent.OneShot(llm.User("a"), say("b")))...)
	equal(t, "the conversation", conversation(s), "user: story | assistant: m 1")
}

func TestOneShotsForNodesSideBySide(t *testing.T) {
	a, b, c := &asked{name: "a"}, &asked{name: "b"}, &asked{name: "c"}
	d := graph.Def{Name: "g", Keys: agent.Keys(), Start: []string{"prepare"}, Nodes: []graph.Node{
		prepare("prepare", agent.OneShotFor("b", llm.User("for b")), agent.OneShotFor("a", llm.User("for a")), agent.OneShot(llm.User("for any"))),
		agent.Think{Model: a}.Node("a"), agent.Think{Model: b}.Node("b"), agent.Think{Model: c}.Node("c")},
		Edges: []graph.Edge{{From: []string{"prepare"}, To: []string{"a", "b"}}, {From: []string{"a", "b"}, To: []string{"c"}}, {From: []string{"c"}, To: []string{graph.End}}}}
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	s := invoke(t, g, agent.Turn("hi")...)
	equal(t, "a", a.seen(0), "user: for a")
	equal(t, "b", b.seen(0), "user: for b")
	equal(t, "the node without one of its own", c.seen(0), "user: for any")
	for node, left := range agent.OneShots.Get(s) {
		if len(left) > 0 {
			t.Errorf("%q keeps %v", node, left)
		}
	}
}

func TestOneShotsCanBeTakenBack(t *testing.T) {
	m := &asked{name: "m"}
	invoke(t, chain(t, prepare("set", agent.OneShotFor("m", llm.User("no"))), prepare("clear", agent.OneShotFor("m")), agent.Think{Model: m}.Node("m")), agent.Turn("hi")...)
	equal(t, "the request", m.seen(0), "user: hi")
}

func TestANodeBeforeMayChangeTheInput(t *testing.T) {
	m := &asked{name: "m"}
	trim := graph.Node{Name: "trim", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(agent.UserInput.Set(strings.TrimSpace(agent.UserInput.Get(s)))), nil
	}}
	invoke(t, chain(t, trim, agent.Think{Model: m}.Node("m")), agent.TurnInput("  hi \n")...)
	equal(t, "the request", m.seen(0), "user: hi")
}

func TestRemoveAllBetweenTwoModels(t *testing.T) {
	m := &asked{name: "m"}
	think := agent.Think{Model: m}
	s := invoke(t, chain(t, think.Node("a"), prepare("anew", agent.RemoveAll(), agent.UserInput.Set("second")), think.Node("b")), agent.TurnInput("first")...)
	equal(t, "the second request", m.seen(1), "user: second")
	equal(t, "the conversation", conversation(s), "user: second | assistant: m 2")
	if n := len(agent.Messages.Get(s)); n != 5 {
		t.Errorf("%d entries, want 5: nothing is removed from the key", n)
	}
}

func TestAnInputKeyOfItsOwn(t *testing.T) {
	question := graph.Last[string]("question")
	m := &asked{name: "m"}
	g, err := graph.Compile(graph.Def{Name: "g", Keys: append(agent.Keys(), question), Nodes: []graph.Node{agent.Think{Model: m, Input: question}.Node("m")},
		Start: []string{"m"}, Edges: []graph.Edge{{From: []string{"m"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := invoke(t, g, question.Set("why"), agent.UserInput.Set("not me"))
	equal(t, "the request", m.seen(0), "user: why")
	if question.Get(s) != "" || agent.UserInput.Get(s) != "not me" {
		t.Errorf("left: %q and %q", question.Get(s), agent.UserInput.Get(s))
	}
}

func TestATurnForgetsInputsOfTheTurnBefore(t *testing.T) {
	m := &asked{name: "m"}
	r := &graph.Runner{Graph: chain(t, agent.Think{Model: m}.Node("m")), Store: journal.NewMemory()}
	old := append(agent.TurnInput("one"), agent.OneShotFor("elsewhere", llm.User("x")), agent.Overrides.Set(map[string]agent.Override{"": {Temperature: new(0.5)}}))
	for _, set := range [][]graph.Write{old, agent.Turn("two")} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: set}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := r.State(t.Context(), "t", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(agent.OneShots.Get(s)) != 0 || m.requests[0].Temperature == nil || m.requests[1].Temperature != nil {
		t.Errorf("one-shots %v, temperatures %v and %v", agent.OneShots.Get(s), m.requests[0].Temperature, m.requests[1].Temperature)
	}
	equal(t, "the second request", m.seen(1), "user: one | assistant: m 1 | user: two")
}

func TestNodesSideBySideHearTheUserOnce(t *testing.T) {
	for _, k := range []struct {
		want   string
		before []llm.Message
	}{{"user: hi", nil}, {"user: hi | assistant: yes | user: hi", []llm.Message{llm.User("hi"), say("yes")}}, {"user: hi", []llm.Message{llm.User("old")}}} {
		a, b, c := &asked{name: "a"}, &asked{name: "b"}, &asked{name: "c"}
		g, err := graph.Compile(graph.Def{Name: "g", Keys: agent.Keys(), Start: []string{"a", "b"}, Nodes: []graph.Node{
			agent.Think{Model: a}.Node("a"), agent.Agent{Graph: loop(t, b)}.Node("b"), agent.Think{Model: c}.Node("c")},
			Edges: []graph.Edge{{From: []string{"a", "b"}, To: []string{"c"}}, {From: []string{"c"}, To: []string{graph.End}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := invoke(t, g, append(agent.TurnInput("hi"), agent.AppendMessages(k.before...))...)
		equal(t, "a", a.seen(0), k.want)
		equal(t, "b", b.seen(0), k.want)
		equal(t, "the conversation", conversation(s), k.want+" | assistant: a 1 | assistant: b 1 | assistant: c 1")
	}
}

// What one node does to the conversation is not seen by concurrent nodes, however
// late they begin.
func TestAnEditIsNotSeenInTheSameStep(t *testing.T) {
	edited := make(chan struct{})
	m := &asked{name: "m"}
	edit := graph.Node{Name: "edit", Run: func(context.Context, graph.State) (graph.Update, error) {
		defer close(edited)
		return graph.Put(agent.ReplaceLastUser("edited")), nil
	}}
	late := agent.Think{Model: m}.Node("late")
	run := late.Run
	late.Run = func(ctx context.Context, s graph.State) (graph.Update, error) {
		<-edited
		return run(ctx, s)
	}
	g, err := graph.Compile(graph.Def{Name: "g", Keys: agent.Keys(), Start: []string{"edit", "late"}, Nodes: []graph.Node{edit, late},
		Edges: []graph.Edge{{From: []string{"edit"}, To: []string{graph.End}}, {From: []string{"late"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := invoke(t, g, agent.Turn("said")...)
	equal(t, "the request", m.seen(0), "user: said")
	equal(t, "the conversation", conversation(s), "user: edited | assistant: m 1")
}
