package updates_test

import (
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/llm"
)

// A protocol is a switch over what the events of a run add.
func ExampleTracker() {
	emitted := func(record int64, value any) graph.Event {
		return graph.Event{Node: "think", Task: "0.think.0", Record: record, Body: graph.ValueEmitted{Value: value}}
	}
	said := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Good morning."}}}
	events := []graph.Event{
		emitted(1, agent.TextDelta{Text: "Good "}),
		emitted(1, agent.RetryScheduled{Reason: "connection lost"}),
		emitted(1, agent.TextDelta{Text: "Good mor"}), // continues what was passed on
		emitted(2, agent.ReplyDone{Message: said}),
		emitted(1, agent.TextDelta{Text: "ning."}), // late: the whole reply was passed on
	}
	var run updates.Tracker
	for _, ev := range events {
		for _, u := range run.HandleEvent(ev) {
			switch u := u.(type) {
			case updates.TextAdded:
				fmt.Printf("text %q\n", u.Text)
			case updates.ReplyWithdrawn:
				fmt.Printf("again: %s\n", u.Why)
			case updates.ReplyEnded:
				fmt.Printf("end of %s\n", u.Reply.ID())
			}
		}
	}
	// Output:
	// text "Good "
	// text "mor"
	// text "ning."
	// end of 0.think.0/1
}
