package conversation_test

import (
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/testkit/llmtest"
)

// compact summarizes the conversation and returns the warnings, and how many messages the summary replaces.
func (x *place) compact(c *conversation.Conversation, d app.Driver) (warnings string, left int, res graph.Result) {
	x.t.Helper()
	run, err := c.Compact(app.Request{})
	must(x.t, err)
	defer run.Close()
	d.Topics = graph.AllTopics
	d.Event = func(ev graph.Event) {
		if v, ok := ev.Body.(graph.ValueEmitted); ok {
			switch v := v.Value.(type) {
			case agent.Warning:
				warnings += v.Text
			case agent.WindowShortened:
				left = v.Messages
			}
		}
	}
	res, err = run.Drive(x.t.Context(), d)
	must(x.t, err)
	return warnings, left, res
}

// A conversation is summarized on demand: later requests have the summary and the last exchange. It can be undone, and does not
// count as a turn.
func TestCompact(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	_, c := x.open("")
	if warnings, _, res := x.compact(c, app.Driver{}); !strings.Contains(warnings, "nothing to summarize") || res.Status != graph.Done || len(x.bodies) != 0 {
		t.Errorf("an empty conversation: %q %v", warnings, res.Status)
	}
	for _, text := range []string{"one", "two", "three"} {
		x.say(c, text)
	}
	x.answer = func(body []byte) llmtest.Turn {
		if strings.Contains(string(body), "You summarize") {
			return llmtest.Turn{Text: "THE SUMMARY"}
		}
		return replyTo(t, body)
	}
	warnings, left, res := x.compact(c, app.Driver{})
	if warnings != "" || left != 4 || res.Status != graph.Done || res.Value != "" {
		t.Errorf("%q, %d messages, %v %q", warnings, left, res.Status, res.Value)
	}
	check(t, "turns", prompts(t, c), "one two three")
	x.say(c, "four")
	last := x.bodies[len(x.bodies)-1]
	for part, there := range map[string]bool{"THE SUMMARY": true, "three": true, "reply 3 to three": true, "reply 1 to one": false, "reply 2": false} {
		if strings.Contains(last, part) != there {
			t.Errorf("the request has %q: %v\n%s", part, !there, last)
		}
	}
	check(t, "turns", prompts(t, c), "one two three four")
	messages, err := c.Messages(ctx)
	must(t, err)
	if len(messages) != 8 {
		t.Errorf("%d messages, want all", len(messages))
	}
	must(t, c.BranchAt(ctx, 4))
	must(t, c.Undo(ctx, 1))
	check(t, "before the summary", prompts(t, c), "one two")
	x.say(c, "other")
	if last := x.bodies[len(x.bodies)-1]; strings.Contains(last, "THE SUMMARY") || !strings.Contains(last, "reply 1 to one") {
		t.Errorf("the request after an undo: %s", last)
	}

	x.answer = func([]byte) llmtest.Turn { return llmtest.Turn{} } // an empty reply is a failure
	stop := make(chan struct{})
	close(stop)
	if _, left, res := x.compact(c, app.Driver{Interrupt: stop}); left != 0 || res.Status != graph.Done {
		t.Errorf("interrupted: %d %v", left, res.Status)
	}
	x.answer = nil
	check(t, "reply", x.say(c, "five"), "reply 4 to five")
}
