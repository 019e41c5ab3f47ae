package chat

import (
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// The lead of a team fills the window of the conversation as an agent without a team does; the agents that it starts do not.
func TestWindowOfALead(t *testing.T) {
	u := &usage{models: provider.NewResolver(&config.Config{}, config.Dirs{}, environ.Environ{})}
	for path, want := range map[string]string{"": "12 tokens", "team/lead/": "12 tokens", "team/agent_explore_1f2e3d4c/": "", "child/": ""} {
		u.reset()
		u.handleEvent(graph.Event{Path: path, Body: graph.ValueEmitted{Value: agent.ReplyDone{Model: "m", Usage: llm.Usage{Input: 10, Output: 2}}}})
		if got := u.contextText(); got != want {
			t.Errorf("a reply at %q: the window has %q, want %q", path, got, want)
		}
	}
}
