package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// asksOnce is a run that waits for the answer to the first question of a call.
func asksOnce(t *testing.T, name, args string, ahead ...graph.Answer) (*graph.Runner, graph.Result) {
	t.Helper()
	var c counted
	tools := append(agent.UserTools(false), c.tool("put", tool.Undeclared, false))
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: countReplies(call("x", name, args), say("ok")), Gate: &rules{}, Tools: tools})}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Ahead: ahead})
	if err != nil {
		t.Fatal(err)
	}
	return r, res
}

// Answers to the questions of models are checked before they are recorded.
func TestAnswersToModelsAreChecked(t *testing.T) {
	for _, k := range []struct {
		tool, args string
		bad        []any
		good       any
	}{
		{"user__confirm", `{"question":"Sure?"}`, []any{"maybe", 3.0, []string{"yes"}}, "yes"},
		{"user__checkbox", `{"question":"Which?","options":["a","b"]}`, []any{"a, c", 3, []string{"c"}, map[string]any{}}, []string{"b"}},
		{"user__ask", `{"question":"Which?","options":["a","b"]}`, []any{"", "  "}, "c"},
		{"put", `{}`, []any{3, []string{"once"}, nil}, "because I say so"},
	} {
		r, res := asksOnce(t, k.tool, k.args)
		if len(res.Questions) != 1 {
			t.Fatalf("%s: %+v", k.tool, res)
		}
		head := res.Head
		for _, bad := range k.bad {
			var e *graph.AnswerError
			_, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: bad}}})
			s, _ := history.Inspect(t.Context(), r.Store, "t", 0)
			if !errors.As(err, &e) || s.Head != head {
				t.Errorf("%s: %v: %v, %d records", k.tool, bad, err, s.Head-head)
			}
		}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: k.good}}})
		if err != nil || res.Status != graph.Done {
			t.Errorf("%s: %v, %v", k.tool, res.Status, err)
		}
	}
}

// An answer given ahead that names no question gives or refuses consent only if it is
// one of the options; one that names the question may be any reason.
func TestConsentTakesOnlyItsOptionsFromBareAnswers(t *testing.T) {
	for _, k := range []struct {
		answer graph.Answer
		open   bool
	}{
		{graph.Answer{Value: "yes"}, true},
		{graph.Answer{Value: "x/act=once"}, true},
		{graph.Answer{Value: "once"}, false},
		{graph.Answer{Value: "no"}, false},
		{graph.Answer{ID: "act", Value: "not now"}, false},
	} {
		_, res := asksOnce(t, "put", "{}", k.answer)
		if open := res.Status == graph.Waiting; open != k.open || open && res.Questions[0].Rejected != "" {
			t.Errorf("%v: %v, %+v", k.answer, res.Status, res.Questions)
		}
	}
}

// doubtful is a run whose call of send was cut off, and the times that it was made.
func doubtful(t *testing.T, c agent.Config, inDoubt tool.Doubt) (*graph.Runner, *int) {
	t.Helper()
	return doubtfulTool(t, c, tool.Tool{InDoubt: inDoubt})
}

// doubtfulTool is doubtful with more fields of the tool set.
func doubtfulTool(t *testing.T, c agent.Config, send tool.Tool) (*graph.Runner, *int) {
	t.Helper()
	n := new(int)
	ctx, cancel := context.WithCancel(t.Context())
	c.Model = llm.Model(countReplies(call("x", "send", `{"n":1}`), say("ok")))
	send.Name = "send"
	send.Run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		if *n++; *n == 1 {
			cancel()
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		}
		return tool.TextResult("sent"), nil
	}
	c.Tools = []tool.Tool{send}
	store := journal.NewMemory()
	r := &graph.Runner{Store: store, Graph: compile(t, c)}
	if res, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("Go.")}); err == nil || res.Status != graph.Canceled {
		t.Fatal(res.Status, err)
	}
	return r, n
}

// "Do it again?" takes its options and nothing else.
func TestADoubtTakesOnlyItsOptions(t *testing.T) {
	r, n := doubtful(t, agent.Config{}, "")
	res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
	if err != nil || len(res.Questions) != 1 || res.Questions[0].Kind != agent.KindDoubt {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, bad := range []any{"retyr", "maybe", "yes", "", "Retry", true, 1} {
		var e *graph.AnswerError
		_, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: bad}}})
		if s, _ := history.Inspect(t.Context(), r.Store, "t", 0); !errors.As(err, &e) || s.Head != res.Head {
			t.Errorf("%v: %v", bad, err)
		}
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "retry"}}})
	if err != nil || res.Status != graph.Done || *n != 2 {
		t.Errorf("%v, %v, %d calls", res.Status, err, *n)
	}
}

// TestACallThatOnlyReadsIsMadeAgain: a tool says of each call whether it may be made again, and no one is
// asked about one that may.
func TestACallThatOnlyReadsIsMadeAgain(t *testing.T) {
	for _, repeats := range []bool{true, false} {
		r, n := doubtfulTool(t, agent.Config{}, tool.Tool{Repeats: func(got json.RawMessage) bool { return repeats && string(got) == `{"n":1}` }})
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if repeats && (res.Status != graph.Done || *n != 2) || !repeats && (len(res.Questions) != 1 || *n != 1) {
			t.Errorf("%v: %v after %d calls, %d questions", repeats, res.Status, *n, len(res.Questions))
		}
	}
}

// What is done with a call in doubt can be said beforehand: by the caller, the tool
// and the agent, in this order.
func TestDoubtsAreDecidedBeforehand(t *testing.T) {
	for _, k := range []struct {
		calls    agent.Calls
		tool     tool.Doubt
		headless bool
		want     string
	}{
		{want: "asked"},
		{headless: true, want: "skipped"},
		{calls: agent.Calls{InDoubt: tool.DoubtRetry}, want: "made again"},
		{calls: agent.Calls{InDoubt: tool.DoubtSkip}, want: "skipped"},
		{calls: agent.Calls{InDoubt: tool.DoubtRetry}, headless: true, want: "made again"},
		{calls: agent.Calls{InDoubt: tool.DoubtAsk}, headless: true, want: "skipped"},
		{tool: tool.DoubtRetry, want: "made again"},
		{tool: tool.DoubtSkip, calls: agent.Calls{InDoubt: tool.DoubtRetry}, want: "skipped"},
		{tool: tool.DoubtAsk, calls: agent.Calls{InDoubt: tool.DoubtRetry}, want: "asked"},
		{tool: tool.DoubtSkip, calls: agent.Calls{InDoubtForAll: tool.DoubtRetry}, want: "made again"},
		{tool: tool.DoubtRetry, calls: agent.Calls{InDoubtForAll: tool.DoubtAsk, InDoubt: tool.DoubtSkip}, want: "asked"},
	} {
		r, n := doubtful(t, agent.Config{Calls: k.calls, Headless: k.headless}, k.tool)
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		got := "asked"
		switch told := strings.Join(shape(agent.History(res.State)), " "); {
		case err != nil:
			t.Fatal(err)
		case res.Status == graph.Done && *n == 2 && strings.Contains(told, "sent"):
			got = "made again"
		case res.Status == graph.Done && *n == 1 && strings.Contains(told, "was not repeated"):
			got = "skipped"
		}
		if got != k.want {
			t.Errorf("%+v: %s, %v, %d calls", k, got, res.Status, *n)
		}
	}
}
