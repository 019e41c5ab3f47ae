//go:build unix

package app

import (
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
)

// The value of a variable that is a secret is not recorded. A resumed run takes it
// from the environment, or says from which variable if it is missing.
func TestSecretVariablesAreNotRecorded(t *testing.T) {
	const token, other = "ghp_0123456789", "named-by-the-variable"
	p := process(t, "GITHUB_TOKEN="+token)
	testfile.WriteFile(t, filepath.Join(p.Dirs.Work, "a", "graph.yaml"), `
name: a
start: ask
variables: [{name: token, description: x}, {name: my-password, description: x}, {name: plain, description: x}]
nodes:
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: show}
  show: {type: script, script: show.sh, next: done}
  done: {type: end, output: "{{token}} {{password}} {{plain}} {{who}}"}
`)
	testfile.WriteFile(t, filepath.Join(p.Dirs.Work, "a", "show.sh"), `printf '{"token": "%s", "password": "%s", "plain": "%s"}' ${#LLM_AGENT_VAR_TOKEN} ${#LLM_AGENT_VAR_MY_PASSWORD} "$LLM_AGENT_VAR_PLAIN"`)
	run, err := p.StartRun(Request{Agent: "./a", Variables: map[string]string{"token": token, "my-password": other, "plain": "as it is"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Drive(t.Context(), Driver{}); err != nil {
		t.Fatal(err)
	}
	run.Close()
	for r, err := range openStore(t, p).Read(t.Context(), run.Thread, journal.Range{}) {
		if err != nil || strings.Contains(string(r.Data)+string(r.Head), token) || strings.Contains(string(r.Data)+string(r.Head), other) {
			t.Errorf("the journal holds a secret: %s %v", r.Data, err)
		}
	}

	_, err = p.ResumeRun(t.Context(), run.ID, ResumeOptions{})
	if err == nil || !strings.Contains(err.Error(), "my-password") || strings.Contains(err.Error(), other) {
		t.Fatalf("without the value: %v", err)
	}
	p.env = append(p.env, "LLM_AGENT_VAR_MY_PASSWORD="+other)
	again, err := p.ResumeRun(t.Context(), run.ID, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	res, err := again.Drive(t.Context(), answering(func(graph.Question) string { return "me with " + token }))
	if want := "14 21 as it is me with [redacted]"; err != nil || flow.OutcomeOf(res).Output != want {
		t.Errorf("%q, want %q (%v)", flow.OutcomeOf(res).Output, want, err)
	}
	for r, err := range openStore(t, p).Read(t.Context(), run.Thread, journal.Range{}) {
		if err != nil || strings.Contains(string(r.Data), token) {
			t.Errorf("the journal holds what was answered: %s %v", r.Data, err)
		}
	}
}

// One learner loads an agent once, however many runs it has, and learns the variables of each run.
func TestLearnerLoadsAnAgentOnce(t *testing.T) {
	p := process(t)
	dir := filepath.Join(p.Dirs.Work, "a")
	writeSecret := func(secret string) {
		testfile.WriteFile(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"shop": {"url": "http://h/mcp", "headers": {"Authorization": "Bearer `+secret+`"}}}}`)
	}
	checkKnown := func(secret string, want bool) {
		t.Helper()
		if known := p.Tools.SecretSet().Text(secret) != secret; known != want {
			t.Errorf("%s is known: %t, want %t", secret, known, want)
		}
	}
	testfile.WriteFile(t, filepath.Join(dir, "config.yaml"), "name: a\nmodel: script:t.yaml\nmcp_servers: [shop]\n")
	testfile.WriteFile(t, filepath.Join(dir, "t.yaml"), "- {match: go, text: gone}\n")
	learn := p.NewLearner()
	writeSecret("first-header-1")
	learn(&runs.Record{Dir: dir, Variables: map[string]string{"password": "first-variable-1"}})
	checkKnown("first-header-1", true)
	checkKnown("first-variable-1", true)

	writeSecret("second-header-2")
	learn(&runs.Record{Dir: dir, Variables: map[string]string{"password": "second-variable-2"}})
	checkKnown("second-header-2", false)
	checkKnown("second-variable-2", true)

	p.NewLearner()(&runs.Record{Dir: dir})
	checkKnown("second-header-2", true)
}
