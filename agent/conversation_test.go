package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// session returns the entries of a session: two turns before this one, with replies of two
// agents.
func session() []agent.Entry {
	reply := func(run, path, visit, by, text string) agent.Entry {
		return agent.Entry{Message: say(text), By: by, Run: run, Path: path, Visit: visit}
	}
	return []agent.Entry{
		{Message: llm.User("u1")}, reply("r1", "", "", "think", "root1"), reply("r1", "a/", "1.a/", "a/think", "a1"), reply("r1", "b/", "2.b/", "b/think", "b1"),
		{Message: llm.User("u2")}, reply("r2", "a/", "1.a/", "a/think", "a2"), reply("r2", "a/x/", "1.a/1.x/", "a/x/think", "ax2"),
		{Message: llm.User("u3")}, reply("r3", "", "", "think", "root3"), reply("r3", "a/", "1.a/", "a/think", "a3"), reply("r3", "a/", "4.a/", "a/think", "a3again"), reply("r3", "b/", "2.b/", "b/think", "b3"),
	}
}

func TestVisibleEntriesOfASession(t *testing.T) {
	all := agent.Visibility{Branch: agent.AllBranches}
	a := agent.Viewer{Run: "r3", Path: "a/", Visit: "4.a/"}
	for _, k := range []struct {
		name string
		see  agent.Visibility
		at   agent.Viewer
		want string
	}{
		{"full context of an agent", agent.FullContext, a, "u1 root1 a1 u2 a2 ax2 u3 root3 a3 a3again"},
		{"request context", agent.RequestContext, a, "u3 root3 a3 a3again"},
		{"isolated request", agent.IsolatedRequest, a, "u3 a3 a3again"},
		{"isolated invocation", agent.IsolatedInvocation, a, "u3 a3again"},
		{"all branches", all, a, "u1 root1 a1 b1 u2 a2 ax2 u3 root3 a3 a3again b3"},
		{"own branch in all runs", agent.Visibility{Branch: agent.OwnBranch}, a, "a1 a2 u3 a3 a3again"},
		{"full context of the root", agent.FullContext, agent.Viewer{Run: "r3"}, "u1 root1 a1 b1 u2 a2 ax2 u3 root3 a3 a3again b3"},
		{"isolated request of the root", agent.IsolatedRequest, agent.Viewer{Run: "r3"}, "u3 root3"},
		{"isolated invocation of the root", agent.IsolatedInvocation, agent.Viewer{Run: "r3"}, "u3 root3"},
		{"an agent with the beginning of a name", agent.FullContext, agent.Viewer{Run: "r3", Path: "ab/"}, "u1 root1 u2 u3 root3"},
		{"the request before", agent.RequestContext, agent.Viewer{Run: "r2", Path: "a/"}, "u2 a2 ax2"},
	} {
		var got []string
		for _, e := range agent.VisibleEntries(session(), k.see, k.at) {
			got = append(got, e.Message.Text())
		}
		equal(t, k.name, strings.Join(got, " "), k.want)
	}
	if got := agent.VisibleEntries(append(session(), agent.Entry{Message: llm.User("u4")}), agent.RequestContext, agent.Viewer{Run: "r4"}); len(got) != 1 || got[0].Message.Text() != "u4" {
		t.Errorf("at the beginning of a run: %v", got)
	}
}

func TestAModelNodeSeesItsVisibleEntries(t *testing.T) {
	m, all := &asked{name: "m"}, &asked{name: "all"}
	r := &graph.Runner{Graph: chain(t, agent.Think{Model: m, Visibility: agent.RequestContext}.Node("m"), agent.Think{Model: all}.Node("all")), Store: journal.NewMemory()}
	for _, text := range []string{"one", "two"} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(text)}); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "of this run only", m.seen(1), "user: two")
	equal(t, "of all", all.seen(1), "user: one | assistant: m 1\n\nall 1 | user: two | assistant: m 2 | user: [Continue.]")
}

func TestASessionStartsWithMessagesOfAnother(t *testing.T) {
	m := &asked{name: "m"}
	r := &graph.Runner{Graph: loop(t, m), Store: journal.NewMemory()}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "old", Set: agent.Turn("one")}); err != nil {
		t.Fatal(err)
	}
	old, err := r.State(t.Context(), "old", 0)
	if err != nil {
		t.Fatal(err)
	}
	set := append([]graph.Write{agent.Messages.Set(agent.Messages.Get(old))}, agent.Turn("two")...)
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "new", Set: set}); err != nil {
		t.Fatal(err)
	}
	equal(t, "the new session", m.seen(1), "user: one | assistant: m 1 | user: two")
}

func TestEntriesOfOldJournalsHaveNoPath(t *testing.T) {
	store := journal.NewMemory()
	m := &asked{name: "m"}
	r := &graph.Runner{Graph: chain(t, agent.Think{Model: m}.Node("m"), agent.Think{Model: m, Visibility: agent.RequestContext}.Node("now")), Store: store}
	old := []agent.Entry{{Message: llm.User("one")}, {Message: say("yes"), By: "m"}}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: append([]graph.Write{agent.Messages.Set(old)}, agent.Turn("two")...)}); err != nil {
		t.Fatal(err)
	}
	equal(t, "all of it", m.seen(0), "user: one | assistant: yes | user: two")
	equal(t, "of this run", m.seen(1), "user: two | assistant: m 1 | user: [Continue.]")
}

func TestSummariesAreWorded(t *testing.T) {
	long := strings.Repeat("word ", 300)
	for _, k := range []struct {
		name    string
		summary bool
		see     agent.Visibility
		want    bool
	}{{"with a summary", true, agent.FullContext, true}, {"without", false, agent.FullContext, false}, {"of this run only", true, agent.RequestContext, false}} {
		t.Run(k.name, func(t *testing.T) {
			m, sums := &asked{name: "m"}, &asked{name: "It was long."}
			formatted := 0
			w := agent.Window{Tokens: 700, Reply: 100, Format: func(summary string, messages int) string {
				formatted++
				return fmt.Sprintf("<before messages=%d>%s</before>", messages, summary)
			}}
			if k.summary {
				w.Summary = sums
			}
			r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Window: w, Visibility: k.see}), Store: journal.NewMemory()}
			for _, text := range []string{"a " + long, "b " + long, "c " + long} {
				if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(text)}); err != nil {
					t.Fatal(err)
				}
			}
			last := m.seen(2)
			if got := strings.Count(last, "<before messages="); (got == 1) != k.want || (formatted > 0) != k.want || strings.Contains(last, "It was long.") != k.want {
				t.Errorf("%d blocks in %.200s, formatted %d times", got, last, formatted)
			}
		})
	}
}

func TestTerminalPrintsTheLastReplies(t *testing.T) {
	var c counted
	a := &asked{name: "a", answers: []llm.Message{call("x", "look", `{}`)}}
	b := &asked{name: "b", answers: []llm.Message{call("x", "look", `{}`)}}
	look := c.tool("look", tool.ReadOnly, false)
	g := chain(t, agent.Agent{Graph: loop(t, a, look)}.Node("a"), agent.Think{Model: &asked{name: "mid"}}.Node("mid"), agent.Agent{Graph: loop(t, b, look)}.Node("b"))
	filter := agent.TerminalFilter(g)
	var shown, final []string
	tools := 0
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi"), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if !filter(ev) {
			continue
		}
		sent, ok := ev.Body.(graph.ValueEmitted)
		if !ok {
			continue
		}
		switch v := sent.Value.(type) {
		case agent.ReplyDone:
			shown = append(shown, strings.Join(shape([]llm.Message{v.Message}), " "))
		case agent.ToolStarted:
			tools++
		}
		if m, ok := agent.FinalReply(ev); ok {
			final = append(final, m.Text())
		}
	}
	if d := cmp.Diff([]string{"call x look{}", "assistant: b 2"}, shown); d != "" || tools != 2 {
		t.Errorf("shown (-want +got):\n%s and %d calls, want 2", d, tools)
	}
	if d := cmp.Diff([]string{"b 2"}, final); d != "" {
		t.Errorf("final (-want +got):\n%s", d)
	}
}

func TestTheCallerExecutesACall(t *testing.T) {
	var c counted
	m := &asked{name: "m", answers: []llm.Message{
		both(call("x", "look", `{}`), call("y", "locate", `{"precise":true}`), call("z", "pick", `{}`)), call("w", "look", `{"n":2}`)}}
	tools := []tool.Tool{c.tool("look", tool.Dangerous, false), agent.CallerTool(llm.ToolSpec{Name: "locate"}), agent.CallerTool(llm.ToolSpec{Name: "pick"})}
	store := journal.NewMemory()
	r := &graph.Runner{Graph: loop(t, m, tools...), Store: store}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Where am I?")})
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 2 {
		t.Fatalf("status %v, error %v, questions %v", res.Status, err, res.Questions)
	}
	answers := map[string]graph.Answer{"locate": {Value: map[string]any{"city": "Oslo"}}, "pick": {Refused: "not today"}}
	var given []graph.Answer
	for _, q := range res.Questions {
		var asked agent.CallData
		if err := json.Unmarshal(q.Data, &asked); err != nil || q.Kind != agent.KindCaller || asked.Tool == "locate" && string(asked.Args) != `{"precise":true}` {
			t.Errorf("question of kind %q with %s", q.Kind, q.Data)
		}
		a := answers[asked.Tool]
		a.ID = q.ID
		given = append(given, a)
	}
	again := &graph.Runner{Graph: loop(t, m, tools...), Store: store}
	res, err = again.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: given})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	equal(t, "the second request", m.seen(1), `user: Where am I? | call x look{} | call y locate{"precise":true} | call z pick{} | `+
		`result x: {"output":"look did {}"} | result y: {"city":"Oslo"} | result z: {"tool_call_error":"the call was not made: not today"}`)
	if d := cmp.Diff([]string{"look{}", `look{"n":2}`}, c.calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
}

func TestACallerToolInsideAnAgent(t *testing.T) {
	m := &asked{name: "m", answers: []llm.Message{call("y", "locate", `{}`)}}
	r := &graph.Runner{Graph: chain(t, agent.Agent{Graph: loop(t, m, agent.CallerTool(llm.ToolSpec{Name: "locate"}))}.Node("helper")), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Where?")})
	if err != nil || len(res.Questions) != 1 {
		t.Fatalf("error %v, questions %v", err, res.Questions)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "Oslo"}}})
	if err != nil || agent.LastResponse(res.State) != "m 2" {
		t.Errorf("response %q, error %v", agent.LastResponse(res.State), err)
	}
	equal(t, "the second request", m.seen(1), `user: Where? | call y locate{} | result y: {"output":"Oslo"}`)
}

func TestCallsOfSomeToolsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most atomic.Int32
		slow := func(name string) tool.Tool {
			return tool.Tool{Name: name, Effect: tool.ReadOnly, Parallel: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
				if name == "db" {
					most.Store(max(most.Load(), active.Add(1)))
					defer active.Add(-1)
				}
				time.Sleep(time.Second)
				return tool.TextResult("ok"), nil
			}}
		}
		m := countReplies(both(call("a", "db", `{"n":1}`), call("b", "db", `{"n":2}`), call("c", "db", `{"n":3}`), call("d", "web", `{}`), call("e", "web", `{"n":1}`)), say("ok"))
		g := compile(t, agent.Config{Model: m, Tools: []tool.Tool{slow("db"), slow("web")}, AroundTools: []agent.ToolMiddleware{agent.LimitCalls(1, "db"), agent.LimitCalls(4)}})
		began := time.Now()
		_, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: agent.Turn("Go.")})
		if took := time.Since(began); err != nil || took != 3*time.Second || most.Load() != 1 {
			t.Errorf("error %v, took %v, %d at once", err, took, most.Load())
		}
	})
}

func TestACallHasAnEventWhenItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Tool{Name: "slow", Run: func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(150 * time.Millisecond)
			return tool.TextResult("ok"), nil
		}}
		r := &graph.Runner{Graph: loop(t, countReplies(call("a", "slow", `{}`), say("ok")), slow)}
		began := time.Now()
		at := map[string]time.Duration{}
		for ev, err := range r.Run(t.Context(), graph.Input{Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
			if sent, ok := ev.Body.(graph.ValueEmitted); ok && err == nil {
				at[fmt.Sprintf("%T", sent.Value)] = time.Since(began)
			}
		}
		if at["agent.ToolStarted"] >= 50*time.Millisecond || at["agent.ToolDone"] != 150*time.Millisecond {
			t.Errorf("events after %v", at)
		}
	})
}

func TestAStreamBecomesOneMessage(t *testing.T) {
	var c counted
	s := strict(t, func(w http.ResponseWriter, _ *http.Request, messages []wireMessage) {
		if messages[len(messages)-1].Role == "tool" {
			saying(w, "Two.")
			return
		}
		stream(w, textChunk("Let me "), textChunk("look."),
			`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":"{\"n\""}},{"index":1,"id":"b","type":"function","function":{"name":"look","arguments":""}}]}}]}`,
			`{"id":"r","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":":1}"}}]}}]}`)
		stream(w, endChunks("tool_calls")...)
	})
	r := &graph.Runner{Graph: loop(t, s.model(), c.tool("look", tool.ReadOnly, false)), Store: journal.NewMemory()}
	var pieces, final []string
	var res graph.Result
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("How many?"), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := agent.FinalReply(ev); ok {
			final = append(final, m.Text())
		}
		switch body := ev.Body.(type) {
		case graph.RunEnded:
			res = body.Result
		case graph.ValueEmitted:
			if d, ok := body.Value.(agent.TextDelta); ok {
				pieces = append(pieces, d.Text)
			}
		}
	}
	equal(t, "the conversation", conversation(res.State), `user: How many? | assistant: Let me look. | call a look{"n":1} | call b look{} | `+
		`result a: {"output":"look did {\"n\":1}"} | result b: {"output":"look did {}"} | assistant: Two.`)
	if d := cmp.Diff([]string{"Let me ", "look.", "Two."}, pieces); d != "" {
		t.Errorf("pieces (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"Two."}, final); d != "" {
		t.Errorf("final (-want +got):\n%s", d)
	}
	s.check()
}

func TestAModelThatFailsIsAnError(t *testing.T) {
	for _, k := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		want   string
	}{
		{"no choices", func(w http.ResponseWriter) { stream(w, `{"id":"r","choices":[]}`, "[DONE]") }, "the reply is empty"},
		{"an error of the provider", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":{"message":"no such key","type":"auth"}}`)) // the client reads it or not
		}, "no such key"},
	} {
		t.Run(k.name, func(t *testing.T) {
			s := strict(t, func(w http.ResponseWriter, _ *http.Request, _ []wireMessage) { k.answer(w) })
			g := compile(t, agent.Config{Model: s.model(), Retry: agent.Retry{Patience: -1}})
			res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: agent.Turn("hi")})
			var node *graph.NodeError
			if !errors.As(err, &node) || node.Node != agent.NodeThink || node.Stack != nil || !strings.Contains(err.Error(), k.want) || res.Status != graph.Failed {
				t.Errorf("status %v, error %v", res.Status, err)
			}
		})
	}
}

func TestACallThatAsksKeepsTheOthers(t *testing.T) {
	var c counted
	asks := tool.Tool{Name: "asks", Effect: tool.ReadOnly, Run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Name: call.ID, Prompt: "which?"})
		return tool.TextResult(answer), err
	}}
	m := &asked{name: "m", answers: []llm.Message{both(call("a", "put", `{"n":1}`), call("b", "asks", `{}`), call("c", "put", `{"n":3}`))}}
	r := &graph.Runner{Graph: loop(t, m, c.tool("put", tool.Dangerous, false), asks), Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || res.Status != graph.Waiting || !cmp.Equal(c.calls, []string{`put{"n":1}`}) {
		t.Fatalf("status %v, error %v, calls %v", res.Status, err, c.calls)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "that"}}})
	if err != nil || !cmp.Equal(c.calls, []string{`put{"n":1}`, `put{"n":3}`}) {
		t.Fatalf("error %v, calls %v", err, c.calls)
	}
	equal(t, "the second request", m.seen(1), `user: Go. | call a put{"n":1} | call b asks{} | call c put{"n":3} | `+
		`result a: {"output":"put did {\"n\":1}"} | result b: {"output":"that"} | result c: {"output":"put did {\"n\":3}"}`)
}

func TestAHookOfAnAgentNodeSeesTheModelsOfTheAgent(t *testing.T) {
	m := agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if yield(llm.Delta{Text: "Fi"}, nil) && yield(llm.Delta{Text: "ve."}, nil) {
				yield(llm.Delta{Done: &llm.Reply{Message: say("Five.")}}, nil)
			}
		}
	})
	for _, topics := range []graph.Topic{0, graph.TopicEmit} {
		node := agent.Agent{Graph: compiled(agent.Config{Model: m}.Compile())}.Node("helper")
		var heard []string
		node.Hooks = []graph.Hooks{{Emit: func(_ context.Context, i graph.Info, v any) {
			if d, ok := v.(agent.TextDelta); ok {
				heard = append(heard, i.Path+i.Node+" "+d.Text)
			}
		}}}
		for _, err := range (&graph.Runner{Graph: line(node), Store: journal.NewMemory()}).Run(t.Context(), graph.Input{Set: agent.TurnInput("How many?"), Topics: topics}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"helper/think Fi", "helper/think ve."}, heard); diff != "" {
			t.Errorf("topics %d:\n%s", topics, diff)
		}
	}
}
