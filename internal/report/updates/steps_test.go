package updates

import (
	"fmt"
	"testing"

	"raddle.dev/graph"
)

// Steps of one node that run at the same time have numbers, each task has one step, and they end in the order of their
// starts.
func TestStepsOfOneNode(t *testing.T) {
	var tr Tracker
	start := func(path, node, task string) {
		tr.HandleEvent(graph.Event{Path: path, Node: node, Task: task, Body: graph.TaskStarted{}})
	}
	start("", "look", "1.look.0")
	for i := range 3 {
		start("", "work", fmt.Sprintf("1.work.%d", i+1))
	}
	start("", "work", "1.work.2") // again, after an answer
	start("work[2]/", "think", "1.think.0")
	names := func(list []*Step) (names []string) {
		for _, s := range list {
			names = append(names, s.Name)
		}
		return names
	}
	if got := fmt.Sprint(names(tr.Steps())); got != "[look work work#2 work#3 work[2]/think]" {
		t.Errorf("the steps that run: %s", got)
	}
	var ended []*Step
	for _, u := range tr.HandleEvent(graph.Event{Body: graph.StepCommitted{Nodes: []string{"work"}}}) {
		if end, ok := u.(StepEnded); ok {
			ended = append(ended, end.Step)
		}
	}
	if got := fmt.Sprint(names(ended)); got != "[work work#2 work#3 work[2]/think]" {
		t.Errorf("the steps that have ended: %s", got)
	}
	start("", "work", "1.work.2")
	if got := fmt.Sprint(names(tr.Steps())); got != "[look work]" {
		t.Errorf("the steps that run then: %s", got)
	}
}

// The time of a step does not depend on how many run.
func BenchmarkSteps(b *testing.B) {
	for _, open := range []int{100, 1000, 10000} {
		events := make([]graph.Event, open)
		for i := range events {
			events[i] = graph.Event{Node: "work", Task: fmt.Sprintf("1.work.%d", i+1), Body: graph.TaskStarted{}}
		}
		b.Run(fmt.Sprint(open), func(b *testing.B) {
			for b.Loop() {
				var t Tracker
				for _, ev := range events {
					t.HandleEvent(ev)
				}
				t.EndSteps()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*open), "ns/step")
		})
	}
}
