package replay_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/replay"
	"raddle.dev/internal/runfile"
	"raddle.dev/internal/testfile"
	"raddle.dev/internal/testneed"
)

// A world is a working directory with agents, and a process that runs them.
type world struct {
	*testing.T
	work string
	p    *app.Process
}

func newWorld(t *testing.T) *world {
	testneed.RequirePrograms(t, "bash")
	work := t.TempDir()
	p, err := app.Open(app.Options{Work: work, Environ: environ(work), Store: "sqlite:" + filepath.Join(work, "runs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return &world{t, work, p}
}

func environ(work string) []string {
	return []string{"HOME=" + work, "PATH=" + os.Getenv("PATH")}
}

// write writes files of agents.
func (w *world) write(texts map[string]string) {
	w.Helper()
	for name, text := range texts {
		testfile.WriteFile(w.T, filepath.Join(w.work, name), text)
	}
}

// edit replaces a text in a file, which must be there.
func (w *world) edit(name, old, now string) {
	w.Helper()
	path := filepath.Join(w.work, name)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		w.Fatalf("%s does not contain %q: %v", name, old, err)
	}
	w.write(map[string]string{name: strings.Replace(string(text), old, now, 1)})
}

// run runs an agent and returns the id of the run. answers are given in order; the rest of the questions stay open.
func (w *world) run(req app.Request, answers ...any) string {
	w.Helper()
	run, err := w.p.StartRun(req)
	if err != nil {
		w.Fatal(err)
	}
	defer run.Close()
	_, err = run.Drive(w.Context(), app.Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		if len(answers) == 0 {
			return nil, false, nil
		}
		answer := graph.Answer{ID: open[0].ID, Value: answers[0]}
		answers = answers[1:]
		return []graph.Answer{answer}, false, nil
	}})
	if err != nil {
		w.Log(err) // a recording of a failure
	}
	return run.ID
}

// file returns an exported run.
func (w *world) file(run string) *runfile.File {
	w.Helper()
	f, err := runfile.Collect(w.Context(), runfile.Source{Archive: w.p.Runs, Run: run, Version: "v1", Secrets: w.p.Tools.SecretSet(), Learn: w.p.LearnSecrets})
	if err != nil {
		w.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		w.Fatal(err)
	}
	if f, err = runfile.Read(&b); err != nil {
		w.Fatal(err)
	}
	return f
}

// replay replays a run.
func (w *world) replay(run string, change func(*replay.Job)) *replay.Result {
	w.Helper()
	rec, err := replay.NewRecording(w.Context(), w.file(run))
	if err != nil {
		w.Fatal(err)
	}
	job := replay.Job{Recording: rec, Environ: environ(w.work)}
	if change != nil {
		change(&job)
	}
	res, err := replay.Execute(w.Context(), job)
	if err != nil {
		w.Fatal(err)
	}
	return res
}

// checkSilent replays a run, which must not differ.
func (w *world) checkSilent(run string) *replay.Result {
	w.Helper()
	res := w.replay(run, nil)
	if res.Difference != nil || len(res.Notes) > 0 {
		w.Errorf("a difference without a change: %+v, notes %q", res.Difference, res.Notes)
	}
	return res
}

// checkDiffers replays a run, which must differ at a node. diff are lines of the difference.
func (w *world) checkDiffers(run, what, node string, diff ...string) *replay.Result {
	w.Helper()
	res := w.replay(run, nil)
	d := res.Difference
	if d == nil || d.What != what || d.Node != node {
		w.Errorf("want a difference of the %s at %q, got %+v (%+v)", what, node, d, res)
		return res
	}
	for _, line := range diff {
		if !strings.Contains(d.Diff(), line+"\n") {
			w.Errorf("%q is not in the difference:\n%s", line, d.Diff())
		}
	}
	return res
}

// TestExamples replays a run of each example: nothing differs. After an edit of a prompt, of the agent's instructions or of a
// question, the replay stops there and shows the lines.
func TestExamples(t *testing.T) {
	tests := map[string]struct {
		prompt   string
		answers  []any
		old, now string // in the file of the agent
		what     string
		node     string
		diff     []string
	}{
		"hello":      {"Ada", nil, "prompt: ", "prompt: Politely, ", "prompt", "greet", nil},
		"triage":     {"", []any{"yes", "Call them."}, "Classify this report", "Classify the report", "prompt", "classify", []string{"-Classify this report.", "+Classify the report."}},
		"map-reduce": {"", nil, "prompt: |\n", "prompt: |\n      In short:\n", "prompt", "", []string{"+In short:"}},
		"research":   {"Why do warp threads break?", []any{"yes", "yes"}, "prompt: |\n", "prompt: |\n      In short:\n", "prompt", "", []string{"+In short:"}},
		"handbook":   {"How long is the notice period?", nil, "instructions: ", "instructions: Politely, ", "instructions", "", nil},
		"assistant":  {"Where is order 1007, and what would two raddles cost?", nil, "instructions: |\n", "instructions: |\n  Be quick.\n", "instructions", "", []string{"+Be quick."}},
		"review":     {"May this change be merged?", nil, "instructions: |\n", "instructions: |\n  Be quick.\n", "instructions", "", []string{"+Be quick."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.CopyFS(filepath.Join(w.work, name), os.DirFS(filepath.Join("..", "..", "examples", name))); err != nil {
				t.Fatal(err)
			}
			run := w.run(app.Request{Agent: "./" + name, Prompt: test.prompt}, test.answers...)
			if res := w.checkSilent(run); res.Effects == 0 || res.Steps == 0 || res.Ended != "" {
				t.Errorf("it ends early: %+v", res)
			}
			file := name + "/graph.yaml"
			if _, err := os.Stat(filepath.Join(w.work, file)); err != nil {
				file = name + "/config.yaml"
			}
			w.edit(file, test.old, test.now)
			res := w.replay(run, nil)
			if d := res.Difference; d == nil || d.What != test.what || test.node != "" && d.Node != test.node || d.Recorded == "" || d.Record == 0 {
				t.Errorf("after the edit: %+v, %+v", d, res)
			} else {
				for _, line := range test.diff {
					if !strings.Contains(d.Diff(), line+"\n") {
						t.Errorf("%q is not in the difference:\n%s", line, d.Diff())
					}
				}
			}
		})
	}
}
