package wording_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/base/wording"
)

func TestFindNearest(t *testing.T) {
	known := []string{"model", "models", "temperature", "tool", "x"}
	for wrong, want := range map[string]string{
		"":              "",
		"modle":         "model", // swapped
		"MODELS":        "models",
		"temprature":    "temperature",
		"temp":          "temperature", // its beginning
		"too":           "tool",
		"y":             "", // a word of one letter has no neighbours
		"instructions":  "",
		"tmeperatuer":   "temperature",
		"tempe_rat_ure": "temperature",
	} {
		if got := wording.FindNearest(wrong, known); got != want {
			t.Errorf("FindNearest(%q) = %q, want %q", wrong, got, want)
		}
	}
	fields := []string{"fallback", "next", "timeout", "state_updates", "id"}
	for wrong, want := range map[string]string{
		"falback": "fallback", "fallbakc": "fallback", "nxet": "next", "Timeout": "timeout", "state_update": "state_updates",
		"stateupdates": "state_updates", "xyz": "", "n": "", "identity": "", "ne": "",
	} {
		if got := wording.FindNearest(wrong, fields); got != want {
			t.Errorf("FindNearest(%q) = %q, want %q", wrong, got, want)
		}
	}
	if got := wording.FindNearest("naïv", []string{"naïve"}); got != "naïve" {
		t.Errorf("characters beyond ASCII: %q", got)
	}
	if got := wording.FindNearest("model", make([]string, 501)); got != "" {
		t.Errorf("too many words: %q", got)
	}
	if got := wording.SuggestNearest("modle", known, "`"); got != "did you mean `model`?" {
		t.Errorf("SuggestNearest: %q", got)
	}
	if got := wording.SuggestNearest("instructions", known, "`"); got != "" {
		t.Errorf("SuggestNearest of a word far from all: %q", got)
	}
}

func TestCutText(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"", 0, ""}, {"äöü", 3, "äöü"}, {"äöü", 2, "äö..."}, {"abc", 0, "..."}} {
		if got := wording.CutText(c.text, c.limit, "..."); got != c.want {
			t.Errorf("CutText(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestStripFence(t *testing.T) {
	for text, want := range map[string]string{
		" plain ":                 "plain",
		"```json\n{\"a\":1}\n```": "{\"a\":1}\n",
		"```\ninside\n``` ":       "inside\n",
		"```one line```":          "```one line```",
		"```json\nopen":           "```json\nopen",
	} {
		if got := wording.StripFence(text); got != want {
			t.Errorf("StripFence(%q) = %q, want %q", text, got, want)
		}
	}
}

func BenchmarkFindNearest(b *testing.B) {
	known := make([]string, 500)
	for i := range known {
		known[i] = strings.Repeat("key", 3) + string(rune('a'+i%26))
	}
	for b.Loop() {
		wording.FindNearest("keykekya", known)
	}
}
