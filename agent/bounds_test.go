package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
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

func results(s graph.State) (list []string) {
	for _, line := range shape(agent.History(s)) {
		if strings.HasPrefix(line, "result ") {
			list = append(list, line)
		}
	}
	return list
}

func TestRepeatedCallsAreStopped(t *testing.T) {
	same := func(id string) llm.Message { return call(id, "look", `{"a":1,"b":2}`) }
	turned := call("3", "look", `{"b":2, "a":1}`) // the same arguments
	var c counted
	res := run(t, agent.Config{Model: countReplies(same("1"), same("2"), turned, same("4"), call("5", "look", `{}`), same("6"), say("ok")),
		Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false)}}, "Go.")
	got := results(res.State)
	for i, blocked := range []bool{false, false, true, true, false, false} {
		if strings.Contains(got[i], "tool_call_loop_alert") != blocked {
			t.Errorf("call %d: %s", i+1, got[i])
		}
	}
	var alert struct {
		Alert struct {
			Error struct {
				Message, Param string
				Code           int
				History        []struct {
					Name      string
					Arguments map[string]int
				} `json:"call_history"`
			}
		} `json:"tool_call_loop_alert"`
	}
	_, text, _ := strings.Cut(got[2], ": ")
	if err := json.Unmarshal([]byte(text), &alert); err != nil {
		t.Fatalf("the alert %s is not JSON: %v", text, err)
	}
	if e := alert.Alert.Error; e.Code != 400 || e.Message == "" || e.Param == "" || len(e.History) != 3 || e.History[0].Arguments["a"] != 1 {
		t.Errorf("alert %+v", e)
	}
	if len(c.calls) != 4 {
		t.Errorf("calls %v", c.calls)
	}
}

// TestWhatIsNoLoop lets through what polls, what changes, and what may be repeated.
func TestWhatIsNoLoop(t *testing.T) {
	same := func(name string) []llm.Message {
		list := make([]llm.Message, 5, 6)
		for i := range list {
			list[i] = call(fmt.Sprint(i), name, `{}`)
		}
		return append(list, say("ok"))
	}
	n := 0
	for _, k := range []struct {
		name    string
		tool    tool.Tool
		repeats int
	}{
		{"it polls", tool.Tool{Name: "x", Polls: true}, 0},
		{"results change", tool.Tool{Name: "x", Run: func(context.Context, tool.Call) (tool.Result, error) { n++; return tool.JSONResult(n), nil }}, 0},
		{"no limit", tool.Tool{Name: "x"}, -1},
	} {
		if k.tool.Run == nil {
			k.tool.Run = func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("same"), nil }
		}
		res := run(t, agent.Config{Model: countReplies(same("x")...), Calls: agent.Calls{Repeats: k.repeats}, Tools: []tool.Tool{k.tool}}, "Go.")
		if got := strings.Join(results(res.State), "\n"); strings.Contains(got, "alert") {
			t.Errorf("%s: %s", k.name, got)
		}
	}
}

func TestBudgets(t *testing.T) {
	prices := map[string]agent.Price{"big": {Input: 10, Output: 100}}
	for _, k := range []struct {
		budget agent.Budget
		what   string
		calls  int // of tools that were made
	}{
		{agent.Budget{Tokens: 250}, "tokens", 3},
		{agent.Budget{Money: 0.003, Prices: prices}, "money", 2},
		{agent.Budget{Calls: 2}, "calls", 2},
		{agent.Budget{ToolCalls: 1}, "tool calls", 1},
	} {
		n := 0
		m := agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				n++
				yield(llm.Delta{Done: &llm.Reply{Model: "big", Message: call("x", "look", fmt.Sprint(`{"n":`, n, `}`)), Usage: llm.Usage{Input: 90, Output: 10}}}, nil)
			}
		})
		var c counted
		config := agent.Config{Model: m, Budget: k.budget, Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false)}}
		r := &graph.Runner{Graph: compile(t, config), Store: journal.NewMemory()}
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		var spent *agent.BudgetError
		if limit := (*graph.LimitError)(nil); !errors.As(err, &limit) || !errors.As(err, &spent) || spent.What != k.what || len(c.calls) != k.calls {
			t.Errorf("%s: error %v after %d calls", k.what, err, len(c.calls))
		}
		// A new turn has a budget of its own.
		if _, err = agent.InvokeNext(t.Context(), r, graph.Input{Thread: "t", Set: agent.Turn("Again.")}); !errors.As(err, &spent) || len(c.calls) != 2*k.calls {
			t.Errorf("%s: error %v after %d calls in two turns", k.what, err, len(c.calls))
		}
	}
}

func TestWhatIsNotPricedIsSaid(t *testing.T) {
	res := run(t, agent.Config{Model: countReplies(say("ok")), Budget: agent.Budget{Money: 1, Prices: map[string]agent.Price{"other": {Input: 1, Output: 1}}}}, "Go.")
	if got := agent.Spent.Get(res.State); got.Money != 0 || got.Unpriced != 1 {
		t.Errorf("spent %+v", got)
	}
}

func TestTimeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := tool.Tool{Name: "slow", Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return tool.Result{}, ctx.Err()
		}}
		r := &graph.Runner{Graph: compile(t, agent.Config{Model: countReplies(call("x", "slow", "{}")), Tools: []tool.Tool{slow}, Budget: agent.Budget{Time: time.Minute}})}
		res, err := r.Invoke(t.Context(), graph.Input{Set: agent.Turn("Go.")})
		var limit *graph.LimitError
		if res.Status != graph.TimedOut || !errors.As(err, &limit) {
			t.Errorf("status %v, error %v", res.Status, err)
		}
	})
}

// A request for at most one call in a reply also means that the calls of a reply that has several run one after the other.
func TestSerialCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := tool.Tool{Name: "wait", Effect: tool.ReadOnly, Parallel: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(10 * time.Millisecond)
			return tool.TextResult("over"), nil
		}}
		m := countReplies(both(call("a", "wait", `{}`), call("b", "wait", `{"n":1}`), call("c", "wait", `{"n":2}`)), say("ok"))
		began := time.Now()
		r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Request: llm.Request{Serial: true}, Tools: []tool.Tool{wait}})}
		if res, err := r.Invoke(t.Context(), graph.Input{Set: agent.Turn("Go.")}); err != nil || res.Err != nil || time.Since(began) != 30*time.Millisecond {
			t.Errorf("%v, %v, took %v", err, res.Err, time.Since(began))
		}
	})
}

// TestCallsAtOnce runs calls side by side, no more than allowed, with outcomes in
// the order of the calls.
func TestCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		active, most := 0, 0
		wait := tool.Tool{Name: "wait", Effect: tool.ReadOnly, Parallel: true, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			mu.Lock()
			active++
			most = max(most, active)
			mu.Unlock()
			var in struct{ MS int }
			_ = json.Unmarshal(c.Args, &in) // the arguments are those below
			time.Sleep(time.Duration(in.MS) * time.Millisecond)
			mu.Lock()
			active--
			mu.Unlock()
			return tool.JSONResult(in.MS), nil
		}}
		m := countReplies(both(call("a", "wait", `{"ms":30}`), call("b", "wait", `{"ms":20}`), call("c", "wait", `{"ms":10}`)), say("ok"))
		began := time.Now()
		r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Tools: []tool.Tool{wait}, Calls: agent.Calls{Concurrency: 2}})}
		res, err := r.Invoke(t.Context(), graph.Input{Set: agent.Turn("Go.")})
		if took := time.Since(began); err != nil || took != 30*time.Millisecond || most != 2 {
			t.Errorf("error %v, took %v, %d at once", err, took, most)
		}
		if d := cmp.Diff([]string{"result a: 30", "result b: 20", "result c: 10"}, results(res.State)); d != "" {
			t.Errorf("results (-want +got):\n%s", d)
		}
	})
}

func TestCallsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, hooks := map[string]int{}, 0
		flaky := func(name string, err error) tool.Tool {
			return tool.Tool{Name: name, Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				if tries[name]++; tries[name] < 3 {
					return tool.Result{}, err
				}
				return tool.TextResult("at last"), nil
			}}
		}
		panics := tool.Tool{Name: "panics", Parallel: true, Run: func(context.Context, tool.Call) (tool.Result, error) { panic("oh") }}
		hangs := tool.Tool{Name: "hangs", Parallel: true, Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}}
		m := countReplies(both(call("a", "flaky", `{}`), call("b", "firm", `{}`), call("c", "panics", `{}`), call("d", "hangs", `{}`)), say("ok"))
		r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m,
			Tools: []tool.Tool{flaky("flaky", io.ErrUnexpectedEOF), flaky("firm", errors.New("no such file")), panics, hangs},
			Calls: agent.Calls{Timeout: time.Minute, Retry: agent.ToolRetry{Attempts: 3, Delay: time.Second}},
			AroundTools: []agent.ToolMiddleware{func(next agent.ToolFunc) agent.ToolFunc {
				return func(ctx context.Context, tl tool.Tool, c tool.Call) (tool.Result, error) {
					if tl.Name == "flaky" {
						hooks++
					}
					return next(ctx, tl, c)
				}
			}}})}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		if err != nil || tries["flaky"] != 3 || tries["firm"] != 1 || hooks != 1 {
			t.Errorf("error %v, tries %v, %d times through the middleware", err, tries, hooks)
		}
		want := []string{`result a: {"output":"at last"}`, `result b: {"tool_call_error":"no such file"}`, `result c: {"tool_call_error":"panics panicked: oh"}`,
			`result d: {"tool_call_error":"Tool call 'hangs' timed out after 1m0s"}`}
		if d := cmp.Diff(want, results(res.State)); d != "" {
			t.Errorf("results (-want +got):\n%s", d)
		}
	})
}

// TestMiddleware changes requests, replies, arguments and results, and answers instead of a model
// and of a tool.
func TestMiddleware(t *testing.T) {
	var order []string
	model := func(name string) agent.ModelMiddleware {
		return func(next llm.Model) llm.Model {
			return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
				order = append(order, name)
				r.System += name
				if name == "inner" && strings.HasSuffix(r.Messages[len(r.Messages)-1].Text(), "shortcut") {
					return countReplies(say("short "+r.System)).Stream(ctx, r)
				}
				return next.Stream(ctx, r)
			})
		}
	}
	tools := func(next agent.ToolFunc) agent.ToolFunc {
		return func(ctx context.Context, tl tool.Tool, c tool.Call) (tool.Result, error) {
			if tl.Name == "fake" {
				return tool.TextResult("in its place"), nil
			}
			c.Args = json.RawMessage(`{"n":2}`)
			r, err := next(ctx, tl, c)
			return tool.TextResult(r.Text() + "!"), err
		}
	}
	var c counted
	config := agent.Config{Model: countReplies(both(call("a", "look", `{"n":1}`), call("b", "fake", `{}`)), say("ok")), AroundModel: []agent.ModelMiddleware{model("outer"), model("inner")},
		AroundTools: []agent.ToolMiddleware{tools}, Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false), c.tool("fake", tool.ReadOnly, false)}}
	res := run(t, config, "Go.")
	if d := cmp.Diff([]string{`look{"n":2}`}, c.calls); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{`result a: {"output":"{\"output\":\"look did {\\\"n\\\":2}\"}!"}`, `result b: {"output":"in its place"}`}, results(res.State)); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"outer", "inner", "outer", "inner"}, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if res := run(t, config, "shortcut"); agent.LastResponse(res.State) != "short outerinner" {
		t.Errorf("response %q", agent.LastResponse(res.State))
	}
}

// TestNoSecretGetsOut looks for a secret in every byte of a journal, in events and
// in requests.
func TestNoSecretGetsOut(t *testing.T) {
	const secret = "hunter2-hunter2"
	leak := tool.Tool{Name: "env", Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("KEY=" + secret), nil }}
	fails := tool.Tool{Name: "curl", Run: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, errors.New("401 with " + secret)
	}}
	m := replay(t, "- tool_calls: [{name: env, args: {}}, {name: curl, args: {}}]\n- text: The key is "+secret+".\n")
	st := &kept{Store: journal.NewMemory()}
	r := &graph.Runner{Store: st, Graph: compile(t, agent.Config{Model: m.model(), Tools: []tool.Tool{leak, fails}, Request: llm.Request{System: "Use " + secret},
		Redact: func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }})}
	var events []string
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.AllTopics}) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, string(b))
	}
	var requests []string
	for _, r := range m.requests {
		requests = append(requests, r.System)
		requests = append(requests, shape(r.Messages)...)
	}
	for where, texts := range map[string][]string{"events": events, "requests": requests, "journal": st.data} {
		all := strings.Join(texts, "\n")
		if strings.Contains(all, secret) || !strings.Contains(all, "[redacted]") {
			t.Errorf("%s: %s", where, all)
		}
	}
}

// kept keeps the text of every record.
type kept struct {
	journal.Store
	data []string
}

func (k *kept) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		k.data = append(k.data, string(r.Head), string(r.Data))
	}
	return k.Store.Append(ctx, thread, after, recs)
}

// TestEvents checks that events report what happens while it happens, and nothing twice.
func TestEvents(t *testing.T) {
	m := replay(t, `
- reasoning: Hm.
  text: Wait.
  tool_calls: [{id: a, name: look, args: {n: 1}}]
  usage: {input: 1000, output: 100}
- text: Done.
`)
	var c counted
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m.model(), Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false)},
		Budget: agent.Budget{Price: agent.Price{Input: 1, Output: 10}}})}
	var got []string
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := ev.Body.(graph.ValueEmitted); ok {
			if d, ok := e.Value.(agent.ToolDone); ok {
				d.Took = 0
				e.Value = d
			}
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(b))
		}
	}
	want := []string{
		`{"type":"reasoning_delta","text":"Hm."}`,
		`{"type":"text_delta","text":"Wait."}`,
		`{"type":"replied","message":{"role":"assistant","parts":[{"type":"reasoning","text":"Hm.","origin":"script"},{"type":"text","text":"Wait."},{"type":"tool_call","id":"a","name":"look","args":{"n":1}}]},"model":"script:transcript.yaml","usage":{"input":1000,"output":100},"stop":"tools","cost":0.002,"priced":true}`,
		`{"type":"spending","calls":1,"usage":{"input":1000,"output":100},"money":0.002}`,
		`{"type":"tool_started","id":"a","name":"look","args":{"n":1}}`,
		`{"type":"tool_done","id":"a","name":"look","text":"{\"output\":\"look did {\\\"n\\\":1}\"}"}`,
		`{"type":"text_delta","text":"Done."}`,
	}
	if d := cmp.Diff(want, got[:min(len(got), len(want))]); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if slices.ContainsFunc(got[len(want):], func(s string) bool { return strings.Contains(s, `"type":"tool_`) }) {
		t.Errorf("more events: %q", got[len(want):])
	}
}

// TestOutcomesWithoutACall checks that such outcomes are reported as well.
func TestOutcomesWithoutACall(t *testing.T) {
	var c counted
	m := countReplies(both(call("a", "fly", `{}`), call("b", "look", `[]`), call("c", "todo__list", `{}`), call("d", "put", `{}`)), say("ok"))
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Gate: &rules{}, Headless: true, Continue: agent.Continue{Max: 1},
		Tools: []tool.Tool{c.tool("look", tool.ReadOnly, false), c.tool("put", tool.Dangerous, false)}})}
	var done []string
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit}) {
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := ev.Body.(graph.ValueEmitted); ok {
			switch v := e.Value.(type) {
			case agent.ToolStarted:
				t.Errorf("%s was started", v.Name)
			case agent.ToolDone:
				done = append(done, fmt.Sprintf("%s %s %v", v.ID, v.Name, v.Error))
			}
		}
	}
	slices.Sort(done) // a and b are side by side
	if d := cmp.Diff([]string{"a fly true", "b look true", "c todo__list false", "d put true"}, done); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}
