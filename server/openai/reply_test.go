package openai

import (
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// The message has each text once and in order, whatever a subscriber has missed.
func TestReplyPutsTextsTogether(t *testing.T) {
	text := func(s string) any { return agent.TextDelta{Text: s} }
	done := func(s string) any {
		return agent.ReplyDone{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "hm"}, llm.Text{Text: s}}}}
	}
	for name, c := range map[string]struct {
		values    []any
		output    string
		want      string
		reasoning string
	}{
		"deltas":           {[]any{agent.ReasoningDelta{Text: "h"}, agent.ReasoningDelta{Text: "m"}, text("a"), text("b"), done("ab")}, "ab", "ab", "hm"},
		"only the end":     {[]any{done("ab")}, "ab", "ab", "hm"},
		"half":             {[]any{text("a"), done("ab")}, "ab", "ab", "hm"},
		"two replies":      {[]any{text("a"), done("a\n"), text("b"), done("b")}, "b", "a\n\nb", "hmhm"},
		"no text":          {[]any{done(""), text("b"), done("b")}, "b", "b", "hmhm"},
		"again, the same":  {[]any{text("a"), agent.RetryScheduled{}, text("a"), text("b"), done("ab")}, "ab", "ab", "hm"},
		"again, another":   {[]any{text("a"), agent.RetryScheduled{Reason: "connection lost"}, text("x"), done("xy")}, "xy", "a\n\n[connection lost, the reply starts again]\n\nxy", "hm"},
		"again from empty": {[]any{agent.RetryScheduled{}, text("x"), done("xy")}, "xy", "xy", "hm"},
		"another output":   {[]any{text("a"), done("a")}, "result", "a\n\nresult", "hm"},
	} {
		var got, reasoning string
		r := &reply{talks: true, send: func(d delta) { got += d.Content; reasoning += d.Reasoning }}
		record := int64(1)
		for _, v := range c.values {
			_, ends := v.(agent.ReplyDone)
			if ends {
				record++
			}
			r.handleEvent(&server.Event{Event: graph.Event{Node: agent.NodeThink, Record: record, Body: graph.ValueEmitted{Value: v}}})
			if ends { // the feed may pass on a piece of a reply that was read from the journal
				r.handleEvent(&server.Event{Event: graph.Event{Node: agent.NodeThink, Record: record - 1, Body: graph.ValueEmitted{Value: text("late")}}})
			}
			r.handleEvent(&server.Event{Event: graph.Event{Path: "act/", Body: graph.ValueEmitted{Value: text("of a child")}}})
		}
		r.sendOutput(c.output)
		if got != c.want || reasoning != c.reasoning {
			t.Errorf("%s: %q, reasoning %q; want %q, %q", name, got, reasoning, c.want, c.reasoning)
		}
	}
}
