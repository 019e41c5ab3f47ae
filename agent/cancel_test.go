package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// TestCancelInEachPhase stops a turn before the first token, in the middle of a
// reply, in a tool and at a question. Whether the next turn takes its place or the
// run continues, a strict server accepts every request.
func TestCancelInEachPhase(t *testing.T) {
	for _, phase := range []string{"before the first token", "in the reply", "in a tool", "in tools side by side", "at a question"} {
		for _, resume := range []bool{false, true} {
			name := phase + ", then a new turn"
			if resume {
				name = phase + ", then resumed"
			}
			t.Run(name, func(t *testing.T) { cancelIn(t, phase, resume) })
		}
	}
}

func cancelIn(t *testing.T, phase string, resume bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := true // the first time a phase is reached; the server and the tools run one after the other
	s := strict(t, func(w http.ResponseWriter, r *http.Request, messages []wireMessage) {
		last := messages[len(messages)-1]
		if first && strings.HasPrefix(phase, "before") || first && phase == "in the reply" {
			first = false
			if phase == "in the reply" {
				stream(w, textChunk("I am about to"))
			}
			cancel()
			<-r.Context().Done()
			return
		}
		switch {
		case last.Role == "tool" || strings.Contains(last.text(), "Never mind"):
			saying(w, "Fine.")
		case phase == "at a question":
			calling(w, "note", `{"n":1}`, "user__ask", `{"question":"Which?","options":["a","b"]}`, "note", `{"n":2}`)
		case phase == "in tools side by side":
			calling(w, "look", `{"n":1}`, "block", `{}`, "look", `{"n":2}`)
		default:
			calling(w, "note", `{"n":1}`, "block", `{}`, "note", `{"n":2}`)
		}
	})
	var c counted
	block := tool.Tool{Name: "block", Effect: tool.Idempotent, Parallel: phase == "in tools side by side", Run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		if !first {
			return tool.TextResult("went through"), nil
		}
		first = false
		cancel()
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}
	config := agent.Config{Model: s.model(), Tools: slices.Concat(agent.UserTools(false), []tool.Tool{block, c.tool("note", tool.Dangerous, false), c.tool("look", tool.ReadOnly, true)})}
	r := &graph.Runner{Graph: compile(t, config), Store: journal.NewMemory()}
	in := graph.Input{Thread: "t", Set: agent.Turn("Do it.")}
	res, err := r.Invoke(ctx, in)
	switch canceled := (*graph.CanceledError)(nil); {
	case phase == "at a question" && (err != nil || res.Status != graph.Waiting):
		t.Fatalf("status %v, error %v", res.Status, err)
	case phase != "at a question" && !errors.As(err, &canceled):
		t.Fatalf("status %v, error %v", res.Status, err)
	}
	if resume {
		answers := []graph.Answer(nil)
		for _, q := range res.Questions {
			answers = append(answers, graph.Answer{ID: q.ID, Value: "a"})
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: answers})
	} else {
		res, err = agent.InvokeNext(t.Context(), r, graph.Input{Thread: "t", Set: agent.Turn("Never mind, do something else.")})
	}
	if err != nil || res.Status != graph.Done || agent.LastResponse(res.State) != "Fine." {
		t.Errorf("status %v, error %v, response %q", res.Status, err, agent.LastResponse(res.State))
	}
	s.check()
	checkOutcomes(t, phase, resume, s.bodies[len(s.bodies)-1], c.calls)
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Never mind.")}); !resume && err != nil {
		t.Errorf("a further turn: %v", err)
	}
	s.check()
}

// checkOutcomes compares what the model got in the end with what was done.
func checkOutcomes(t *testing.T, phase string, resume bool, body string, calls []string) {
	var told struct{ Messages []wireMessage }
	if err := json.Unmarshal([]byte(body), &told); err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, m := range told.Messages {
		if m.Role == "tool" {
			outcomes = append(outcomes, m.text())
		}
	}
	cut := func(i int) bool { return strings.Contains(outcomes[i], "was cut off") }
	if !strings.Contains(phase, "tool") && !strings.Contains(phase, "question") {
		return
	}
	if len(outcomes) != 3 || cut(0) || cut(1) == resume || !strings.Contains(phase, "side") && cut(2) == resume {
		t.Errorf("outcomes: %q", outcomes)
	}
	want := map[bool]int{false: 1, true: 2}[resume]
	if phase == "in tools side by side" {
		want = 2 // the neighbours of a call that is cut off have their outcome
	}
	if len(calls) != want {
		t.Errorf("calls: %v", calls)
	}
}
