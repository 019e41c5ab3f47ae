package cli

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/runs"
)

func TestCallsAreShownByAgent(t *testing.T) {
	const one = "1.team.0#agent_reader_00000001/"
	calls := []runs.ToolCall{
		{Tool: "agent__spawn", Args: json.RawMessage(`{"agent":"reader"}`), Status: "done", Outcome: "ok"},
		{Path: one, Tool: "fs_read", Args: json.RawMessage(`{"path":"a"}`), Status: "begun"},
		{Path: one, Tool: "agent__check_inbox", Args: json.RawMessage(`{}`), Status: "done", Outcome: `{"messages":[],"count":0}`},
		{Tool: "agent__collect", Args: json.RawMessage(`{"id":"x"}`), Status: "open"},
		{Path: one, Tool: "agent__check_inbox", Args: json.RawMessage(`{}`), Status: "done", Outcome: `{"messages":[{"from":"parent"}],"count":1}`},
	}
	want := `the lead
  agent__spawn {"agent":"reader"}
    done: ok
  agent__collect {"id":"x"}
    open
team/agent_reader_00000001
  fs_read {"path":"a"}
    begun: its outcome is not recorded
  agent__check_inbox {}
    done: {"messages":[{"from":"parent"}],"count":1}
`
	if d := cmp.Diff(want, callsText(calls)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("agent__spawn {\"agent\":\"reader\"}\n  done: ok\n", callsText(calls[:1])); d != "" {
		t.Error(d)
	}
}

func TestStateIsShownByKey(t *testing.T) {
	state := json.RawMessage(`{"prompt":"Build\nit","notes":[],"round":2,"todo":{"open":["a"]},"system":"","grants":null}`)
	if d := cmp.Diff("prompt: Build it\nround: 2\ntodo: {\"open\":[\"a\"]}\n", stateText(state)); d != "" {
		t.Error(d)
	}
	if got := stateText(json.RawMessage("[1]")); got != "[1]" {
		t.Error(got)
	}
}
