package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
)

// process opens a process with an empty environment except for env.
func process(t *testing.T, env ...string) *Process {
	t.Helper()
	dir := t.TempDir()
	p, err := Open(Options{Work: dir, Environ: append([]string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}, env...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestSecrets(t *testing.T) {
	p := process(t, "OPENAI_API_KEY=key-one", "MINE_API_KEY=key-one-and-more", "COHERE_API_KEY=493817", "OTHER=kept", "DATABASE_URL=pg://ann:in-a-url@h/x", "GITHUB_PAT=ghp_0123456789", "EXTRA_HEADER=Authorization: Bearer in-a-header-1")
	p.Config.Clients = []config.Client{{Name: "mine", Type: "openai", Key: "key-three", Base: "http://u:base-password@h/v1?key=base-query"}}
	p.Config.Store = "other://u:store-password@h"
	testfile.WriteFile(t, filepath.Join(p.Dirs.Config, ".env"), "export DOT_TOKEN='dot token'\nNOTE=nothing-of-note\n")
	testfile.WriteFile(t, filepath.Join(p.Dirs.Work, ".env"), "WORK_PASS=work-pass\n")
	testfile.WriteFile(t, filepath.Join(p.Dirs.Config, "mcp.json"), `{"mcpServers": {
		"web": {"url": "http://u:mcp-password@h/mcp?token=mcp-query", "headers": {"Authorization": "Bearer mcp-header", "X-Trace": "trace-value"}},
		"own": {"command": "x", "args": ["--api-key", "mcp-argument", "--name", "mcp-name", "--token=mcp-joined", "-H", "Authorization: Basic bWNwOmJhc2ljLXNlY3JldA==", "-pMcp1x2joined", "{{GITHUB_PAT}}"], "env": {"SOME_SECRET": "mcp-variable", "NO": "${UNSET}"}}}}`)
	secret := []string{"key-one", "key-one-and-more", "key-three", "493817", "in-a-url", "ghp_0123456789", "base-password", "base-query", "store-password", "dot token", "work-pass",
		"mcp-password", "mcp-query", "mcp-header", "mcp-argument", "mcp-variable", "in-a-header-1", "mcp-joined", "bWNwOmJhc2ljLXNlY3JldA==", "basic-secret", "Mcp1x2joined"}
	for _, value := range secret {
		if got := p.Tools.SecretSet().Text(">" + value + "<"); got != ">[redacted]<" {
			t.Errorf("%s is not known: %s", value, got)
		}
	}
	for _, value := range []string{"kept", "nothing-of-note", "trace-value", "mcp-name", "pg://ann"} {
		if got := p.Tools.SecretSet().Text(value); got != value {
			t.Errorf("%s is taken for a secret: %s", value, got)
		}
	}
	env := p.Tools.ScriptEnv()
	for _, entry := range env {
		if strings.Contains(entry, "_API_KEY=") {
			t.Errorf("scripts get %s", entry)
		}
	}
	if !slices.Contains(env, "OTHER=kept") {
		t.Errorf("scripts lack OTHER: %v", env)
	}
}

// Scripts get the variable of the store unless its URL has a password.
func TestScriptsLackThePasswordOfTheStore(t *testing.T) {
	for url, want := range map[string]bool{"memory:": true, "redis://127.0.0.1:1": true, "redis://:hunter2@127.0.0.1:1": false,
		"postgres://me:pass@db/raddle": false, "postgres://me@db/raddle": true} {
		env := process(t, "RADDLE_STORE="+url).Tools.ScriptEnv()
		if got := slices.Contains(env, "RADDLE_STORE="+url); got != want {
			t.Errorf("scripts get %s: %v, want %v", url, got, want)
		}
	}
}

// A run in a process without a user interface: it asks, and continues with the
// answer.
func TestDrive(t *testing.T) {
	p := process(t, "RADDLE_STORE=memory:")
	testfile.WriteFile(t, filepath.Join(p.Dirs.Work, "a", "graph.yaml"), `
name: a
start: ask
nodes:
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "{{who}}"}
`)
	run, err := p.StartRun(Request{Agent: "./a", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	asked := 0
	res, err := run.Drive(context.Background(), Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		asked++
		return []graph.Answer{{ID: open[0].ID, Value: "Ada"}}, false, nil
	}})
	if err != nil || res.Status != graph.Done || asked != 1 || res.Value != "Ada" {
		t.Errorf("%v %v, asked %d times, %v", res.Status, err, asked, res.Value)
	}
	detail, err := p.Runs.ReadRunDetail(context.Background(), run.ID)
	if err != nil || detail.Record == nil || detail.Record.Prompt != "x" || detail.Agent != "a" {
		t.Errorf("%+v %v", detail, err)
	}
}

// Leaving questions open and failing to ask both leave the run unchanged.
func TestDriveParks(t *testing.T) {
	p := process(t)
	testfile.WriteFile(t, filepath.Join(p.Dirs.Work, "a", "graph.yaml"), `
name: a
start: ask
nodes:
  ask: {type: input, question: Who?, next: done}
  done: {type: end}
`)
	run, err := p.StartRun(Request{Agent: "./a"})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("no terminal")
	res, err := run.Drive(context.Background(), Driver{Ask: func(context.Context, []graph.Question) ([]graph.Answer, bool, error) { return nil, false, broken }})
	run.Close()
	if !errors.Is(err, broken) || res.Status != graph.Waiting {
		t.Errorf("%v %v", res.Status, err)
	}
	run, err = p.ResumeRun(context.Background(), run.ID[:13], ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if len(run.Questions) != 1 || run.Questions[0].ID != "ask" {
		t.Errorf("open questions: %v", run.Questions)
	}
	if res, err := run.Drive(context.Background(), Driver{}); err != nil || res.Status != graph.Waiting {
		t.Errorf("%v %v", res.Status, err)
	}
	if _, err := p.ResumeRun(context.Background(), run.ID, ResumeOptions{}); err == nil || !strings.Contains(err.Error(), "is being driven by process") {
		t.Errorf("a second driver: %v", err)
	}
}

func openStore(t *testing.T, p *Process) *runs.Store {
	t.Helper()
	st, err := p.Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	return st
}
