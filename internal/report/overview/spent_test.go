package overview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
)

// Effects count by what they are, waits between attempts are named, and a question is open from its record to that of
// its answer. What an earlier version has recorded has no time, and is counted.
func TestSpent(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	effect := func(seq int64, node, name string, took time.Duration) runs.Moment {
		m := runs.Moment{Node: node, Effect: name, Took: took}
		m.Seq = seq
		m.Kind = journal.KindEffect
		m.Timing = history.Timing{Took: took}
		return m
	}
	reply := effect(2, "draft", "model attempt 1", 4*time.Second)
	reply.Reply = &flow.Reply{Model: "m-1"}
	reply.Timing.First = time.Second
	reply.Timing.Retries = 2
	reply.Timing.Waited = 1200 * time.Millisecond
	call := effect(3, "draft", "tool fetch", 300*time.Millisecond)
	call.Call = &runs.ToolCall{Tool: "fetch"}
	failed := effect(4, "check", "script", 2*time.Second)
	failed.Kind = journal.KindFailure
	old := effect(5, "old", "model", 0)
	old.Reply = &flow.Reply{}
	quick := effect(6, "quick", "script", time.Millisecond)
	question := runs.Moment{Content: history.Content{Question: &graph.Question{}, Asked: "ok"}}
	question.Kind = journal.KindQuestion
	question.Time = at
	answer := question
	answer.Kind = journal.KindAnswer
	answer.Time = at.Add(90 * time.Second)
	open := question
	open.Asked = "never answered"

	got := spentOf([]runs.Moment{reply, call, question, failed, answer, open, old, quick})
	want := Spent{
		Models:  4,
		Tools:   0.3,
		Scripts: 2.001,
		Retries: 1.2,
		Answers: 90,
		Untimed: 1,
		Slowest: []Slow{
			{Record: 2, Node: "draft", What: "model", Name: "m-1", Seconds: 4, First: 1, Retries: 2, Waited: 1.2},
			{Record: 4, Node: "check", What: "script", Name: "script", Seconds: 2},
			{Record: 3, Node: "draft", What: "tool", Name: "fetch", Seconds: 0.3},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for got, want := range map[string]string{
		got.Describe():            "models 4.0 s, tools 0.3 s, scripts 2.0 s; 1.2 s of it between attempts; questions open for 1m30s",
		got.Slowest[0].Describe(): "draft: m-1 4.0 s, tried again 2 times after 1.2 s",
		got.Slowest[1].Describe(): "check: its script 2.0 s",
		(&Spent{}).Describe():     "",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
