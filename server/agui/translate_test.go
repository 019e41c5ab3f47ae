package agui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// A tape collects the events of a translator.
type tape struct {
	*translator
	events []sent
}

func newTape(t *testing.T) *tape {
	p := &tape{}
	p.translator = newTranslator("run", func(e *event) {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var s sent
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		p.events = append(p.events, s)
	})
	return p
}

// play translates values that a node emitted.
func (p *tape) play(node string, values ...any) {
	for _, v := range values {
		p.translate(&server.Event{Event: graph.Event{Time: time.Unix(1, 0), Node: node, Task: "0." + node + ".0", Body: graph.ValueEmitted{Value: v}}})
	}
}

type order struct {
	Number int `json:"number"`
}

// EventType returns "order".
func (order) EventType() string { return "order" }

// What nodes emit becomes custom events; text becomes a part of the message that is open.
func TestEmittedValues(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{order{7}, `order {"number":7}`},
		{graph.Progress{Part: 0.5, Note: "half"}, `progress {"node":"n","note":"half","part":0.5}`},
		{map[string]any{"x": 1}, `emitted {"x":1}`},
		{nil, `emitted null`},
		{"alone", `text {"content":"alone","node":"n"}`},
		{agent.Warning{Text: "careful"}, `warning {"text":"careful"}`},
		{agent.ToolProgress{ID: "c", Name: "t", Text: "half"}, `tool_progress {"id":"c","name":"t","text":"half"}`},
	} {
		p := newTape(t)
		p.play("n", c.value)
		if len(p.events) != 1 || p.events[0].kind() != custom {
			t.Errorf("%v: %v", c.value, p.events)
			continue
		}
		b, _ := json.Marshal(p.events[0]["value"])
		if got := fmt.Sprintf("%v %s", p.events[0]["name"], b); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
	p := newTape(t)
	p.play("n", agent.TextDelta{Text: "a "}, "b", agent.TextDelta{Text: " c"})
	p.play("other", "d")
	if got := shorten(p.events); got != "TEXT_MESSAGE_START a b c" || p.events[len(p.events)-1]["name"] != "text" {
		t.Errorf("%s, %v", got, p.events)
	}
	p = newTape(t)
	p.play("n", func() {}) // JSON has no functions
	if len(p.events) != 0 {
		t.Error(p.events)
	}
}

// A reply that begins again replaces what was sent of it.
func TestRetriedReply(t *testing.T) {
	p := newTape(t)
	p.messages = []message{{ID: "u", Role: "user", Content: "x"}}
	p.play("n", agent.ReasoningDelta{Text: "hm"}, agent.TextDelta{Text: "Half"}, agent.RetryScheduled{Reason: "cut"}, agent.TextDelta{Text: "Wh"},
		agent.ReplyDone{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Whole"}}}})
	p.sendMessages()
	want := "REASONING_START REASONING_MESSAGE_START hm REASONING_MESSAGE_END REASONING_END TEXT_MESSAGE_START Half TEXT_MESSAGE_END TEXT_MESSAGE_START Whole TEXT_MESSAGE_END"
	if got := shorten(p.events); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	b, _ := json.Marshal(p.events[len(p.events)-1]["messages"])
	if got := string(b); strings.Contains(got, "Half") || !strings.Contains(got, "Whole") {
		t.Errorf("messages: %s", got)
	}
}

// A subscriber that has missed the pieces of a reply gets it whole, and calls have the ids of their frames.
func TestReplyWithoutPieces(t *testing.T) {
	p := newTape(t)
	call := llm.ToolCall{ID: "c", Name: "look", Args: json.RawMessage(`{"x":1}`)}
	reply := agent.ReplyDone{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "hm"}, llm.Text{Text: "Look"}, call}}}
	ev := server.Event{Event: graph.Event{Path: "team/", Node: "think", Body: graph.ValueEmitted{Value: reply}}}
	p.translate(&ev)
	ev.Body = graph.ValueEmitted{Value: agent.ToolStarted{ID: "c", Name: "look"}}
	p.translate(&ev)
	ev.Body = graph.ValueEmitted{Value: agent.ToolDone{ID: "c", Name: "look", Text: "", Error: true}}
	p.translate(&ev)
	want := "REASONING_START REASONING_MESSAGE_START hm REASONING_MESSAGE_END REASONING_END TEXT_MESSAGE_START Look TEXT_MESSAGE_END " +
		`TOOL_CALL_START(team/c look) {"x":1} TOOL_CALL_END TOOL_CALL_RESULT(team/c)`
	if got := shorten(p.events); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if last := p.events[len(p.events)-1]; last["content"] != "" || last["metadata"] == nil {
		t.Errorf("the result: %v", last)
	}
}

// Tasks of one node that run at the same time are steps with different names.
func TestStepsAreUnique(t *testing.T) {
	p := newTape(t)
	event := func(task string, body graph.Body) {
		p.translate(&server.Event{Event: graph.Event{Node: "work", Task: task, Body: body}})
	}
	event("1.work.0", graph.TaskStarted{})
	event("1.work.1", graph.TaskStarted{})
	event("1.work.1", graph.TaskStarted{}) // again, after an answer
	p.translate(&server.Event{Event: graph.Event{Path: "work/", Node: "inner", Task: "0.inner.0", Body: graph.TaskStarted{}}})
	p.translate(&server.Event{Event: graph.Event{Body: graph.StepCommitted{Nodes: []string{"work"}}}})
	var got []string
	for _, e := range p.events {
		got = append(got, e.kind()+" "+e["stepName"].(string))
	}
	want := "STEP_STARTED work,STEP_STARTED work#2,STEP_STARTED work/inner,STEP_FINISHED work,STEP_FINISHED work#2,STEP_FINISHED work/inner"
	if strings.Join(got, ",") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, ","), want)
	}
}
