package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// asksFor is a gate that asks about calls with "danger" in their arguments, denies those with "never", and allows others.
type asksFor struct {
	allowAll bool // the rules have changed
	saved    []string
}

func (g *asksFor) Decide(_ context.Context, _ tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	text := string(c.Args)
	switch {
	case strings.Contains(text, "never"):
		return agent.Decision{Verdict: agent.Deny, Reason: "never is never allowed"}, nil
	case g.allowAll || !strings.Contains(text, "danger") || slices.Contains(granted, "put *"):
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	return agent.Decision{Verdict: agent.Ask, Prompt: "Put it?", Diff: "-old secret\n+new", Grant: []string{"put *"}, Lasting: true,
		Detail: &agent.CallDetail{Does: "put secret", Parts: []agent.CallPart{{Text: "secret", Why: "asks"}}}}, nil
}

func (g *asksFor) Always(_ context.Context, rules []string) error {
	g.saved = append(g.saved, rules...)
	return nil
}

func (g *asksFor) CheckNarrowed(_, rules []string) error {
	if slices.Contains(rules, "*") {
		return errors.New("* may allow more")
	}
	return nil
}

// permitRun is a run that waits for permission.
type permitRun struct {
	runner *graph.Runner
	made   counted
	gate   asksFor
	res    graph.Result
}

func beginPermit(t *testing.T) *permitRun {
	t.Helper()
	p := &permitRun{}
	p.runner = &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Name: "dev", Model: countReplies(call("a", "put", `{"text":"danger"}`), say("ok")), Gate: &p.gate,
		Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "[redacted]") }, Tools: []tool.Tool{p.made.tool("put", tool.Dangerous, false)}})}
	var err error
	if p.res, err = p.runner.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err != nil || p.res.Status != graph.Waiting {
		t.Fatalf("status %v, error %v", p.res.Status, err)
	}
	return p
}

// answer answers the open question.
func (p *permitRun) answer(t *testing.T, value any) error {
	t.Helper()
	res, err := p.runner.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: p.res.Questions[0].ID, Value: value}}})
	if err == nil {
		p.res = res
	}
	return err
}

// outcome returns what the model read about the call.
func (p *permitRun) outcome(t *testing.T) string {
	t.Helper()
	if p.res.Status != graph.Done {
		t.Fatalf("status %v, questions %+v", p.res.Status, p.res.Questions)
	}
	return shape(agent.History(p.res.State))[2]
}

// Changed arguments are what the tool gets, and the model reads what was changed, whether the answer is an object or its text.
func TestEditedArguments(t *testing.T) {
	for name, value := range map[string]any{
		"object": map[string]any{"choice": "edit", "args": map[string]any{"text": "mild"}},
		"struct": agent.PermissionAnswer{Choice: "edit", Args: json.RawMessage(`{"text":"mild"}`)},
		"text":   ` {"choice": "edit", "args": {"text":"mild"}}`,
	} {
		p := beginPermit(t)
		if err := p.answer(t, value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff([]string{`put{"text":"mild"}`}, p.made.calls); d != "" {
			t.Errorf("%s: the calls (-want +got)\n%s", name, d)
		}
		want := `result a: The user changed the arguments of this call before it was made. It was made with: {"text":"mild"}` + "\n" + `{"output":"put did {\"text\":\"mild\"}"}`
		if got := p.outcome(t); got != want {
			t.Errorf("%s: the model reads\n%s\nwant\n%s", name, got, want)
		}
	}
}

// What a person has answered about a call counts where the gate lets it run by now without a question: the rules, the mode or the box have changed.
func TestAnAnswerCountsWhereNothingAsks(t *testing.T) {
	for _, c := range []struct {
		name, outcome string
		answer        graph.Answer
		calls         []string
	}{
		{"no", "the user does not want this call of put", graph.Answer{Value: "no"}, nil},
		{"reason", "does not want this call of put: use the other", graph.Answer{Value: "no: use the other"}, nil},
		{"false", "the user does not want this call of put", graph.Answer{Value: false}, nil},
		{"refused", "permission denied: they left", graph.Answer{Refused: "they left"}, nil},
		{"once", "put did", graph.Answer{Value: "once"}, []string{`put{"text":"danger"}`}},
		{"edit", "The user changed the arguments", graph.Answer{Value: map[string]any{"choice": "edit", "args": map[string]any{"text": "mild"}}}, []string{`put{"text":"mild"}`}},
		{"edit to a denied call", "never is never allowed", graph.Answer{Value: map[string]any{"choice": "edit", "args": map[string]any{"text": "never"}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := beginPermit(t)
			p.gate.allowAll = true
			c.answer.ID = p.res.Questions[0].ID
			var err error
			if p.res, err = p.runner.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{c.answer}}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.calls, p.made.calls); d != "" {
				t.Errorf("the calls (-want +got)\n%s", d)
			}
			if got := p.outcome(t); !strings.Contains(got, c.outcome) {
				t.Errorf("the model reads %q, want %q", got, c.outcome)
			}
		})
	}
}

// The gate decides about changed arguments as about any others: it asks again, or denies.
func TestEditedArgumentsAreJudged(t *testing.T) {
	p := beginPermit(t)
	first := p.res.Questions[0]
	edit := func(text string) map[string]any {
		return map[string]any{"choice": "edit", "args": map[string]any{"text": text}}
	}
	if err := p.answer(t, edit("other danger")); err != nil || p.res.Status != graph.Waiting || p.made.calls != nil {
		t.Fatalf("error %v, status %v, calls %q", err, p.res.Status, p.made.calls)
	}
	var d agent.CallData
	if err := json.Unmarshal(p.res.Questions[0].Data, &d); err != nil || !d.Edited || string(d.Args) != `{"text":"other danger"}` || p.res.Questions[0].ID == first.ID && len(p.res.Questions) != 1 {
		t.Fatalf("the second question is about %+v (%v)", d, err)
	}
	if err := p.answer(t, edit("never")); err != nil {
		t.Fatal(err)
	}
	if got := p.outcome(t); !strings.Contains(got, "permission denied: never is never allowed") || p.made.calls != nil {
		t.Errorf("the model reads %q after the calls %q", got, p.made.calls)
	}
}

// What is no answer is refused before it is recorded.
func TestAnswersThatAreNoPermission(t *testing.T) {
	p := beginPermit(t)
	for _, wrong := range []any{
		map[string]any{"choice": "edit"},
		map[string]any{"choice": "edit", "args": "x"},
		map[string]any{"choice": "edit", "args": nil},
		map[string]any{"choice": "maybe"},
		map[string]any{"choice": "once", "args": map[string]any{}},
		map[string]any{"choice": "once", "rules": []string{"put a"}},
		map[string]any{"choice": "always", "rules": []string{"*"}},
		map[string]any{"choice": "edit", "args": map[string]any{}, "more": 1},
		`{"choice": "edit", "args": {}} {}`,
		3.0,
		[]any{"once"},
	} {
		if err := p.answer(t, wrong); !errors.As(err, new(*graph.AnswerError)) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	if err := p.answer(t, "once"); err != nil || len(p.made.calls) != 1 {
		t.Errorf("error %v, calls %q", err, p.made.calls)
	}
}

// Rules that a person has made narrower are saved instead of those that were offered.
func TestNarrowedRules(t *testing.T) {
	p := beginPermit(t)
	if err := p.answer(t, map[string]any{"choice": "always", "rules": []string{"put a"}}); err != nil {
		t.Fatal(err)
	}
	if p.outcome(t); !slices.Equal(p.gate.saved, []string{"put a"}) || len(p.made.calls) != 1 {
		t.Errorf("saved %q, calls %q", p.gate.saved, p.made.calls)
	}
	if p = beginPermit(t); p.answer(t, map[string]any{"choice": "no", "reason": "wrong file"}) != nil || !strings.Contains(p.outcome(t), "does not want this call of put: wrong file") {
		t.Errorf("the model reads %q", p.outcome(t))
	}
}

// A call that was cut off is tried again with the arguments of the person, also if the rules have changed by then.
func TestEditedArgumentsAfterACrash(t *testing.T) {
	p := beginPermit(t)
	ctx, cancel := context.WithCancel(t.Context())
	var args []string
	block := tool.Tool{Name: "put", Effect: tool.Dangerous, Schema: json.RawMessage(`{"type":"object"}`), Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if args = append(args, string(c.Args)); len(args) == 1 {
			cancel()
			return tool.Result{}, ctx.Err()
		}
		return tool.TextResult("done"), nil
	}}
	p.runner.Graph = compile(t, agent.Config{Name: "dev", Model: countReplies(say("ok")), Gate: &p.gate, Tools: []tool.Tool{block}})
	_, _ = p.runner.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: p.res.Questions[0].ID, Value: map[string]any{"choice": "edit", "args": map[string]any{"text": "mild"}}}}})
	p.gate.allowAll = true
	res, err := p.runner.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || res.Status != graph.Waiting || res.Questions[0].Kind != agent.KindDoubt {
		t.Fatalf("error %v, status %v, questions %+v", err, res.Status, res.Questions)
	}
	if res, err = p.runner.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: "retry"}}}); err != nil || res.Status != graph.Done {
		t.Fatalf("error %v, status %v", err, res.Status)
	}
	if d := cmp.Diff([]string{`{"text":"mild"}`, `{"text":"mild"}`}, args); d != "" {
		t.Errorf("the arguments (-want +got)\n%s", d)
	}
	if got := shape(agent.History(res.State))[2]; !strings.Contains(got, "The user changed the arguments") {
		t.Errorf("the model reads %q", got)
	}
}

// The data of the question holds no secrets, and says where the change of a file begins in the prompt.
func TestPermissionQuestionData(t *testing.T) {
	p := beginPermit(t)
	q := p.res.Questions[0]
	var d agent.CallData
	if err := json.Unmarshal(q.Data, &d); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(q.Prompt+string(q.Data), "secret") || d.Agent != "dev" || q.Prompt[d.Detail.Diff:] != "-old [redacted]\n+new" || d.Detail.Parts[0].Text != "[redacted]" {
		t.Errorf("prompt %q, data %s", q.Prompt, q.Data)
	}
}

// No question is asked about a call that its schema forbids: the model reads what is wrong.
func TestArgumentsAreCheckedBeforeAnyoneIsAsked(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	var made counted
	put := made.tool("put", tool.Dangerous, false)
	put.Schema = json.RawMessage(schema)
	remote := agent.CallerTool(llm.ToolSpec{Name: "remote", Schema: json.RawMessage(schema)})
	helper := agent.AgentTool{Spec: llm.ToolSpec{Name: "helper", Schema: json.RawMessage(schema)}, Graph: compile(t, agent.Config{Name: "helper", Model: countReplies(say("helped"))})}
	asks := gateFunc(func(tl tool.Tool) agent.Decision {
		if tl.Name == "remote" {
			return agent.Decision{Verdict: agent.Allow}
		}
		return agent.Decision{Verdict: agent.Ask, Prompt: "May I?"}
	})
	for name, prepare := range map[string]func(*agent.Config){
		"put":    func(c *agent.Config) { c.Tools = []tool.Tool{put} },
		"remote": func(c *agent.Config) { c.Tools = []tool.Tool{remote} },
		"helper": func(c *agent.Config) { c.Agents = []agent.AgentTool{helper} },
		"checked": func(c *agent.Config) {
			checked := put
			checked.Name = "checked"
			checked.Schema = nil
			checked.Check = func(args json.RawMessage) error {
				if string(args) != `{"n":1}` {
					return errors.New("they do not match its schema")
				}
				return nil
			}
			c.Tools = []tool.Tool{checked}
		},
		"listed": func(c *agent.Config) {
			listed := put
			listed.Name = "listed"
			c.ListTools = func(context.Context) ([]tool.Tool, error) { return []tool.Tool{listed}, nil }
		},
	} {
		for args, good := range map[string]bool{`{"n":1}`: true, `{"n":"x"}`: false, `{}`: false, `{"n":1,"to":"y"}`: false, `{"n":1.5}`: false} {
			made.calls = nil
			c := agent.Config{Name: "main", Model: countReplies(call("a", name, args), say("ok")), Gate: asks}
			prepare(&c)
			res, err := (&graph.Runner{Store: journal.NewMemory(), Graph: compile(t, c)}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			switch {
			case err != nil:
				t.Errorf("%s%s: %v", name, args, err)
			case good && res.Status != graph.Waiting, !good && res.Status != graph.Done, made.calls != nil:
				t.Errorf("%s%s: status %v, calls %q", name, args, res.Status, made.calls)
			case !good && !strings.Contains(shape(agent.History(res.State))[2], "do not match its schema"):
				t.Errorf("%s%s: the model reads %q", name, args, shape(agent.History(res.State)))
			}
		}
	}

	p := beginPermit(t)
	p.runner.Graph = compile(t, agent.Config{Name: "dev", Model: countReplies(call("a", "put", `{"n":1}`), say("ok")), Gate: asks, Tools: []tool.Tool{put}})
	res, err := p.runner.Invoke(t.Context(), graph.Input{Thread: "u", Set: agent.Turn("Go.")})
	if err != nil || len(res.Questions) != 1 {
		t.Fatal(res.Status, err)
	}
	edit := map[string]any{"choice": "edit", "args": map[string]any{"n": "many"}}
	_, err = p.runner.InvokeResume(t.Context(), graph.Resume{Thread: "u", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: edit}}})
	if wrong := (*graph.AnswerError)(nil); !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, "schema") {
		t.Errorf("the edit is answered with %v", err)
	}
}

// gateFunc is a gate that knows only the tools.
type gateFunc func(tool.Tool) agent.Decision

func (g gateFunc) Decide(_ context.Context, t tool.Tool, _ tool.Call, _ []string) (agent.Decision, error) {
	return g(t), nil
}

func (gateFunc) Always(context.Context, []string) error { return nil }

// Parallel tools that ask without a name get the answers to their own questions, in whatever
// order these are given.
func TestParallelToolsGetTheirOwnAnswers(t *testing.T) {
	ask := tool.Tool{Name: "ask", Schema: json.RawMessage(`{"type":"object"}`), Effect: tool.ReadOnly, Parallel: true, Run: func(ctx context.Context, c tool.Call) (tool.Result, error) {
		first, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "first of " + c.ID})
		if err != nil {
			return tool.Result{}, err
		}
		second, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "second of " + c.ID})
		return tool.TextResult(first + ", " + second), err
	}}
	for _, last := range []bool{false, true} {
		m := countReplies(both(call("a", "ask", `{"n":1}`), call("b", "ask", `{"n":2}`), call("c", "ask", `{"n":3}`)), say("ok"))
		r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Tools: []tool.Tool{ask}})}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
		answers := 0
		for ; err == nil && res.Status == graph.Waiting; answers++ {
			q := res.Questions[0]
			if last {
				q = res.Questions[len(res.Questions)-1]
			}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: "to the " + q.Prompt}}})
		}
		if err != nil || answers != 6 {
			t.Fatalf("%d answers: %v", answers, err)
		}
		told := strings.Join(shape(agent.History(res.State)), "\n")
		for _, id := range []string{"a", "b", "c"} {
			if !strings.Contains(told, "to the first of "+id+", to the second of "+id) {
				t.Errorf("the last first: %v: the model reads\n%s", last, told)
			}
		}
	}
}
