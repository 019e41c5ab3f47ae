package app

import (
	"context"
	"iter"
	"path/filepath"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
)

// cannedModels repeats the prompt, whichever model is called.
type cannedModels struct{}

func (cannedModels) IsKnown(string, string) bool                               { return true }
func (m cannedModels) Open(context.Context, string, string) (llm.Model, error) { return m, nil }
func (cannedModels) Facts(string, string) (f flow.ModelFacts)                  { return f }

func (cannedModels) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "re: " + r.Messages[0].Text()}}}}
		yield(llm.Delta{Done: &reply}, nil)
	}
}

// TestAdjust runs and resumes an agent whose models have no transcript, with another model.
func TestAdjust(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "g", "graph.yaml"), `
name: g
model: script:missing.yaml
start: before
nodes:
  before: {type: llm, prompt: one, state_updates: {a: "{{output}}"}, next: ask}
  ask: {type: input, question: more, next: after}
  after: {type: llm, prompt: two, state_updates: {b: "{{output}}"}, next: e}
  e: {type: end, output: "{{a}} {{b}}"}
`)
	hooks := UIHooks{Adjust: func(h *flow.Host) { h.Models = cannedModels{} }}
	p, err := Open(Options{Work: work, Environ: []string{"HOME=" + work}, Store: "memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run, err := p.StartRun(Request{Agent: "./g", UIHooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Drive(t.Context(), Driver{})
	run.Close()
	if err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	again, err := p.ResumeRun(t.Context(), run.ID, ResumeOptions{UIHooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	ask := func(context.Context, []graph.Question) ([]graph.Answer, bool, error) {
		return []graph.Answer{{ID: res.Questions[0].ID, Value: "no"}}, false, nil
	}
	res, err = again.Drive(t.Context(), Driver{Ask: ask})
	if err != nil || flow.OutcomeOf(res).Output != "re: one re: two" {
		t.Error(flow.OutcomeOf(res).Output, err)
	}
}
