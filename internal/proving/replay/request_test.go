package replay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/internal/proving/replay"
)

// TestRequests computes what a run asked of a provider over HTTP: each request is the one that was sent, also when the files have changed
// since, and the provider is not asked again.
func TestRequests(t *testing.T) {
	w, server, run := runWithProvider(t)
	w.edit("g/graph.yaml", "The capital of", "The mayor of")
	w.edit("g/graph.yaml", "Describe {{city}}", "Praise {{city}}")
	moments, err := w.p.Runs.ReadStory(t.Context(), run, 0)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := replay.NewRecording(t.Context(), w.file(run))
	if err != nil {
		t.Fatal(err)
	}
	asked, err := replay.PlayRequests(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)})
	if err != nil {
		t.Fatal(err)
	}
	sent, found := server.RequestBodies(), 0
	for _, m := range moments {
		if m.Reply == nil {
			continue
		}
		r, err := asked.Find(m.Seq)
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
	if r, err := asked.Find(1); err == nil || !strings.Contains(err.Error(), "no model was asked for it") {
		t.Errorf("the request of a start: %+v, %v", r, err)
	}
}
