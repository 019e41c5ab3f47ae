package agent_test

import (
	"context"
	"fmt"
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

// rules is a gate that asks about every call of put, and keeps what is allowed.
type rules struct{ always []string }

func (r *rules) Decide(_ context.Context, t tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	switch {
	case strings.Contains(string(c.Args), "odd"):
		return agent.Decision{}, fmt.Errorf("the path is odd")
	case t.Name == "rm":
		return agent.Decision{Verdict: agent.Deny, Reason: "rm is never allowed"}, nil
	case t.Name == "put" && !slices.Contains(granted, "put *"):
		return agent.Decision{Verdict: agent.Ask, Prompt: "Put it?", Grant: []string{"put *"}, Lasting: true}, nil
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}

func (r *rules) Always(_ context.Context, grant []string) error {
	r.always = append(r.always, grant...)
	return nil
}

func TestPermission(t *testing.T) {
	for _, k := range []struct {
		answer string
		asked  int
		calls  int
		told   string // of the first call
		always []string
	}{
		{answer: "once", asked: 3, calls: 3, told: "put did"},
		{answer: "run", asked: 1, calls: 3, told: "put did"},
		{answer: "always", asked: 1, calls: 3, told: "put did", always: []string{"put *"}},
		{answer: "no", asked: 3, told: "permission denied: the user does not want this call of put"},
		{answer: "no: use the other file", asked: 3, told: "does not want this call of put: use the other file"},
		{answer: "use the other file", asked: 3, told: "does not want this call of put: use the other file"},
	} {
		t.Run(k.answer, func(t *testing.T) {
			var c counted
			gate := &rules{}
			m := countReplies(both(call("a", "put", `{"n":1}`), call("b", "put", `{"n":2}`)), call("c", "put", `{"n":3}`), say("ok"))
			r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Gate: gate, Tools: []tool.Tool{c.tool("put", tool.Dangerous, false)}})}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			asked := 0
			for err == nil && res.Status == graph.Waiting {
				asked++
				q := res.Questions[0]
				if q.Kind != agent.KindPermission || q.Prompt != "Put it?" || !q.Free || strings.Join(q.Options, " ") != "once run always no" {
					t.Errorf("question %+v", q)
				}
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: k.answer}}})
			}
			if err != nil || res.Status != graph.Done {
				t.Fatalf("status %v, error %v", res.Status, err)
			}
			told := shape(agent.History(res.State))[3]
			if asked != k.asked || len(c.calls) != k.calls || !strings.Contains(told, k.told) || cmp.Diff(k.always, gate.always) != "" {
				t.Errorf("asked %d times, made %d calls, told %q, always %q", asked, len(c.calls), told, gate.always)
			}
			if res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Again.")}); err == nil || len(agent.Grants.Get(res.State)) != 0 {
				t.Errorf("what was allowed for a run is allowed in the next: %v", agent.Grants.Get(res.State))
			}
		})
	}
}

func TestDeniedWithoutAsking(t *testing.T) {
	for _, k := range []struct{ name, call, args, want string }{
		{"a rule", "rm", "{}", "permission denied: rm is never allowed"},
		{"invalid arguments", "look", `{"path":"odd"}`, "the path is odd"},
		{"no person to ask", "put", "{}", "permission denied: this call of put needs the consent of a person, and there is none."},
	} {
		t.Run(k.name, func(t *testing.T) {
			var c counted
			res := run(t, agent.Config{Model: countReplies(call("x", k.call, k.args), say("ok")), Gate: &rules{}, Headless: true,
				Tools: []tool.Tool{c.tool("rm", tool.Dangerous, false), c.tool("look", tool.ReadOnly, false), c.tool("put", tool.Undeclared, false)}}, "Go.")
			if got := shape(agent.History(res.State))[2]; !strings.Contains(got, k.want) || c.calls != nil {
				t.Errorf("told %q after the calls %v", got, c.calls)
			}
		})
	}
}

// TestAQuestionLeavesOutcomes asks in the middle of calls side by side: those that
// are done stay done.
func TestAQuestionLeavesOutcomes(t *testing.T) {
	var c counted
	ask := tool.Tool{Name: "ask", Effect: tool.ReadOnly, Parallel: true, Run: func(ctx context.Context, call tool.Call) (tool.Result, error) {
		answer, err := graph.Interrupt[string](ctx, graph.Ask{Name: call.ID, Prompt: call.ID + "?"})
		return tool.TextResult(answer), err
	}}
	m := countReplies(both(call("a", "look", "{}"), call("b", "ask", "{}"), call("c", "ask", "{}"), call("d", "look", `{"n":1}`)), say("ok"))
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Tools: []tool.Tool{c.tool("look", tool.Dangerous, true), ask}})}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || len(res.Questions) != 2 || len(c.calls) != 2 {
		t.Fatalf("error %v, questions %v, calls %v", err, res.Questions, c.calls)
	}
	for _, q := range res.Questions {
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: "yes to " + q.Prompt}}})
	}
	if err != nil || res.Status != graph.Done || len(c.calls) != 2 {
		t.Fatalf("status %v, error %v, calls %v", res.Status, err, c.calls)
	}
	want := []string{`result a: {"output":"look did {}"}`, `result b: {"output":"yes to b?"}`, `result c: {"output":"yes to c?"}`, `result d: {"output":"look did {\"n\":1}"}`}
	if d := cmp.Diff(want, shape(agent.History(res.State))[5:9]); d != "" {
		t.Errorf("outcomes (-want +got):\n%s", d)
	}
}

func TestUserTools(t *testing.T) {
	for _, k := range []struct {
		name, tool, args string
		kind             string
		answer           any
		want             string
	}{
		{"ask", "user__ask", `{"question":"Which?","options":["a","b",3]}`, "select", "a", `{"answer":"a"}`},
		{"ask, another name", "user__select", `{"question":"Which?","options":["a","b"]}`, "select", "neither", `{"answer":"neither"}`},
		{"options in a text", "user__ask", `{"question":"Which?","options":"[\"a\"]"}`, "select", "a", `{"answer":"a"}`},
		{"confirm", "user__confirm", `{"question":"Sure?"}`, "confirm", true, `{"answer":"yes"}`},
		{"confirm in words", "user__confirm", `{"question":"Sure?"}`, "confirm", "No", `{"answer":"no"}`},
		{"input", "user__input", `{"question":"Name?"}`, "input", "Ada <3", `{"answer":"Ada <3"}`},
		{"checkbox", "user__checkbox", `{"question":"Which?","options":["a","b","c"]}`, agent.KindCheckbox, []string{"a", "c"}, `{"answers":["a","c"]}`},
		{"checkbox as a text", "user__checkbox", `{"question":"Which?","options":["a","b","c"]}`, agent.KindCheckbox, "c, a", `{"answers":["c","a"]}`},
		{"checkbox, nothing", "user__checkbox", `{"question":"Which?","options":["a"]}`, agent.KindCheckbox, "", `{"answers":[]}`},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: countReplies(call("x", k.tool, k.args), say("ok")), Tools: agent.UserTools(false)})}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			if err != nil || len(res.Questions) != 1 || res.Questions[0].Kind != k.kind {
				t.Fatalf("error %v, questions %+v", err, res.Questions)
			}
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: k.answer}}})
			if err != nil || res.Status != graph.Done {
				t.Fatalf("status %v, error %v", res.Status, err)
			}
			if got := shape(agent.History(res.State))[2]; got != "result x: "+k.want {
				t.Errorf("told %q, want %q", got, k.want)
			}
		})
	}
}

func TestUserToolsWithoutAnAnswer(t *testing.T) {
	told := func(res graph.Result) string { return shape(agent.History(res.State))[2] }
	for args, want := range map[string]string{
		`{"options":["a"]}`:             `{"tool_call_error":"User interaction failed: 'question' is required"}`,
		`{"question":"?"}`:              `{"tool_call_error":"User interaction failed: 'options' is required and must be an array of strings"}`,
		`{"question":"?","options":[]}`: `{"tool_call_error":"User interaction failed: 'options' is required and must be an array of strings"}`,
	} {
		if got := told(run(t, agent.Config{Model: countReplies(call("x", "user__ask", args), say("ok")), Tools: agent.UserTools(false)}, "Go.")); got != "result x: "+want {
			t.Errorf("%s: told %q", args, got)
		}
	}
	headless := run(t, agent.Config{Model: countReplies(call("x", "user__ask", `{"question":"Which?","options":["a"]}`), say("ok")), Tools: agent.UserTools(true)}, "Go.")
	if got, want := told(headless), `result x: {"needs_human":true,"action":"ask","question":"Which?","options":["a"],"guidance":`; !strings.HasPrefix(got, want) {
		t.Errorf("told %q", got)
	}
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: countReplies(call("x", "user__checkbox", `{"question":"Which?","options":["a"]}`), say("ok")), Tools: agent.UserTools(false)})}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	if err != nil || len(res.Questions) != 1 {
		t.Fatalf("error %v, questions %+v", err, res.Questions)
	}
	id := res.Questions[0].ID
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: id, Value: "z"}}}); err == nil || !strings.Contains(err.Error(), `"z" is not one of a`) {
		t.Errorf("a wrong answer: %v", err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: id, Refused: "too late"}}})
	if err != nil || told(res) != `result x: {"error":"too late","fallback":"Make your best judgment and proceed"}` {
		t.Errorf("error %v, told %q", err, told(res))
	}
}

var _ llm.Model = agent.ModelFunc(nil)

// changing is a gate whose questions are about a content, which it takes from grant.
type changing struct {
	stubGate
	grant string
	bound bool
	seen  []*tool.Permit
}

func (g *changing) Decide(context.Context, tool.Tool, tool.Call, []string) (agent.Decision, error) {
	return agent.Decision{Verdict: agent.Ask, Prompt: "Run it?", Grant: []string{g.grant}, Bound: g.bound, Lasting: true, Permit: &tool.Permit{}}, nil
}

// An answer is about what the question was about: if that has changed in between, the call is not made, and nothing is allowed for longer. It does
// not matter whether the gate knew a content when it asked, or knows one only when the answer comes.
func TestAnAnswerIsAboutWhatWasShown(t *testing.T) {
	type stage struct {
		grant string
		bound bool
	}
	for _, stages := range [][2]stage{
		{{"x @1", true}, {"x @1", true}},
		{{"x @1", true}, {"x @2", true}},
		{{"x", false}, {"x @2", true}}, // a file was there only after the question
		{{"x @1", true}, {"x", false}}, // it was there, and is gone
		{{"x", false}, {"y", false}},
		{{"x", false}, {"x", false}},
	} {
		for _, answer := range []string{"once", "run", "always"} {
			asked, now := stages[0], stages[1]
			change := asked != now && (asked.bound || now.bound || answer != "once")
			gate := &changing{grant: asked.grant, bound: asked.bound}
			ran := 0
			run := tool.Tool{Name: "run", Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
				ran++
				gate.seen = append(gate.seen, c.Permit)
				return tool.TextResult("did"), nil
			}}
			m := countReplies(call("a", "run", `{}`), say("ok"))
			r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Gate: gate, Tools: []tool.Tool{run}})}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			if err != nil || res.Status != graph.Waiting {
				t.Fatal(res.Status, err)
			}
			gate.grant, gate.bound = now.grant, now.bound
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: answer}}})
			if err != nil || res.Status != graph.Done {
				t.Fatal(res.Status, err)
			}
			told := strings.Join(shape(agent.History(res.State)), "\n")
			if want := map[bool]int{false: 1, true: 0}[change]; ran != want || strings.Contains(told, "has changed since the user was asked") != change {
				t.Errorf("%s, %v: ran %d times\n%s", answer, stages, ran, told)
			}
			for _, p := range gate.seen {
				if p == nil || !p.Allowed || !slices.Equal(p.Granted, []string{gate.grant}) {
					t.Errorf("%s: the tool got the permit %+v", answer, p)
				}
			}
		}
	}
}

// talker is a gate that gives many long grounds, with a secret.
type talker struct{ verdict agent.Verdict }

func (g *talker) Decide(context.Context, tool.Tool, tool.Call, []string) (agent.Decision, error) {
	d := agent.Decision{Verdict: g.verdict, Grant: []string{"put(hidden)"}}
	for i := range 10 {
		d.Grounds = append(d.Grounds, agent.Ground{Text: fmt.Sprint(i, " hidden ", strings.Repeat("é", 500)), By: "rule", Rule: "put * (rules.yaml:1:1)", Why: "is allowed by the rule put * (rules.yaml:1:1)"})
	}
	return d, nil
}

func (g *talker) Always(context.Context, []string) error { return nil }

// What decided about a call is in the record of its outcome: without secrets, short, and only as much as one call may cost.
func TestPermissionIsRecorded(t *testing.T) {
	for _, k := range []struct {
		name     string
		verdict  agent.Verdict
		headless bool
		answer   string
		want     string
	}{
		{"allowed", agent.Allow, false, "", "allow  []"},
		{"denied", agent.Deny, false, "", "deny  []"},
		{"no person", agent.Ask, true, "", "ask headless []"},
		{"run", agent.Ask, false, "run", "ask run [put(***)]"},
		{"no", agent.Ask, false, "no", "ask no []"},
	} {
		t.Run(k.name, func(t *testing.T) {
			var c counted
			st := journal.NewMemory()
			r := &graph.Runner{Store: st, Graph: compile(t, agent.Config{Model: countReplies(call("a", "put", `{}`), say("ok")), Gate: &talker{k.verdict}, Headless: k.headless,
				Redact: func(text string) string { return strings.ReplaceAll(text, "hidden", "***") }, Tools: []tool.Tool{c.tool("put", tool.Dangerous, false)}})}
			res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
			if err == nil && res.Status == graph.Waiting {
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: k.answer}}})
			}
			if err != nil || res.Status != graph.Done {
				t.Fatalf("status %v, error %v", res.Status, err)
			}
			found := 0
			for rec, err := range journal.Records(t.Context(), st, "t", journal.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.Kind != journal.KindEffect || !strings.Contains(string(rec.Head), "tool put") {
					continue
				}
				found++
				made, err := agent.ReadCall(rec.Data)
				p := made.Permission
				if err != nil || p == nil || fmt.Sprint(p.Verdict, " ", p.Answer, " ", p.Rules) != k.want || len(p.Grounds) != 8 || p.More != 2 || len(rec.Data) > 5000 {
					t.Fatalf("%d bytes, %v: %+v", len(rec.Data), err, p)
				}
				if g := p.Grounds[0]; !strings.HasPrefix(g.Text, "0 *** é") || len([]rune(g.Text)) != 121 || g.Why != "is allowed by the rule" || !strings.HasSuffix(g.Describe(), "… is allowed by the rule put * (rules.yaml:1:1)") {
					t.Errorf("%+v", g)
				}
				if strings.Contains(string(rec.Data), "hidden") {
					t.Errorf("a secret is recorded: %s", rec.Data)
				}
			}
			if found != 1 {
				t.Errorf("%d records of the call", found)
			}
		})
	}
}
