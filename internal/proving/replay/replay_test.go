package replay_test

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/replay"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
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
	f, err := runfile.Collect(w.Context(), runfile.Source{Archive: w.p.Runs, Run: run, Version: "v1", Secrets: w.p.Tools.SecretSet(), Learn: w.p.NewLearner()})
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
	if d == nil || d.What != what || d.Node != node && !(strings.HasSuffix(node, "[") && strings.HasPrefix(d.Node, node)) { // any branch of a map
		w.Errorf("want a difference of the %s at %q, got %+v (%+v)", what, node, d, res)
		return res
	}
	for _, line := range diff {
		if !strings.Contains(d.Diff(), line) {
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
		from     bool // a test case is made of it
	}{
		"hello":      {"Ada", nil, "prompt: ", "prompt: Politely, ", "prompt", "greet", nil, true},
		"triage":     {"", []any{"yes", "Call them."}, "Classify this report", "Classify the report", "prompt", "classify", []string{"-Classify this report.", "+Classify the report."}, true},
		"map-reduce": {"", nil, "prompt: |\n", "prompt: |\n      In short:\n", "prompt", "", []string{"+In short:"}, true},
		"research":   {"Why do warp threads break?", []any{"yes", "yes"}, "prompt: |\n", "prompt: |\n      In short:\n", "prompt", "", []string{"+In short:"}, true},
		"handbook":   {"How long is the notice period?", nil, "instructions: ", "instructions: Politely, ", "instructions", "", nil, true},
		"assistant":  {"Where is order 1007, and what would two raddles cost?", nil, "instructions: |\n", "instructions: |\n  Be quick.\n", "instructions", "", []string{"+Be quick."}, true},
		"review":     {"May this change be merged?", nil, "instructions: |\n", "instructions: |\n  Be quick.\n", "instructions", "", []string{"+Be quick."}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := os.CopyFS(filepath.Join(w.work, name), os.DirFS(filepath.Join("..", "..", "..", "examples", name))); err != nil {
				t.Fatal(err)
			}
			run := w.run(app.Request{Agent: "./" + name, Prompt: test.prompt}, test.answers...)
			if res := w.checkSilent(run); res.Effects == 0 || res.Steps == 0 || res.Ended != "" {
				t.Errorf("it ends early: %+v", res)
			}
			if test.from {
				checkCase(t, w, run)
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

// checkCase makes a test case of a run: it passes.
func checkCase(t *testing.T, w *world, run string) {
	t.Helper()
	rec, err := replay.NewRecording(w.Context(), w.file(run))
	if err != nil {
		t.Fatal(err)
	}
	path, failures, err := replay.WriteCase(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)})
	if err != nil || len(failures) > 0 {
		text, _ := os.ReadFile(path)
		t.Errorf("%v, %+v\n%s", err, failures, text)
	}
	if _, _, err := replay.WriteCase(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)}); err == nil {
		t.Error("a file was replaced")
	}
}

const parentGraph = `
name: parent
start: split
initial_state: {items: [a, b]}
nodes:
  split: {type: script, script: split.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: one, output_key: made, collect_into: all, next: kid}
  one: {type: llm, model: "openai:gpt-5-mini", prompt: "item {{item}}", state_updates: {made: "{{output}}"}}
  kid: {type: agent, agent: child, prompt: "hello {{all}}", state_updates: {kid: "{{output}}"}, next: ask}
  ask: {type: input, question: "more?", state_updates: {more: "{{input}}"}, next: last}
  last: {type: llm, model: "openai:gpt-5-mini", prompt: "end {{kid}} {{more}}", state_updates: {end: "{{output}}"}, next: e}
  e: {type: end, output: "{{end}}"}
`

// TestNested replays a graph with a script, a map, a question and a graph below, and finds each kind of edit.
func TestNested(t *testing.T) {
	texts := map[string]string{
		"parent/graph.yaml": parentGraph,
		"parent/split.sh":   "echo '{\"items\": [\"c\", \"d\"]}'\n",
		"child/graph.yaml":  "name: child\nstart: say\nnodes:\n  say: {type: llm, model: \"openai:gpt-5-mini\", prompt: \"greet {{initial_prompt}}\", state_updates: {s: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{s}}\"}\n",
	}
	tests := map[string]struct {
		file, old, now string
		what, node     string
		diff           []string
	}{
		"prompt in a map":    {"parent/graph.yaml", "item {{item}}", "thing {{item}}", "prompt", "each/one[", []string{"-item ", "+thing "}},
		"prompt below":       {"child/graph.yaml", "greet {{", "meet {{", "prompt", "kid/say", []string{"-greet hello [\"item c!\",\"item d!\"]"}},
		"prompt of an agent": {"parent/graph.yaml", "hello {{all}}", "good day {{all}}", "prompt", "kid", nil},
		"input of a script":  {"parent/graph.yaml", "items: [a, b]", "items: [a, z]", "input", "split", []string{"-    \"b\"", "+    \"z\""}},
		"question":           {"parent/graph.yaml", "more?", "even more?", "question", "ask", []string{"-more?", "+even more?"}},
		"removed node":       {"parent/graph.yaml", "  kid: {type: agent, agent: child, prompt: \"hello {{all}}\", state_updates: {kid: \"{{output}}\"}, next: ask}\n", "", "path", "each", []string{"-kid", "+ask"}},
		"another path":       {"parent/graph.yaml", "more: \"{{input}}\"}, next: last", "more: \"{{input}}\"}, next: e", "path", "ask", []string{"-last", "+e"}},
		"output":             {"parent/graph.yaml", "output: \"{{end}}\"", "output: \"{{end}}!\"", "output", "", nil},
		"state":              {"parent/graph.yaml", "state_updates: {end: \"{{output}}\"}", "state_updates: {end: \"{{output}}\", also: new}", "state", "", []string{"+\"new\""}},
		"model":              {"parent/graph.yaml", "last: {type: llm, model: \"openai:gpt-5-mini\"", "last: {type: llm, model: \"openai:gpt-5\"", "model", "last", []string{"-openai:gpt-5-mini", "+openai:gpt-5"}},
		"new call":           {"parent/graph.yaml", "state_updates: {end: \"{{output}}\"}", "output_schema: {type: object, properties: {a: {type: string}}, required: [a]}, state_updates: {end: \"{{output}}\"}", "prompt", "last", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write(texts)
			run := w.run(app.Request{Agent: "./parent", UIHooks: echo}, "yes")
			if res := w.checkSilent(run); res.Effects != 6 || res.Ended != "" {
				t.Errorf("%+v", res)
			}
			w.edit(test.file, test.old, test.now)
			if strings.HasPrefix(test.old, "  kid:") {
				w.edit(test.file, "next: kid", "next: ask")
			}
			w.checkDiffers(run, test.what, test.node, test.diff...)
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		w := newWorld(t)
		w.write(texts)
		run := w.run(app.Request{Agent: "./parent", UIHooks: echo}, "yes")
		checkCase(t, w, run)
		if res := w.replay(run, func(j *replay.Job) { j.Until = "kid" }); res.Difference != nil || res.Effects != 3 || res.Ended != "stopped before node kid" {
			t.Errorf("until a node: %+v", res)
		}
		if res := w.replay(run, func(j *replay.Job) { j.Until = "ask" }); res.Difference != nil || res.Ended != "stopped before node ask" {
			t.Errorf("until a question: %+v", res)
		}
		f := w.file(run)
		for _, dir := range []string{"parent", "child"} {
			if err := os.RemoveAll(filepath.Join(w.work, dir)); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := replay.NewRecording(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		res, err := replay.Execute(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)})
		if err != nil || res.Difference != nil || res.Effects != 6 || res.Directory != "" || len(res.Notes) != 1 {
			t.Errorf("with the files of the export: %+v, %v", res, err)
		}
	})
}

// TestLive continues a replay from its first difference: what came before is answered by the recording, also what could not run
// now, and what comes after it is new.
func TestLive(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{
		"parent/graph.yaml": parentGraph,
		"parent/split.sh":   "echo '{\"items\": [\"c\", \"d\"]}'\n",
		"child/graph.yaml":  "name: child\nstart: e\nnodes:\n  e: {type: end, output: \"{{initial_prompt}}\"}\n",
	})
	run := w.run(app.Request{Agent: "./parent", UIHooks: echo}, "yes")
	w.write(map[string]string{"parent/split.sh": "exit 1\n"})
	w.edit("parent/graph.yaml", "end {{kid}}", "finally {{kid}}")
	rec, err := replay.NewRecording(t.Context(), w.file(run))
	if err != nil {
		t.Fatal(err)
	}
	res, err := replay.Execute(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)})
	if err != nil || res.Difference == nil || res.Difference.Node != "last" {
		t.Fatalf("%+v, %v", res, err)
	}
	req, answers, err := res.NewLive(rec)
	if err != nil || len(answers) != 1 || answers[0] != "ask=yes" {
		t.Fatal(answers, err)
	}
	recorded := req.Adjust
	req.Adjust = func(h *flow.Host) { echo.Adjust(h); recorded(h) }
	live := w.run(req, "yes")
	if live == run {
		t.Error("the run was not a new one")
	}
	d, err := w.p.Runs.ReadRunDetail(t.Context(), live)
	if err != nil || d.Status != "done" {
		t.Fatalf("%+v, %v", d, err)
	}
	if out := flow.OutcomeOf(graph.Result{Value: d.Snapshot.Result}).Output; out != `finally hello ["item c!","item d!"] yes!` {
		t.Errorf("output %q", out)
	}
}

// TestParts replays runs that wait, fail, were forked or edited, as far as they are recorded.
func TestParts(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"g/graph.yaml": "name: g\nstart: a\nnodes:\n" +
		"  a: {type: llm, model: \"openai:gpt-5-mini\", prompt: \"a {{initial_prompt}}\", state_updates: {x: \"{{output}}\"}, next: ask}\n" +
		"  ask: {type: input, question: more, state_updates: {y: \"{{input}}\"}, next: fails}\n" +
		"  fails: {type: llm, model: \"openai:gpt-5-mini\", prompt: \"FAIL {{y}}\", state_updates: {z: \"{{output}}\"}, fallback: b, next: e}\n" +
		"  b: {type: llm, model: \"openai:gpt-5-mini\", prompt: \"b {{z}} {{x}}\", state_updates: {w: \"{{output}}\"}, next: e}\n" +
		"  e: {type: end, output: \"{{w}}\"}\n"})
	req := app.Request{Agent: "./g", Prompt: "one", UIHooks: echo}
	waits := w.run(req)
	if res := w.checkSilent(waits); res.Effects != 1 || !strings.Contains(res.Ended, "waiting") {
		t.Errorf("a run that waits: %+v", res)
	}
	done := w.run(req, "yes")
	if res := w.checkSilent(done); res.Effects != 3 || res.Ended != "" {
		t.Errorf("a run with a call that failed: %+v", res)
	}
	fork, _, err := w.p.ForkRun(t.Context(), app.Fork{From: done + "@3", Set: []app.Setting{{Key: "x", Value: "edited"}}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.p.ResumeRun(t.Context(), fork, app.ResumeOptions{UIHooks: echo})
	if err != nil {
		t.Fatal(err)
	}
	_, err = again.Drive(t.Context(), app.Driver{Reply: func(graph.Question) (any, bool) { return "no", true }})
	again.Close()
	if err != nil {
		t.Fatal(err)
	}
	if res := w.checkSilent(fork); res.Effects != 3 || res.Ended != "" {
		t.Errorf("a fork with an edit: %+v", res)
	}
	w.edit("g/graph.yaml", "b {{z}} {{x}}", "b {{x}}")
	w.checkDiffers(fork, "prompt", "b", "+b edited")
	w.checkDiffers(done, "prompt", "b", "+b a one!")
	w.checkSilent(waits)
}

// TestSession replays a turn of a session with the turns before it, with tools, and finds edits of the instructions and of tools.
func TestSession(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{
		"talk/config.yaml": "name: talk\nmodel: openai:gpt-5-mini\ninstructions: |\n  be {{__cwd__}}\n",
		"talk/tools.sh":    "# @cmd Reads a thing.\n# @option --name! The name.\nlook() { echo \"seen $argc_name\" >> \"$LLM_OUTPUT\"; }\n",
	})
	var run string
	for _, said := range []string{"first", "CALL look", "third"} {
		run = w.run(app.Request{Agent: "./talk", Prompt: said, Session: "s", UIHooks: echo})
	}
	if res := w.checkSilent(run); res.Effects != 5 || res.Ended != "" {
		t.Errorf("%+v", res)
	}
	w.edit("talk/config.yaml", "be {{", "stay {{")
	w.checkDiffers(run, "instructions", "", "+stay "+w.work)
	w.edit("talk/config.yaml", "stay {{", "be {{")
	w.checkSilent(run)
	w.edit("talk/tools.sh", "Reads a thing", "Reads it")
	if d := w.replay(run, nil).Difference; d != nil { // the old text is not known
		t.Errorf("a tool whose old text is not recorded: %+v", d)
	}
}

// echo is an environment whose models repeat what they read. A prompt with FAIL fails; one with CALL calls a tool.
var echo = app.UIHooks{Adjust: func(h *flow.Host) { h.Models, h.Tooling.Gate = echoModels{}, nil }}

type echoModels struct{}

func (echoModels) IsKnown(string, string) bool                               { return true }
func (m echoModels) Open(context.Context, string, string) (llm.Model, error) { return m, nil }
func (echoModels) Facts(string, string) (f flow.ModelFacts)                  { return f }

func (echoModels) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		last := r.Messages[len(r.Messages)-1]
		reply := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: last.Text() + "!"}}}}
		name, calls := strings.CutPrefix(last.Text(), "CALL ")
		switch {
		case strings.Contains(last.Text(), "FAIL"):
			yield(llm.Delta{}, &llm.Error{Class: llm.BadRequest, Message: "no such luck"})
			return
		case calls && last.Role == llm.RoleUser:
			reply.Message.Parts, reply.Stop = []llm.Part{llm.ToolCall{ID: "c1", Name: name, Args: []byte(`{"name": "this"}`)}}, llm.StopTools
		}
		yield(llm.Delta{Done: &reply}, nil)
	}
}

// runWithProvider runs a graph with a tool and a provider over HTTP, which answers three requests. The process of the world is open until the test ends.
func runWithProvider(t *testing.T) (w *world, server *llmtest.Server, run string) {
	t.Helper()
	w = newWorld(t)
	server = llmtest.StartServer(t, llmtest.OpenAI(), llmtest.Turn{Text: "Paris"}, llmtest.Turn{Calls: []llmtest.Call{{ID: "c1", Name: "look", Args: `{"name": "Paris"}`}}}, llmtest.Turn{Text: "It is large."})
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
	t.Cleanup(func() { _ = p.Close() })
	w.p = p
	return w, server, w.run(app.Request{Agent: "./g", Prompt: "France"})
}

// TestProvider records a run with a provider over HTTP and makes a test case of it: the case passes without the provider, and
// fails after the prompt is edited.
func TestProvider(t *testing.T) {
	w, server, run := runWithProvider(t)
	if res := w.checkSilent(run); res.Effects != 4 || res.Ended != "" {
		t.Fatalf("%+v", res)
	}
	checkCase(t, w, run)
	w.edit("g/graph.yaml", "Describe {{city}}", "Praise {{city}}")
	w.checkDiffers(run, "prompt", "b", "-Describe Paris", "+Praise Paris")
	files, err := testcase.Find(filepath.Join(w.work, "g"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	f, err := testcase.Load(files[0])
	if err != nil {
		t.Fatal(err)
	}
	done, err := (&testrun.Runner{Environ: environ(w.work)}).RunCase(t.Context(), f.Cases[0], testrun.Setup{})
	if err != nil || len(done.Failures) != 1 || !strings.Contains(done.Failures[0].Message, "Praise Paris") {
		t.Errorf("after the edit: %+v, %v", done, err)
	}
	if n := len(server.RequestBodies()); n != 3 {
		t.Errorf("the provider got %d requests", n)
	}
}

// The times that came in a recorded run come in its replay, and only those; a test case of it says how much time
// passes.
func TestReplayOfARunThatWaits(t *testing.T) {
	w := newWorld(t)
	w.write(map[string]string{"nap/graph.yaml": `
name: nap
start: nap
nodes:
  nap: {type: wait, for: 2h, next: ask}
  ask: {type: input, question: q?, deadline: 1d, on_deadline: {answer: none}, state_updates: {who: "{{input}}"}, next: more}
  more: {type: wait, for: 3d, next: done}
  done: {type: end, output: "{{who}}"}
`})
	clock := testrun.NewClock()
	run, err := w.p.StartRun(app.Request{Agent: "./nap", UIHooks: app.UIHooks{Clock: clock}})
	if err != nil {
		t.Fatal(err)
	}
	woken := 0
	res, err := run.Drive(t.Context(), app.Driver{Wake: func(parked graph.Result) bool {
		woken++
		clock.JumpTo(parked.Due)
		return woken <= 2
	}})
	run.Close()
	if err != nil || res.Status != graph.Waiting || len(res.Timers) != 1 {
		t.Fatal(res.Status, err)
	}
	if got := w.replay(run.ID, nil); got.Difference != nil {
		t.Errorf("the replay of a run that waits: %v", got.Difference)
	}
	again, err := w.p.ResumeRun(t.Context(), run.ID, app.ResumeOptions{UIHooks: app.UIHooks{Clock: clock}})
	if err != nil {
		t.Fatal(err)
	}
	res, err = again.Drive(t.Context(), app.Driver{})
	again.Close()
	if err != nil || flow.OutcomeOf(res).Output != "none" {
		t.Fatal(res.Status, err)
	}
	rec, err := replay.NewRecording(t.Context(), w.file(run.ID))
	if err != nil {
		t.Fatal(err)
	}
	got, err := replay.Execute(t.Context(), replay.Job{Recording: rec, Environ: environ(w.work)})
	if err != nil || got.Difference != nil {
		t.Fatal(got.Difference, err)
	}
	c, err := got.NewCase(rec)
	if err != nil || c.At != "+98h0m1s" {
		t.Errorf("the case lets %q pass (%v)", c.At, err)
	}
}
