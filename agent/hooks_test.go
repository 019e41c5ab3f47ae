package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// modelOf returns a model that gives these replies one after the other.
func modelOf(replies ...llm.Message) llm.Model {
	next := 0
	return agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			next++
			yield(llm.Delta{Done: &llm.Reply{Message: replies[next-1]}}, nil)
		}
	})
}

// judge allows calls, except those with wide arguments, and notes what it was asked.
type judge struct{ asked []string }

func (j *judge) Decide(_ context.Context, _ tool.Tool, c tool.Call, _ []string) (agent.Decision, error) {
	j.asked = append(j.asked, string(c.Args))
	switch {
	case strings.Contains(string(c.Args), "wide"):
		return agent.Decision{Verdict: agent.Deny, Reason: "too wide"}, nil
	case strings.Contains(string(c.Args), "ask"):
		return agent.Decision{Verdict: agent.Ask}, nil
	}
	return agent.Decision{Verdict: agent.Allow}, nil
}

func (j *judge) Always(context.Context, []string) error { return nil }

// Hooks run before the judge, in their order, and the judge sees what they leave. A run that waits and is resumed in another process runs none of them again, and the call
// has the arguments of the hook. Secrets leave their answers.
func TestHooksAndJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, first, second string // arguments of the call, and the answers of two hooks before it; "!": the hook fails
		judged, made, reads string
	}{
		"nothing":           {args: `{"a":"x"}`, judged: `{"a":"x"}`, made: `{"a":"x"}`, reads: "{\"output\":\"ok\"} [] [] } {\nAFTER"},
		"a hook denies":     {args: `{"a":"x"}`, first: `{"deny":true,"reason":"SECRET rule"}`, second: "!", reads: "denied: the hook one does not allow this call: [redacted] rule"},
		"a hook fails":      {args: `{"a":"x"}`, first: "!", reads: "permission denied: the hook one, which looks at this call first, failed: broken [redacted]"},
		"narrowed twice":    {args: `{"a":"wide"}`, first: `{"arguments":{"a":"b"}}`, second: `{"arguments":{"a":"narrow"},"context":"NOTE"}`, judged: `{"a":"narrow"}`, made: `{"a":"narrow"}`, reads: `It was made with: {"a":"narrow"}` + "\n [] [] } {NOTE\n"},
		"widened":           {args: `{"a":"x"}`, first: `{"arguments":{"a":"wide"}}`, judged: `{"a":"wide"}`, reads: "permission denied: too wide"},
		"not accepted":      {args: `{"a":"x"}`, first: `{"arguments":{"a":5}}`, reads: "to what the tool does not accept"},
		"asked and resumed": {args: `{"a":"x"}`, first: `{"arguments":{"a":"ask"}}`, judged: `{"a":"ask"}`, made: `{"a":"ask"}`, reads: "{\"output\":\"ok\"} [] [] } {\nAFTER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, ran, made := &judge{}, []string{}, ""
			hook := func(id, answer string) agent.Hook {
				return agent.Hook{ID: id, Name: id, Run: func(_ context.Context, in agent.HookInput) (a agent.HookAnswer, err error) {
					ran = append(ran, id)
					if answer == "!" {
						return a, errors.New("broken SECRET")
					}
					if answer != "" {
						err = json.Unmarshal([]byte(answer), &a)
					}
					return a, err
				}}
			}
			var messages []string
			cfg := agent.Config{Gate: j, Redact: func(text string) string { return strings.ReplaceAll(text, "SECRET", "[redacted]") }, Model: modelOf(call("1", "put", c.args), say("done")),
				Hooks: func(_ context.Context, tl tool.Tool, in agent.HookInput) []agent.Hook {
					return map[agent.HookPoint][]agent.Hook{agent.HookBeforeTool: {hook("one", c.first), hook("two", c.second)}, agent.HookAfterTool: {hook("three", `{"context":"AFTER"}`)}, agent.HookQuestion: {hook("four", "")}}[in.On]
				},
				Tools: []tool.Tool{{Name: "put", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`), Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
					made = string(c.Args)
					return tool.TextResult("ok"), nil
				}}}}
			store := journal.NewMemory()
			res, err := (&graph.Runner{Graph: compile(t, cfg), Store: store}).Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")})
			if err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(ran)
			if res.Status == graph.Waiting {
				ran = nil
				cfg.Model = modelOf(say("done"))
				res, err = (&graph.Runner{Graph: compile(t, cfg), Store: store}).InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: "once"}}})
				if fmt.Sprint(before, ran) != "[one two four] [three]" {
					t.Errorf("the hooks ran %q, and after the resume %q", before, ran)
				}
			}
			if err != nil || res.Err != nil {
				t.Fatal(err, res.Err)
			}
			for _, e := range agent.Messages.Get(res.State) {
				messages = append(messages, fmt.Sprint(e.Message))
			}
			if all := strings.Join(messages, "\n"); !strings.Contains(all, c.reads) || strings.Contains(all, "SECRET") {
				t.Errorf("the model reads %s\nwant %s", all, c.reads)
			}
			if made != c.made || len(j.asked) > 0 != (c.judged != "") || len(j.asked) > 0 && j.asked[len(j.asked)-1] != c.judged {
				t.Errorf("made %q, judged %q", made, j.asked)
			}
			if c.made == "" && slices.Contains(ran, "three") {
				t.Error("a hook ran after a call that was not made")
			}
		})
	}
}
