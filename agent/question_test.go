package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// orderTool asks two questions before it is done. With cut it has forgotten its call
// after the first answer, unless the call may be made again.
func orderTool(runs *[]string, cut bool) tool.Tool {
	return tool.Tool{Name: "order", Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		*runs = append(*runs, fmt.Sprintf("%d answers, key %v, repeat %v", len(c.Answers), c.Key != "", c.Repeat))
		switch {
		case cut && len(c.Answers) > 0 && !c.Repeat:
			return tool.Result{}, tool.ErrCutOff
		case len(c.Answers) == 0:
			return tool.Result{}, &tool.Question{Kind: "select", Prompt: "Which color?", Options: []string{"red", "blue"}}
		case len(c.Answers) == 1 && !cut && c.Answers[0].Refused == "":
			return tool.Result{}, &tool.Question{Kind: "input", Prompt: "How many?"}
		}
		text, _ := json.Marshal(c.Answers)
		return tool.TextResult(string(text)), nil
	}}
}

// driveQuestions answers the questions of a run in order, and returns their prompts and the outcome of
// the only call.
func driveQuestions(t *testing.T, c agent.Config, answers ...graph.Answer) (prompts []string, told string) {
	t.Helper()
	store := journal.NewMemory()
	r := &graph.Runner{Store: store, Graph: compile(t, c)}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go.")})
	for _, a := range answers {
		if err != nil || len(res.Questions) != 1 {
			t.Fatalf("error %v, questions %+v", err, res.Questions)
		}
		prompts = append(prompts, res.Questions[0].Prompt)
		a.ID = res.Questions[0].ID
		r = &graph.Runner{Store: store, Graph: compile(t, c)}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{a}})
	}
	if err != nil || res.Status != graph.Done {
		t.Fatalf("status %v, error %v, questions %+v", res.Status, err, res.Questions)
	}
	return prompts, shape(agent.History(res.State))[2]
}

func TestToolThatAsks(t *testing.T) {
	var runs []string
	config := agent.Config{Model: countReplies(call("x", "order", `{}`), say("ok")), Tools: []tool.Tool{orderTool(&runs, false)}}
	prompts, told := driveQuestions(t, config, graph.Answer{Value: "red"}, graph.Answer{Value: 3})
	if !slices.Equal(prompts, []string{"Which color?", "How many?"}) {
		t.Errorf("asked %q", prompts)
	}
	if want := `[{\"prompt\":\"Which color?\",\"value\":\"red\"},{\"prompt\":\"How many?\",\"value\":3}]`; !strings.Contains(told, want) {
		t.Errorf("told %s", told)
	}
	if want := []string{"0 answers, key true, repeat false", "1 answers, key true, repeat false", "2 answers, key true, repeat false"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q", runs)
	}
	config.Model = countReplies(call("x", "order", `{}`), say("ok"))
	if _, told = driveQuestions(t, config, graph.Answer{Refused: "too late"}); !strings.Contains(told, `\"refused\":\"too late\"`) {
		t.Errorf("told %s", told)
	}
	config.Model, config.Headless = countReplies(call("x", "order", `{}`), say("ok")), true
	if _, told = driveQuestions(t, config); !strings.Contains(told, `\"refused\":\"no one is present to answer\"`) {
		t.Errorf("told %s", told)
	}
}

func TestToolThatHasForgottenItsCallIsInDoubt(t *testing.T) {
	var runs []string
	config := agent.Config{Model: countReplies(call("x", "order", `{}`), say("ok")), Tools: []tool.Tool{orderTool(&runs, true)}}
	prompts, told := driveQuestions(t, config, graph.Answer{Value: "red"}, graph.Answer{Value: "retry"})
	if len(prompts) != 2 || !strings.Contains(prompts[1], "was cut off before its outcome was known") || !strings.Contains(told, `\"value\":\"red\"`) {
		t.Errorf("asked %q, told %s", prompts, told)
	}
	if want := []string{"0 answers, key true, repeat false", "1 answers, key true, repeat false", "1 answers, key true, repeat true"}; !slices.Equal(runs, want) {
		t.Errorf("runs %q", runs)
	}
	config.Model = countReplies(call("x", "order", `{}`), say("ok"))
	if _, told = driveQuestions(t, config, graph.Answer{Value: "red"}, graph.Answer{Value: "skip"}); !strings.Contains(told, "was not repeated") {
		t.Errorf("told %s", told)
	}
}
