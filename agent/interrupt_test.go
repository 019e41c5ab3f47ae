package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// An interruptCase is one way to interrupt a turn.
type interruptCase struct {
	name     string
	config   func(x *scene) agent.Config
	reply    func(n int, last string) wireReply // until the interruption; then the model says "fine"
	before   bool                               // the signal is there before the run
	at       func(v any) bool                   // the event at which the person interrupts
	server   int                                // the request at which the person interrupts; 0: none
	waits    bool                               // the run waits for a person, who interrupts then
	text     string                             // what the turn says
	requests int
	outcomes []string // a part of each outcome of the turn's calls
	finished bool     // there was nothing left to interrupt
}

func onText(part string) func(v any) bool {
	all := ""
	return func(v any) bool {
		if d, ok := v.(agent.TextDelta); ok {
			all += d.Text
		}
		return strings.Contains(all, part)
	}
}

func on[T any]() func(v any) bool {
	return func(v any) bool { _, ok := v.(T); return ok }
}

// replies are the replies to the first requests.
func replies(list ...wireReply) func(n int, last string) wireReply {
	return func(n int, _ string) wireReply {
		if n > len(list) {
			return wireReply{text: []string{"fine"}}
		}
		return list[n-1]
	}
}

func calls(pairs ...string) wireReply {
	var a wireReply
	for i := 0; i+1 < len(pairs); i += 2 {
		a.calls = append(a.calls, llmtest.Call{ID: fmt.Sprintf("c%d", i/2), Name: pairs[i], Args: pairs[i+1]})
	}
	return a
}

// tools has tools that return at once, that wait for the end of their context, and that ask.
func tools(x *scene) agent.Config {
	quick := func(name string, parallel bool) tool.Tool {
		return tool.Tool{Name: name, Effect: tool.ReadOnly, Parallel: parallel, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("seen"), nil }}
	}
	// slow interrupts and waits; its result says so if it makes one itself.
	slow := func(name string, e tool.Effect, parallel bool, end func(ctx context.Context) (tool.Result, error)) tool.Tool {
		return tool.Tool{Name: name, Effect: e, Parallel: parallel, Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
			x.interrupt()
			<-ctx.Done()
			return end(ctx)
		}}
	}
	fails := func(ctx context.Context) (tool.Result, error) { return tool.Result{}, context.Cause(ctx) }
	first := make(chan struct{})
	return agent.Config{Model: x.model(), Request: llm.Request{System: "You help."}, Tools: append(agent.UserTools(false),
		quick("look", true), quick("put", false),
		slow("wait", tool.ReadOnly, true, fails), slow("send", tool.Dangerous, false, fails),
		slow("done", tool.Dangerous, false, func(context.Context) (tool.Result, error) { return tool.TextResult("done in time"), nil }),
		slow("said", tool.Dangerous, false, func(context.Context) (tool.Result, error) { return tool.FailedResult("signal: killed"), nil }),
		tool.Tool{Name: "second", Effect: tool.ReadOnly, Parallel: true, Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-first
			x.interrupt()
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}},
		tool.Tool{Name: "first", Effect: tool.ReadOnly, Parallel: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
			close(first)
			return tool.TextResult("first seen"), nil
		}},
		tool.Tool{Name: "asks", Effect: tool.Dangerous, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			if len(c.Answers) == 0 {
				return tool.Result{}, &tool.Question{Kind: "input", Prompt: "How much?"}
			}
			return tool.TextResult("asked"), nil
		}},
		tool.Tool{Name: "fly", Effect: tool.Idempotent, Run: func(context.Context, tool.Call) (tool.Result, error) {
			x.interrupt()
			return tool.Result{}, errors.New("the connection is gone")
		}},
		agent.CallerTool(llm.ToolSpec{Name: "yours"}))}
}

// askAll is a gate that asks about every call of put.
type askAll struct{ stubGate }

type stubGate struct{}

func (stubGate) Always(context.Context, []string) error { return nil }

func (askAll) Decide(_ context.Context, t tool.Tool, _ tool.Call, _ []string) (agent.Decision, error) {
	if t.Name == "put" {
		return agent.Decision{Verdict: agent.Ask, Prompt: "May it?"}, nil
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}

// withAgent has an agent as a tool, which uses the same provider: its own requests begin with "sub".
func withAgent(x *scene) agent.Config {
	c := tools(x)
	inner := tools(x)
	inner.Name, inner.Request.System = "inner", "You are the inner one."
	c.Agents = []agent.AgentTool{{Spec: llm.ToolSpec{Name: "helper"}, Graph: compile(x.t, inner)}}
	return c
}

const notMade, cutShort, inPart = "before this call was made", "The user interrupted this call.", "may have been made in part"

// interruptCases are the interruptions of a single agent.
func interruptCases() []interruptCase {
	half := wireReply{text: []string{"Half an ", "answer"}, hang: true}
	begin := wireReply{text: []string{"Let me see. "}}
	withText := func(a wireReply) wireReply { a.text = begin.text; return a }
	gated := func(x *scene) agent.Config { c := tools(x); c.Gate = askAll{}; return c }
	sub := func(inner ...wireReply) func(n int, last string) wireReply {
		return replies(append([]wireReply{calls("helper", `{"request":"sub"}`)}, inner...)...)
	}
	return []interruptCase{
		{name: "before the run", before: true},
		{name: "before the first token", reply: replies(wireReply{hang: true}), server: 1, requests: 1},
		{name: "in the reasoning", reply: replies(wireReply{reason: "hmm", hang: true}), at: on[agent.ReasoningDelta](), requests: 1},
		{name: "in the text", reply: replies(half), at: onText("Half an answer"), text: "Half an answer", requests: 1},
		{name: "in the text behind reasoning", reply: replies(wireReply{reason: "hmm", text: half.text, hang: true}), at: onText("answer"), text: "Half an answer", requests: 1},
		{name: "after white space", reply: replies(wireReply{text: []string{" \n"}, hang: true}), at: on[agent.TextDelta](), requests: 1},
		{name: "behind a line", reply: replies(wireReply{text: []string{"One.\n\n"}, hang: true}), at: on[agent.TextDelta](), text: "One.", requests: 1},
		{name: "between text and calls", reply: replies(wireReply{text: begin.text, cut: "{", hang: true}), at: on[agent.TextDelta](), text: "Let me see.", requests: 1},
		{name: "in the arguments of a call", reply: replies(wireReply{cut: `{"path":"/tm`, hang: true}), server: 1, requests: 1},
		{name: "in the arguments of the second call", reply: replies(wireReply{calls: calls("look", "{}").calls, cut: `{"p`, hang: true}), server: 1, requests: 1},
		{name: "when the reply with calls is complete", reply: replies(withText(calls("put", "{}", "put", `{"n":1}`))), at: on[agent.ReplyDone](), text: "Let me see.", requests: 1,
			outcomes: []string{"", ""}},
		{name: "after the last token", reply: replies(wireReply{text: []string{"All."}}), at: on[agent.ReplyDone](), text: "All.", requests: 1, finished: true},
		{name: "in the first of two calls", reply: replies(calls("send", "{}", "put", "{}")), requests: 1, outcomes: []string{inPart, notMade}},
		{name: "in the second of two calls", reply: replies(withText(calls("put", "{}", "send", "{}"))), text: "Let me see.", requests: 1, outcomes: []string{"seen", inPart}},
		{name: "in a parallel call, the other is done", reply: replies(calls("first", "{}", "second", "{}")), requests: 1, outcomes: []string{"first seen", cutShort}},
		{name: "in both parallel calls", reply: replies(calls("wait", `{"n":1}`, "wait", `{"n":2}`, "put", "{}")), requests: 1, outcomes: []string{cutShort, cutShort, notMade}},
		{name: "in a call of the second round", reply: replies(calls("look", "{}"), calls("send", "{}")), requests: 2, outcomes: []string{"seen", inPart}},
		{name: "a call that ends well nevertheless", reply: replies(calls("done", "{}", "put", "{}")), requests: 1, outcomes: []string{"done in time", notMade}},
		{name: "a call that reports its own end", reply: replies(calls("said", "{}")), requests: 1, outcomes: []string{inPart}},
		{name: "an unknown tool", reply: replies(calls("send", "{}", "nothing", "{}")), requests: 1, outcomes: []string{inPart, notMade}},
		{name: "in the wait of a tool", reply: replies(calls("fly", "{}")), requests: 1, outcomes: []string{cutShort},
			config: func(x *scene) agent.Config {
				c := tools(x)
				c.Calls.Retry = agent.ToolRetry{Attempts: 3, Delay: 3600e9, If: func(error) bool { return true }}
				return c
			}},
		{name: "in the wait for a place", reply: replies(calls("look", `{"n":1}`, "wait", `{"n":2}`, "look", `{"n":3}`)), requests: 1, outcomes: []string{"seen", cutShort, "seen"},
			config: func(x *scene) agent.Config { c := tools(x); c.Calls.Concurrency = 2; return c }},
		{name: "in the list of tools", config: func(x *scene) agent.Config {
			c := tools(x)
			c.ListTools = func(ctx context.Context) ([]tool.Tool, error) {
				first := false
				x.once.Do(func() { first = true })
				if first {
					x.interrupt()
					<-ctx.Done()
				}
				return nil, ctx.Err()
			}
			return c
		}},
		{name: "in the wait for a rate limit", reply: replies(wireReply{status: 429}), at: on[agent.RetryScheduled](), requests: 1},
		{name: "in the wait after a broken connection", reply: replies(wireReply{text: half.text, drop: true}), at: on[agent.RetryScheduled](), requests: 1},
		{name: "in a summary", requests: 2, reply: replies(wireReply{text: []string{strings.Repeat("much ", 600)}}, wireReply{hang: true}), server: 2,
			config: func(x *scene) agent.Config {
				c := tools(x)
				c.Window = agent.Window{Tokens: 4000, Soft: 300, Keep: 1, Summary: c.Model}
				return c
			}},
		{name: "at a permission", config: gated, reply: replies(withText(calls("put", "{}", "look", "{}"))), waits: true, text: "Let me see.", requests: 1, outcomes: []string{notMade, notMade}},
		{name: "at a permission after a call", config: gated, reply: replies(calls("look", "{}", "put", "{}")), waits: true, requests: 1, outcomes: []string{"seen", notMade}},
		{name: "at a question of the model", reply: replies(calls("user__ask", `{"question":"Which?","options":["a","b"]}`)), waits: true, requests: 1, outcomes: []string{notMade}},
		{name: "at a question of a tool", reply: replies(calls("asks", "{}")), waits: true, requests: 1, outcomes: []string{notMade}},
		{name: "at a call for the caller", reply: replies(calls("yours", "{}", "look", "{}")), waits: true, requests: 1, outcomes: []string{notMade, "seen"}},
		{name: "in the text of an agent below", config: withAgent, reply: sub(half), at: onText("Half an answer"), requests: 2, outcomes: []string{cutShort}},
		{name: "in a tool of an agent below", config: withAgent, reply: sub(calls("send", "{}")), requests: 2, outcomes: []string{cutShort}},
		{name: "at a question of an agent below", config: withAgent, reply: sub(calls("user__confirm", `{"question":"Sure?"}`)), waits: true, requests: 2, outcomes: []string{notMade}},
		{name: "at a reminder", requests: 3, config: func(x *scene) agent.Config { c := tools(x); c.Continue.Max = 3; return c },
			reply: replies(calls("todo__init", `{"goal":"tea"}`, "todo__add", `{"task":"boil"}`), wireReply{text: []string{"stop"}}, half), at: onText("Half an"), outcomes: []string{"", ""}, text: "Half an"},
	}
}

// A turn may be interrupted at any moment. It ends at once and is done, keeps what there is, every call has an
// outcome, the next turn is accepted by strict providers, and whatever a kill leaves ends in the same way.
func TestTurnAfterInterruption(t *testing.T) {
	for _, wire := range []string{"openai", "anthropic"} {
		for _, k := range interruptCases() {
			t.Run(wire+", "+k.name, func(t *testing.T) {
				t.Parallel()
				k.test(t, wire)
			})
		}
	}
}

func (k interruptCase) test(t *testing.T, wire string) {
	over := false
	config := k.config
	if config == nil {
		config = tools
	}
	var x *scene
	x = newScene(t, wire, config, func(n int, last string) wireReply {
		if over || k.reply == nil {
			return wireReply{text: []string{"fine"}}
		}
		if n == k.server {
			x.interrupt()
		}
		return k.reply(n, last)
	})
	if k.before {
		x.interrupt()
	}
	began := int64(0)
	if k.name == "in a summary" {
		x.turn("Tell me much.", nil)
		x.arm()
		began = 1
	}
	at := k.at
	if k.name == "at a reminder" {
		at = onText("stopHalf an")
	}
	var res graph.Result
	if k.waits {
		r := x.runner()
		if res = x.turn("Go.", nil); res.Status != graph.Waiting {
			t.Fatalf("status %v, want a question", res.Status)
		}
		x.interrupt()
		_ = r
		res = x.turn("", nil)
	} else {
		res = x.turn("Go.", at)
	}
	if res.Status != graph.Done || agent.WasInterrupted(res.State) == k.finished {
		t.Fatalf("status %v, interrupted: %v", res.Status, agent.WasInterrupted(res.State))
	}
	if got := strings.TrimSpace(agent.TurnText(res.State)); got != k.text && !(k.name == "at a reminder" && strings.HasPrefix(got, k.text)) {
		t.Errorf("text %q, want %q", got, k.text)
	}
	if n := x.count(); n != k.requests {
		t.Errorf("%d requests, want %d", n, k.requests)
	}
	k.checkOutcomes(t, res)
	if !k.finished {
		x.checkPrefixes(res, began)
	}
	over = true
	x.arm()
	res = x.turn("And now?", nil)
	if res.Status != graph.Done || agent.WasInterrupted(res.State) || !strings.HasPrefix(agent.LastResponse(res.State), "fine") {
		t.Errorf("the next turn: %v, %q", res.Status, agent.LastResponse(res.State))
	}
	if k.text != "" && !strings.Contains(x.bodies[len(x.bodies)-1], k.text) {
		t.Errorf("the model does not know what it said: %s", x.bodies[len(x.bodies)-1])
	}
	for _, f := range x.refused {
		t.Errorf("the provider refused a history: %s", f)
	}
}

// checkOutcomes compares the outcomes of the calls of the newest turn.
func (k interruptCase) checkOutcomes(t *testing.T, res graph.Result) {
	var got []string
	for _, m := range agent.History(res.State) {
		for _, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				got = append(got, llm.Message{Parts: r.Content}.Text())
			}
		}
	}
	same := slices.EqualFunc(got, k.outcomes, func(text, part string) bool { return strings.Contains(text, part) })
	if !same {
		t.Errorf("outcomes %q, want %q", got, k.outcomes)
	}
}

// Two turns in a row may be interrupted, and a turn that waits may be interrupted by a process that has only read it.
func TestInterruptionsInARow(t *testing.T) {
	for _, wire := range []string{"openai", "anthropic"} {
		x := newScene(t, wire, tools, func(n int, _ string) wireReply {
			switch n {
			case 1, 2:
				return wireReply{text: []string{fmt.Sprint("answer ", n)}, hang: true}
			case 3:
				return calls("send", "{}")
			}
			return wireReply{text: []string{"fine"}}
		})
		for i, text := range []string{"one", "two", "three"} {
			at := onText(fmt.Sprint("answer ", i+1))
			if res := x.turn(text, at); res.Status != graph.Done || !agent.WasInterrupted(res.State) {
				t.Fatalf("%s: %v", text, res.Status)
			}
			x.arm()
		}
		res := x.turn("four", nil)
		got := shape(agent.History(res.State))
		want := []string{"user: one", "assistant: answer 1", "user: two", "assistant: answer 2", "user: three", "call c0 send{}"}
		if !slices.Equal(got[:len(want)], want) || got[len(got)-1] != "assistant: fine" || len(x.refused) > 0 {
			t.Errorf("%s: %q, refused %q", wire, got, x.refused)
		}
	}
}

// A call that a crash left in doubt has an outcome when the turn is interrupted, and no person is asked about it.
func TestInterruptionOfACallInDoubt(t *testing.T) {
	x := newScene(t, "openai", tools, replies(calls("send", "{}")))
	x.turn("Go.", nil)
	var kept []journal.Record
	for r, err := range journal.Records(t.Context(), x.store, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, r)
		if r.Kind == journal.KindIntent {
			break
		}
	}
	x.store = journal.NewMemory()
	if err := x.store.Append(t.Context(), "t", 0, kept); err != nil {
		t.Fatal(err)
	}
	res := x.turn("", nil) // the signal is still there
	if res.Status != graph.Done || !agent.WasInterrupted(res.State) {
		t.Fatalf("%v", res.Status)
	}
	interruptCase{outcomes: []string{inPart}}.checkOutcomes(t, res)
}
