package story

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

func TestSaidIsShownByAgent(t *testing.T) {
	const one = "1.team.0#agent_reader_00000001/"
	calls := []runs.ToolCall{
		{ID: "a", Tool: "agent__spawn", Args: json.RawMessage(`{"agent":"reader","prompt":"Read it"}`), Status: "done", Outcome: "ok"},
		{ID: "a", Path: one, Tool: "fs_read", Args: json.RawMessage(`{"path":"a"}`), Status: "unrecorded"},
		{ID: "b", Path: one, Tool: "agent__check_inbox", Args: json.RawMessage(`{}`), Status: "done", Outcome: `{"messages":[],"count":0}`},
		{ID: "c", Path: one, Tool: "agent__check_inbox", Args: json.RawMessage(`{}`), Status: "done", Outcome: `{"messages":[{"from":"parent"}],"count":1}`},
		{ID: "b", Tool: "agent__collect", Args: json.RawMessage(`{"id":"x"}`), Status: "open"},
	}
	reply := func(path, node, text string, ids ...string) runs.Moment {
		m := runs.Moment{Entry: history.Entry{Kind: journal.KindEffect, Path: path}, Node: node, Reply: &flow.Reply{Text: text}}
		for _, id := range ids {
			m.Asks = append(m.Asks, llm.ToolCall{ID: id})
		}
		return m
	}
	moments := []runs.Moment{
		reply("", "", "I spawn a reader.", "a", "b"),
		reply(one, "team/agent_reader_00000001", "", "a", "b", "c"),
		{Entry: history.Entry{Kind: journal.KindAnswer}, Content: history.Content{Question: &graph.Question{Prompt: "Read on?"}, Answer: []byte(`"yes"`)}, Node: "team/agent_reader_00000001"},
		reply(one, "team/agent_reader_00000001", strings.Repeat("line\n", 20)),
	}
	want := `lead: I spawn a reader.
lead: ● agent__spawn Read it
  ok: ok
lead: ● agent__collect {"id":"x"}
  open
reader: ● fs_read a
  its outcome is not recorded
reader: ● agent__check_inbox {}
  ok: {"messages":[{"from":"parent"}],"count":1}
reader: asks "Read on?"
  you answered "yes"
reader: ` + strings.Repeat("line\n", 12) + `… 8 more lines`
	words := NewDescriber(moments, &runs.Info{Agent: "lead"})
	if d := cmp.Diff(want, words.DescribeSaid(moments, calls)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("I spawn a reader.\n● agent__spawn Read it\n  ok: ok\n● agent__collect {\"id\":\"x\"}\n  open", words.DescribeSaid(moments[:1], calls)); d != "" {
		t.Error(d)
	}
}

func TestMomentsAreDescribed(t *testing.T) {
	reply := &flow.Reply{Model: "gpt-5-mini", Usage: llm.Usage{Input: 80, Output: 5}}
	call := func(status, outcome string) *runs.ToolCall {
		return &runs.ToolCall{Tool: "fs_read", Args: json.RawMessage(`{"path":"main.go"}`), Status: status, Outcome: outcome}
	}
	effect := history.Entry{Kind: journal.KindEffect}
	tests := []struct {
		m    runs.Moment
		want string
	}{
		{runs.Moment{Entry: history.Entry{Kind: journal.KindStart, Next: []string{"a", "b"}}, Content: history.Content{Keys: []string{"initial_prompt"}}}, "started → a, b  wrote initial_prompt"},
		{runs.Moment{Entry: effect, Node: "reply", Reply: reply}, "reply: gpt-5-mini answered, 85 tokens"},
		{runs.Moment{Entry: effect, Reply: &flow.Reply{Model: "script:t.yaml"}, Asks: []llm.ToolCall{{Name: "x"}, {Name: "x"}}}, "the transcript answered, and calls x"},
		{runs.Moment{Entry: effect, Call: call("done", "text"), Took: 100 * time.Millisecond}, "called fs_read main.go: ok, 0.1 s"},
		{runs.Moment{Entry: effect, Call: call("failed", `{"tool_call_error":"no","stderr":"Traceback\nValueError: kaboom"}`)}, "called fs_read main.go: failed: ValueError: kaboom"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindIntent}, Call: call("unrecorded", "")}, "called fs_read main.go: its outcome is not recorded"},
		{runs.Moment{Entry: effect, Node: "owner", Effect: "script", Took: 12 * time.Second}, "owner: ran its script, 12 s"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindStep, Next: []string{"page"}}, From: []string{"route"}, Content: history.Content{Keys: []string{"decision"}}}, "route → page  wrote decision"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindStep}, From: []string{"page"}}, "page → end"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindStep, Next: []string{"act"}}, From: []string{"think"}, Inner: true}, ""},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindAnswer}, Node: "page", Content: history.Content{Answer: []byte(`"no"`)}}, `page: you answered "no"`},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindAnswer}, Node: "page", Content: history.Content{Answer: []byte(`"no"`), Question: &graph.Question{Default: "no"}}}, `page: answered with the default "no"`},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindQuestion}, Node: "pay", Content: history.Content{Question: &graph.Question{Kind: graph.KindEvent, Prompt: "waits for the event paid"}}}, "pay: waits for the event paid"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindAnswer}, Node: "pay", Content: history.Content{Answer: []byte(`{"x":1}`), Question: &graph.Question{Kind: graph.KindEvent}}}, `pay: the event came with "{"x":1}"`},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindAnswer}, Content: history.Content{Answer: []byte(`["a"]`), Ahead: true}}, `answered ahead: "["a"]"`},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindAnswer}, Content: history.Content{Refused: "never"}}, "you refused: never"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindFork, From: journal.Point{Thread: "r", Seq: 4}}}, "forked from r@4"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindEnd, What: "failed"}, Content: history.Content{Reason: "no key"}}, "failed: no key"},
		{runs.Moment{Entry: history.Entry{Kind: journal.KindEnd, What: "waiting"}}, "waits for an answer"},
	}
	for _, test := range tests {
		if d := cmp.Diff(test.want, NewDescriber(nil, &runs.Info{}).DescribeMoment(&test.m)); d != "" {
			t.Error(d)
		}
	}
}
