package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const twoModels = `
-- two/graph.yaml --
name: two
start: a
nodes:
  a: {type: llm, model: "script:one.yaml", prompt: One?, state_updates: {a: "{{output}}"}, next: b}
  b: {type: llm, model: "script:two.yaml", prompt: Two?, state_updates: {b: "{{output}}"}, next: none}
  none: {type: agent, agent: none, prompt: x, next: e}
  e: {type: end, output: "{{a}} {{b}}"}
-- two/one.yaml --
- {text: one}
-- two/two.yaml --
- {text: two}
-- none/graph.yaml --
name: none
start: e
nodes:
  e: {type: end, output: nothing}
-- .config/raddle/config.yaml --
model: openai:never-called
`

// "runs show" names the models that have answered: never the one that would otherwise have
// been called, and none if none was called.
func TestRunsShowNamesTheModelsThatAnswered(t *testing.T) {
	w := newWorkplace(t, twoModels)
	for agent, want := range map[string][]string{"./two": {"script:one.yaml", "script:two.yaml"}, "./none": {}} {
		if r := w.run("run", "-q", agent); r.code != 0 {
			t.Fatal(r)
		}
		run := w.runs()[0].Run
		text := w.run("runs", "show", run).out
		line := ""
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "model ") {
				line = strings.TrimSpace(strings.TrimPrefix(l, "model"))
			}
		}
		if line != strings.Join(want, ", ") || strings.Contains(text, "price") || strings.Contains(text, "never-called") {
			t.Errorf("%s: model %q\n%s", agent, line, text)
		}
		var shown struct {
			Usage struct {
				Models   []string
				Unpriced int `json:"unpriced_calls"`
			}
		}
		if err := json.Unmarshal([]byte(w.run("runs", "show", run, "--output", "json").out), &shown); err != nil ||
			strings.Join(shown.Usage.Models, " ") != strings.Join(want, " ") || shown.Usage.Models == nil || shown.Usage.Unpriced != 0 {
			t.Errorf("%s: %+v, %v", agent, shown, err)
		}
	}
}
