package replay_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/replay"
	"raddle.dev/internal/testkit/llmtest"
)

// TestRequests computes what a run asked of a provider over HTTP: each request is the one that was sent, also when the files have changed
// since, and the provider is not asked again.
func TestRequests(t *testing.T) {
	w := newWorld(t)
	server := llmtest.StartServer(t, llmtest.OpenAI(), llmtest.Turn{Text: "Paris"}, llmtest.Turn{Calls: []llmtest.Call{{ID: "c1", Name: "look", Args: `{"name": "Paris"}`}}}, llmtest.Turn{Text: "It is large."})
	w.write(map[string]string{
		".config/raddle/config.yaml": "clients:\n  - type: openai-compatible\n    name: local\n    api_base: " + server.URL + "\n    api_key: none-needed\n    models: [{name: m, supports_function_calling: true}]\n",
		"g/graph.yaml": "name: g\nmodel: \"local:m\"\nstart: a\nnodes:\n  a: {type: llm, instructions: Answer briefly., prompt: \"The capital of {{initial_prompt}}?\", state_updates: {city: \"{{output}}\"}, next: b}\n" +
			"  b: {type: llm, prompt: \"Describe {{city}}\", tools: [look], state_updates: {text: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{text}}\"}\n",
		"g/tools.sh": "# @cmd Reads a thing.\n# raddle: read-only\n# @option --name! The name.\nlook() { echo \"seen $argc_name\" >> \"$LLM_OUTPUT\"; }\n",
	})
	p, err := app.Open(app.Options{Work: w.work, Environ: environ(w.work), Store: "sqlite:" + filepath.Join(w.work, "http.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	w.p = p
	run := w.run(app.Request{Agent: "./g", Prompt: "France"})
	w.edit("g/graph.yaml", "The capital of", "The mayor of")
	w.edit("g/graph.yaml", "Describe {{city}}", "Praise {{city}}")
	moments, err := p.Runs.ReadStory(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := replay.NewRecording(t.Context(), w.file(run))
	if err != nil {
		t.Fatal(err)
	}
	job := replay.Job{Recording: rec, Environ: environ(w.work)}
	sent, found := server.RequestBodies(), 0
	for _, m := range moments {
		if m.Reply == nil {
			continue
		}
		r, err := replay.FindRequest(t.Context(), job, m.Seq)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Messages []struct {
				Role    string
				Content string
			}
			Tools []any
		}
		if err := json.Unmarshal([]byte(sent[found]), &body); err != nil {
			t.Fatal(err)
		}
		for _, said := range body.Messages {
			shown := r.Prompt
			if said.Role == "system" {
				shown = r.Instructions
			}
			if !strings.Contains(shown, said.Content) {
				t.Errorf("request %d does not show %q of %s:\n%+v", found, said.Content, said.Role, r)
			}
		}
		if r.Model != "local:m" || strings.Contains(r.Tools, "look") != (len(body.Tools) > 0) || len(r.Notes) > 0 {
			t.Errorf("request %d: %+v", found, r)
		}
		found++
	}
	if found != len(sent) || len(server.RequestBodies()) != found {
		t.Errorf("%d requests are found, %d were sent then, and %d now", found, len(sent), len(server.RequestBodies()))
	}
	if r, err := replay.FindRequest(t.Context(), job, 1); err == nil || !strings.Contains(err.Error(), "no model was asked for it") {
		t.Errorf("the request of a start: %+v, %v", r, err)
	}
}
