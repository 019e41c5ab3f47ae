package graph_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// phasesOf drives a run and lists its phases and committed steps.
func phasesOf(t *testing.T, r *graph.Runner, topics graph.Topic) (got []string, last error) {
	t.Helper()
	for e, err := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: topics}) {
		switch b := e.Body.(type) {
		case graph.PhaseStarted:
			got = append(got, fmt.Sprintf("%d %s%s %s", e.Step, e.Path, b.Phase, strings.Join(b.Nodes, "+")))
		case graph.StepCommitted:
			got = append(got, fmt.Sprintf("%d %scommitted", e.Step, e.Path))
		}
		last = err
	}
	return got, last
}

func TestThePhasesOfAStepAreEventsOfTheirOwn(t *testing.T) {
	child := compile(t, graph.Def{Name: "child", Start: []string{"in"}, Nodes: []graph.Node{emits("in")}, Edges: []graph.Edge{edge("in", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Start: []string{"a", "b"}, Nodes: []graph.Node{emits("a"), emits("b"), {Name: "c", Graph: child}},
		Edges: []graph.Edge{edge("a", "c"), edge("b", "c"), edge("c", graph.End)}})
	got, err := phasesOf(t, &graph.Runner{Graph: g, Store: graph.NewMemory()}, graph.TopicPhase|graph.TopicStep)
	want := []string{
		"0 planning a+b", "0 execution a+b", "0 update a+b", "0 committed",
		"1 planning c", "1 execution c",
		"0 c/planning in", "0 c/execution in", "0 c/update in", "0 c/committed",
		"1 update c", "1 committed",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, _ := phasesOf(t, &graph.Runner{Graph: g}, graph.AllTopics); strings.Contains(strings.Join(got, "\n"), "planning") {
		t.Error("AllTopics has phases:", got)
	}
}

func TestAStepThatFailsHasNoUpdate(t *testing.T) {
	g := parallel(t, failsUntil("a", 99, graph.Retry{}))
	got, err := phasesOf(t, &graph.Runner{Graph: g}, graph.TopicPhase)
	if diff := cmp.Diff([]string{"0 planning a", "0 execution a"}, got); diff != "" || err == nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAReaderThatLeavesAtAPhaseCancelsTheRun(t *testing.T) {
	for _, at := range []graph.Phase{graph.PhasePlanning, graph.PhaseExecution, graph.PhaseUpdate} {
		mem := graph.NewMemory()
		for e, err := range (&graph.Runner{Graph: chainOf(t, 3), Store: mem}).Run(t.Context(), graph.Input{Thread: "t", Topics: graph.TopicPhase}) {
			if b, ok := e.Body.(graph.PhaseStarted); ok && b.Phase == at && e.Step == 1 {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		res, err := (&graph.Runner{Graph: chainOf(t, 3), Store: mem}).InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || res.Status != graph.Done || counter.Get(res.State) != 3 {
			t.Errorf("%s: %v, %v, count %d", at, res.Status, err, counter.Get(res.State))
		}
	}
}

func TestAPhaseOnTheWire(t *testing.T) {
	b, err := json.Marshal(graph.Event{Body: graph.PhaseStarted{Phase: graph.PhaseUpdate, Nodes: []string{"a"}}})
	if err != nil || !strings.Contains(string(b), `"kind":"phase.started","data":{"phase":"update","nodes":["a"]}`) {
		t.Error(string(b), err)
	}
	b, err = json.Marshal(graph.TaskRetry{Attempt: 1, MaxAttempts: 3, Err: errors.New("x")})
	if err != nil || !strings.Contains(string(b), `"attempt":1,"max_attempts":3`) {
		t.Error(string(b), err)
	}
}
