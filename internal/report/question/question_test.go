package question

import (
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
)

func TestAskers(t *testing.T) {
	for id, want := range map[string]string{
		"act": "", "team/lead/act": "", "team/agent_explore_1f2e3d4c/act#2": "explore (agent_explore_1f2e3d4c)", "research/act": "research",
		"boss/team/lead/act": "boss", "boss/team/agent_a_00000001/act": "a (agent_a_00000001)", "team/agent_a_00000001/review/ok": "a (agent_a_00000001), review",
	} {
		if got := FormatAsker(graph.Question{ID: id}); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	q := graph.Question{ID: "team/agent_a_00000001/act"}
	if got := FormatAskerLine(q, 1, 2) + "|" + FormatAskerLine(q, 1, 1) + "|" + FormatAskerLine(graph.Question{ID: "act"}, 2, 2) + "|" + FormatAskerLine(graph.Question{ID: "act"}, 1, 1); got != "1/2 a (agent_a_00000001) asks:|a (agent_a_00000001) asks:|2/2|" {
		t.Errorf("%q", got)
	}
}

// A question shows what would be done, without characters that a terminal obeys.
func TestPromptOf(t *testing.T) {
	q := graph.Question{Kind: "permission", Data: []byte(`{"tool":"sh","grant":["sh(ls *)"]}`), Options: []string{"once", "always"},
		Prompt: "May sh be called with {\"c\":\"a \\u0026\\u0026 b\"}?\n\x1b[2J\u202egone\r\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}
	want := "May sh be called with {\"c\":\"a && b\"}?\n\\x1b[2J\\u202egone\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y"
	if got := FormatPrompt(q, false); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := FormatPrompt(q, true); !strings.Contains(got, term.PaintText(term.Green, "+y")) || !strings.Contains(got, term.PaintText(term.Red, "-x")) {
		t.Errorf("without its colours: %q", got)
	}
	q.Prompt = `May sh be called with {"c":"\\u0026"}?`
	if got := FormatPrompt(q, false); got != q.Prompt {
		t.Errorf("%q, want %q", got, q.Prompt)
	}
	if got := optionsOf(q); len(got) != 3 || got[1].label != "always (allow it from now on: sh(ls *))" || got[2].ask == "" {
		t.Errorf("options: %+v", got)
	}
}

// Enter alone refuses a call, wherever "no" is among the answers.
func TestPreselected(t *testing.T) {
	for _, c := range []struct {
		kind    string
		options []string
		want    int
	}{
		{"permission", []string{"once", "run", "always", "no"}, 3},
		{"permission", []string{"once", "no"}, 1},
		{"select", []string{"yes", "no"}, 0},
	} {
		q := graph.Question{Kind: c.kind, Options: c.options}
		if got := defaultOption(q, optionsOf(q)); got != c.want {
			t.Errorf("%s %v: option %d, want %d", c.kind, c.options, got, c.want)
		}
	}
}

func TestPreselectedDefault(t *testing.T) {
	for want, q := range map[int]graph.Question{
		0: {Options: []string{"yes", "no"}},
		1: {Options: []string{"once", "no"}, Kind: agent.KindPermission},
		2: {Options: []string{"a", "b", "c"}, Default: "c"},
	} {
		if got := defaultOption(q, optionsOf(q)); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if got := defaultOption(graph.Question{Options: []string{"a", "b"}, Default: "own words"}, optionsOf(graph.Question{Options: []string{"a", "b"}})); got != 0 {
		t.Errorf("a default that is no option: %d", got)
	}
}
