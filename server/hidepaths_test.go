package server

import (
	"path/filepath"
	"strings"
	"testing"
)

// Each text of an error that has a path of this machine tells nothing about where things are, in every form in which it may be written; and what
// only looks like a path stays as it is.
func TestHidePaths(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	d := s.process.Dirs
	secret := filepath.Join(t.TempDir(), "secret dir", "x")
	for text, want := range map[string]string{
		"the agent in " + d.Agents + "/ask is gone":                       "the agent in ask is gone",
		"open " + d.Agents + "/ask/graph.yaml: no such file":              "open ask/graph.yaml: no such file",
		"open '" + d.Agents + "/ask/a b.yaml': no such file":              "open 'ask/a b.yaml': no such file",
		d.Agents + "/ask/graph.yaml:3:1: unknown key":                     "ask/graph.yaml:3:1: unknown key",
		"in ~" + strings.TrimPrefix(d.Agents, d.Home) + "/ask/graph.yaml": "in ask/graph.yaml",
		"open " + d.Work + "/sub/x.txt: no such file":                     "open sub/x.txt: no such file",
		"the store " + d.State + "/runs.db is locked":                     "the store runs.db is locked",
		"open \"" + secret + "\": no":                                     "open \"x\": no",
		"open `" + secret + "`: no":                                       "open `x`: no",
		"open /home/u/plans/x.txt: no such file":                          "open x.txt: no such file",
		"(open /home/u/plans/x.txt)":                                      "(open x.txt)",
		"[/home/u/plans/x.txt]":                                           "[x.txt]",
		"<file:///home/u/plans/x.txt>":                                    "<x.txt>",
		"sqlite=/home/u/a,b/c:d/runs.db":                                  "sqlite=runs.db",
		"error:/home/u/plans/x.txt":                                       "error:x.txt",
		"open ~/plans/x.txt: no":                                          "open x.txt: no",
		"open ~/x.txt: no":                                                "open x.txt: no",
		`open C:\Users\u\plans\x.txt: no`:                                 "open x.txt: no",
		`open C:/Users/u/plans/x.txt: no`:                                 "open x.txt: no",
		`open \\host\share\plans\x.txt: no`:                               "open x.txt: no",
		"a and /home/u/one/x, and /home/u/two/y":                          "a and x, and y",
		"at '/state/items/0': it must be a number":                        "at '/state/items/0': it must be a number",
		"see http://127.0.0.1:7777/api/v1/runs":                           "see http://127.0.0.1:7777/api/v1/runs",
		"there is nothing at POST /api/v1/runs/x":                         "there is nothing at POST /api/v1/runs/x",
		"use and/or, 11/26/2026, a/b/c, application/json":                 "use and/or, 11/26/2026, a/b/c, application/json",
		"the model openai:gpt/x failed with 3/4 of the tokens":            "the model openai:gpt/x failed with 3/4 of the tokens",
		"the sibling " + d.Work + "shop/deep/x.txt of the workspace":      "the sibling x.txt of the workspace",
		"no path at all":                                                  "no path at all",
	} {
		if got := HidePaths(text, s); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	long := strings.Repeat("open /home/u/plans/x.txt: no such file; ", 1000)
	if got := HidePaths(long, s); strings.Contains(got, "plans") {
		t.Error("a long text has paths")
	}
	if got := HidePaths("open /home/u/plans/x.txt", nil); got != "open x.txt" {
		t.Errorf("without a service: %q", got)
	}
}
