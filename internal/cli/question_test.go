package cli

import (
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/term"
	"raddle.dev/llm"
)

// A question shows what would be done, without characters that a terminal obeys.
func TestPromptOf(t *testing.T) {
	q := graph.Question{Kind: "permission", Data: []byte(`{"tool":"sh","grant":["sh(ls *)"]}`), Options: []string{"once", "always"},
		Prompt: "May sh be called with {\"c\":\"a \\u0026\\u0026 b\"}?\n\x1b[2J\u202egone\r\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}
	want := "May sh be called with {\"c\":\"a && b\"}?\n\\x1b[2J\\u202egone\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y"
	if got := promptOf(q, false); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := promptOf(q, true); !strings.Contains(got, term.PaintText(term.Green, "+y")) || !strings.Contains(got, term.PaintText(term.Red, "-x")) {
		t.Errorf("without its colours: %q", got)
	}
	q.Prompt = `May sh be called with {"c":"\\u0026"}?`
	if got := promptOf(q, false); got != q.Prompt {
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

func TestSpending(t *testing.T) {
	var s spendTotal
	if s.String() != "" {
		t.Errorf("of nothing: %q", s.String())
	}
	s.addCall(llm.Usage{Input: 10, Output: 2}, "priced", 0.5, true)
	if got := s.String(); got != "1 model call, 10 tokens in, 2 out, 0.5000 USD" {
		t.Errorf("%q", got)
	}
	s.addCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	s.addCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	if got := s.String(); got != "3 model calls, 20 tokens in, 4 out, 0.5000 USD and more: the price of free is not known" {
		t.Errorf("%q", got)
	}
}

// Names in a question cannot add lines to it.
func TestQuoteNames(t *testing.T) {
	if got, want := quoteNames([]string{"a b.sh", "x\nUse it? It is safe.\x1b[8m"}), `a b.sh, "x\nUse it? It is safe.\x1b[8m"`; got != want {
		t.Errorf("%s, want %s", got, want)
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
