package conversation

import (
	"fmt"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/llm"
)

// Older versions did not record which run a message of a person belongs to: it belongs to the run that answers.
func TestMessagesOfOlderVersions(t *testing.T) {
	reply := func(run, text string) agent.Entry {
		return agent.Entry{Run: run, By: "think", Reply: &agent.ReplyInfo{}, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}}
	}
	said := groupEntries([]agent.Entry{{Message: llm.User("one")}, reply("r1", "a"), reply("r1", "b"), {Message: llm.User("two")}, {Message: llm.User("two again")}, reply("r2", "c"),
		{Run: "r3", Message: llm.User("three")}, reply("r3", "d"), {Message: llm.User("open")}})
	for run, want := range map[string]string{"r1": "one a b", "r2": "two two again c", "r3": "three d"} {
		got := ""
		for _, e := range said[run] {
			got += " " + e.Message.Text()
		}
		if got != " "+want {
			t.Errorf("%s: %q, want %q", run, got, want)
		}
	}
	if len(said) != 3 {
		t.Error(fmt.Sprint(said))
	}
}
