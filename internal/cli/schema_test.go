package cli_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// Every event that the engine and the nodes can send has its place in the
// published schema, with all its members.
func TestEventsConform(t *testing.T) {
	schema, err := strictSchema("events")
	if err != nil {
		t.Fatal(err)
	}
	q := graph.Question{ID: "a", Node: "a", Kind: "select", Prompt: "?", Options: []string{"x"}, Free: true, Default: "x", Type: "string", Data: json.RawMessage(`{"a":1}`)}
	used := llm.Usage{Input: 1, Output: 2, Cached: 3, Reasoning: 4}
	said := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "t"}, llm.Image{MIME: "m", Data: []byte("d"), URL: "u"}, llm.File{Name: "n", MIME: "m", Data: []byte("d"), URL: "u"},
		llm.Reasoning{Text: "t", Signature: "s", Redacted: true, Origin: "o"}, llm.ToolCall{ID: "i", Name: "n", Args: json.RawMessage(`{}`), Signature: "s", Origin: "o"}}}
	result := llm.ToolResult{CallID: "i", Name: "n", Content: []llm.Part{llm.Text{Text: "t"}}, Error: true}
	bodies := []graph.Body{
		graph.RunStarted{Graph: "g", Label: "l", Resumed: true},
		graph.TaskStarted{Kind: "llm"},
		graph.TaskRetry{Attempt: 1, MaxAttempts: 2, After: time.Second, Err: errors.New("x")},
		graph.TaskDone{Err: errors.New("x"), Took: time.Second, Attempts: 2, Recorded: true, Waiting: true, Failed: true, Cached: true},
		graph.StepCommitted{Nodes: []string{"a"}, Keys: []string{"k"}, Next: []string{"b"}, Moves: []graph.Move{{From: "a", To: []string{"b"}}, {From: "c"}}, Dropped: []string{"d"}, Halted: true},
		graph.StepCommitted{},
		graph.QuestionAsked{Question: q},
		graph.QuestionAnswered{ID: "a", Ahead: true, Refused: "no"},
		graph.RunEnded{Result: graph.Result{Status: graph.Done, Value: map[string]any{"output": "x", "exit_code": 70}, Steps: 1}},
		graph.RunEnded{Result: graph.Result{Status: graph.Waiting, Questions: []graph.Question{q}, Breaks: []graph.Break{{Node: "a", After: true}}, Err: errors.New("x")}},
	}
	for _, v := range []any{
		flow.ModelCall{Model: "m", Active: true, Tools: []string{"t"}}, flow.ModelCall{},
		flow.ScriptRun{Script: "s"}, flow.KeysMerged{Keys: []string{"k"}}, flow.ScriptNext{Node: "n"}, flow.ChildSpawned{Agent: "a", Prompt: "p"},
		flow.ExtractionStarted{Repair: true}, flow.ExtractionStarted{},
		agent.TextDelta{Text: "t"}, agent.ReasoningDelta{Text: "t"}, agent.ReplyDone{Message: said, Model: "m", Usage: used, Stop: llm.StopTools, Cost: 1.5, Priced: true},
		agent.ReplyDone{Message: llm.Message{Role: llm.RoleTool, Parts: []llm.Part{result}}}, agent.ReplyDone{Message: llm.Message{Role: llm.RoleAssistant}},
		agent.ToolStarted{ID: "i", Name: "n", Args: json.RawMessage(`{"a":1}`)}, agent.ToolProgress{ID: "i", Name: "n", Text: "t"}, agent.ToolDone{ID: "i", Name: "n", Text: "t", Error: true, Took: time.Second},
		agent.WindowShortened{Messages: 1, Tokens: 2, Limit: 3, Summary: true}, agent.SummaryDone{Model: "m", Usage: used}, agent.SpendReport{Spend: agent.Spend{Calls: 1, ToolCalls: 2, Usage: used, Money: 1.5, Unpriced: 1}},
		team.AgentStarted{ID: "i", Agent: "a", Parent: "lead", Task: "1", Purpose: "p", Resumed: true}, team.AgentStarted{}, team.AgentQueued{ID: "i", Agent: "a", Parent: "lead", Purpose: "p"}, team.AgentQueued{},
		team.AgentEnded{ID: "i", Agent: "a", Status: "failed", Error: "x", Spent: agent.Spend{Calls: 1, ToolCalls: 2, Usage: used, Money: 1.5, Unpriced: 1}},
		team.AgentEnded{Status: "completed"}, team.AgentEnded{Status: "cancelled"}, team.TaskWaiting{ID: "1", Subject: "s", Agent: "a", Parent: "lead"},
		agent.RetryScheduled{Reason: "rate limited", Wait: time.Second, Request: 2}, agent.SpendReport{}, agent.ContinuationSent{Count: 1, Max: 2, Open: 3}, agent.Warning{Text: "w"},
	} {
		bodies = append(bodies, graph.ValueEmitted{Value: v})
	}
	for s := graph.Done; s < graph.Crashed; s++ {
		bodies = append(bodies, graph.RunEnded{Result: graph.Result{Status: s}})
	}
	for _, body := range bodies {
		ev := graph.Event{Seq: 1, Time: time.Now(), Thread: "t", Run: "r", Path: "p/", Step: 1, Task: "1.a.0", Node: "a", Body: body}
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s\n%v", b, err)
		}
	}
}
