package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/terminal/cli"
	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// The test binary is also the program: under the name raddle it runs the command
// line, with the race detector if the tests have it. Most tests start the released program in its place: see programOf.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"raddle": func() { os.Exit(cli.Main(os.Args[1:])) },
	})
}

// TestScripts runs the archives of testdata/script. Their own commands are:
//
//	exits CODE COMMAND...   runs a command that must exit with CODE
//	conforms SCHEMA         holds every line of the last output to a schema
//	run NAME                puts the id of the newest run into a variable
//	json NAME PATH          puts a value of the last output into a variable
func TestScripts(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	testscript.Run(t, scriptParams("testdata/script", programDir(t)))
}

// programOf returns the program that tests start: the released one, because under the race detector each command takes five times the processor
// time, and tests start thousands. Long runs, and TestExtraScripts, take the test binary.
func programOf(t testing.TB) string {
	t.Helper()
	if testneed.Soaks() {
		return testBinary(t)
	}
	return clienttest.BuildRaddle(t)
}

// testBinary returns the test binary, which under the name raddle is the program.
func testBinary(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// programDir returns the directory of the released program for scripts; "": they run the test binary.
func programDir(t testing.TB) string {
	if testneed.Soaks() {
		return ""
	}
	return filepath.Dir(clienttest.BuildRaddle(t))
}

// scriptParams returns how the archives of a directory are run. bin is the directory of the program; "": scripts run the test binary.
func scriptParams(dir, bin string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			for _, kv := range surroundings(e.WorkDir) {
				name, value, _ := strings.Cut(kv, "=")
				e.Setenv(name, value)
			}
			if bin != "" {
				e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "conforms": conforms, "run": newestRun, "json": jsonValue,
		},
	}
}

// surroundings returns an environment that separates a raddle process of a test from
// everything outside its directory.
func surroundings(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, ".home"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, ".config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, ".state"),
		"RADDLE_BOX=false", // most tests are about questions, which the box would answer
		"XDG_CACHE_HOME=" + filepath.Join(dir, ".cache"),
		"TERM=xterm-256color",
		"GORACE=atexit_sleep_ms=0", // otherwise every process under the race detector takes a second longer
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func conforms(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: conforms SCHEMA")
	}
	schema, err := strictSchema(args[0])
	ts.Check(err)
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		ts.Check(err)
		if err := schema.Validate(v); err != nil {
			ts.Fatalf("%s\n%v", line, err)
		}
		n++
	}
	if n == 0 {
		ts.Fatalf("there was no output")
	}
}

// strictSchema returns a published schema that accepts nothing it does not name, so
// that the schema cannot lag behind the output.
func strictSchema(name string) (*jsonschema.Schema, error) {
	text, err := os.ReadFile(filepath.Join("schema", name+".json"))
	if err != nil {
		return nil, err
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	seal(doc, true)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name+".json", doc); err != nil {
		return nil, err
	}
	return c.Compile(name + ".json")
}

// seal closes every object of a schema whose members are named. The alternatives
// of the envelope name only some of its members.
func seal(v any, top bool) {
	m, ok := v.(map[string]any)
	if !ok {
		if list, ok := v.([]any); ok {
			for _, item := range list {
				seal(item, false)
			}
		}
		return
	}
	if m["properties"] != nil && (m["type"] == "object" || top) {
		m["additionalProperties"] = false
	}
	for _, item := range m {
		seal(item, false)
	}
}

// newestRun implements "run NAME".
func newestRun(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: run NAME")
	}
	ts.Check(ts.Exec("raddle", "runs", "ls", "--output", "json"))
	var runs []struct{ Run string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &runs))
	if len(runs) == 0 {
		ts.Fatalf("there are no runs")
	}
	ts.Setenv(args[0], runs[0].Run)
}

// jsonValue implements "json NAME PATH": PATH is names and indices separated by dots.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json NAME PATH")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	var v any
	ts.Check(json.Unmarshal([]byte(lines[len(lines)-1]), &v))
	for _, key := range strings.Split(args[1], ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			ts.Check(err)
			if i >= len(at) {
				ts.Fatalf("%s: there are only %d elements", args[1], len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("%s: %v has no members", args[1], at)
		}
	}
	if s, ok := v.(string); ok {
		ts.Setenv(args[0], s)
		return
	}
	b, err := json.Marshal(v)
	ts.Check(err)
	ts.Setenv(args[0], string(b))
}

// patience is how long a test waits for something that is sure to happen.
const patience = 60 * time.Second

// workplace is a directory with agents and a state of its own.
type workplace struct {
	t       *testing.T
	dir     string
	env     []string
	program string // the path of raddle: see programOf
}

// newWorkplace unpacks an archive.
func newWorkplace(t *testing.T, archive string) *workplace {
	t.Helper()
	w := &workplace{t: t, dir: t.TempDir(), program: programOf(t)}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		w.write(f.Name, string(f.Data))
	}
	w.env = append(surroundings(w.dir), "PATH="+os.Getenv("PATH"), "NO_MOTION=1")
	return w
}

func (w *workplace) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// newReleasedWorkplace unpacks an archive for a test that starts raddle hundreds of times: it starts the released program also in long runs.
func newReleasedWorkplace(t *testing.T, archive string) *workplace {
	t.Helper()
	w := newWorkplace(t, archive)
	w.program = clienttest.BuildRaddle(t)
	return w
}

// command returns raddle as a child process.
func (w *workplace) command(args ...string) *exec.Cmd {
	w.t.Helper()
	return &exec.Cmd{Path: w.program, Args: append([]string{"raddle"}, args...), Dir: w.dir, Env: w.env}
}

// A result is what a process left.
type result struct {
	out, err string
	code     int
}

func (w *workplace) run(args ...string) result {
	w.t.Helper()
	cmd := w.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// runs returns the runs in the store.
func (w *workplace) runs() (list []struct{ Run, Status string }) {
	w.t.Helper()
	r := w.run("runs", "ls", "--output", "json")
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		w.t.Fatalf("runs ls: %v: %s%s", err, r.out, r.err)
	}
	return list
}

// read returns the text of a file, or "" if it does not exist.
func (w *workplace) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// wait fails a test that would hang.
func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done:
		return cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatalf("%s has not ended", strings.Join(cmd.Args, " "))
	}
	return -1
}

// A console collects what a process writes while it runs.
type console struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // closed and replaced with every write
}

func newConsole() *console { return &console{more: make(chan struct{})} }

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(p)
	close(c.more)
	c.more = make(chan struct{})
	return len(p), nil
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// await blocks until the process has written a text after what was there before.
func (c *console) await(t *testing.T, text string) {
	t.Helper()
	c.until(t, text, func(all string) bool { return strings.Contains(all, text) })
}

// until blocks until the output of the process fulfils a condition.
func (c *console) until(t *testing.T, what string, met func(all string) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		all, more := c.text.String(), c.more
		c.mu.Unlock()
		if met(all) {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%q was not written; but this was:\n%s", what, all)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// The reference files have no findings, and run as they are.
func TestReferenceFilesRun(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	w := newWorkplace(t, "")
	if err := os.CopyFS(filepath.Join(w.dir, "reference"), os.DirFS("../../../examples/reference")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("check", "--strict", "reference/graph", "reference/agent"); r.code != 0 || r.out != "graph: ok\nagent: ok\n" {
		t.Error(r)
	}
	for _, test := range []struct{ out, args string }{
		{"A bowline holds, and opens.\n", "reference/graph|Which knot holds?|--answer|yes"},
		{"Take a bowline.\n", "reference/agent|About knots?"},
	} {
		if r := w.run(append([]string{"run", "-q"}, strings.Split(test.args, "|")...)...); r.code != 0 || r.out != test.out {
			t.Error(test.args, r)
		}
	}
}

// Every event that the engine and the nodes can send has its place in the
// published schema, with all its members.
func TestEventsConform(t *testing.T) {
	schema, err := strictSchema("events")
	if err != nil {
		t.Fatal(err)
	}
	q := graph.Question{ID: "a", Node: "a", Kind: "select", Prompt: "?", Options: []string{"x"}, Free: true, Default: "x", Type: "string", Data: json.RawMessage(`{"a":1}`)}
	used := llm.Usage{Input: 1, Output: 2, Cached: 3, Reasoning: 4, Written: 5}
	said := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "t", Extra: json.RawMessage(`{}`), Origin: "o"}, llm.Image{MIME: "m", Data: []byte("d"), URL: "u"}, llm.File{Name: "n", MIME: "m", Data: []byte("d"), URL: "u"},
		llm.Reasoning{Text: "t", Signature: "s", Redacted: true, Origin: "o", Extra: json.RawMessage(`{}`)},
		llm.ToolCall{ID: "i", Name: "n", Args: json.RawMessage(`{}`), Signature: "s", Origin: "o", Extra: json.RawMessage(`{}`)}, llm.Item{Kind: "k", Text: "t", Raw: json.RawMessage(`{}`), Origin: "o"}}}
	result := llm.ToolResult{CallID: "i", Name: "n", Content: []llm.Part{llm.Text{Text: "t"}}, Error: true}
	bodies := []graph.Body{
		graph.RunStarted{Graph: "g", Label: "l", Resumed: true},
		graph.TaskStarted{Kind: "llm"},
		graph.TaskRetry{Attempt: 1, MaxAttempts: 2, After: time.Second, Err: errors.New("x")},
		graph.TaskDone{Err: errors.New("x"), Took: time.Second, Attempts: 2, Recorded: true, Waiting: true, Failed: true, Cached: true},
		graph.StepCommitted{Nodes: []string{"a"}, Keys: []string{"k"}, Next: []string{"b"}, Moves: []graph.Move{{From: "a", To: []string{"b"}}, {From: "c"}}, Dropped: []string{"d"}, Halted: true},
		graph.StepCommitted{},
		graph.QuestionAsked{Question: q},
		graph.QuestionAnswered{ID: "a", Ahead: true, Refused: "no"},
		graph.RunEnded{Result: graph.Result{Status: graph.Done, Value: map[string]any{"output": "x", "exit_code": 70}, Steps: 1}},
		graph.RunEnded{Result: graph.Result{Status: graph.Waiting, Questions: []graph.Question{q}, Breaks: []graph.Break{{Node: "a", After: true}}, Err: errors.New("x")}},
	}
	for _, v := range []any{
		flow.ModelCall{Model: "m", Active: true, Tools: []string{"t"}}, flow.ModelCall{},
		flow.ScriptRun{Script: "s"}, flow.KeysMerged{Keys: []string{"k"}}, flow.ScriptNext{Node: "n"}, flow.NodeFailed{Reason: "r"}, flow.ChildSpawned{Agent: "a", Prompt: "p"},
		flow.ExtractionStarted{Repair: true}, flow.ExtractionStarted{},
		agent.TextDelta{Text: "t"}, agent.ReasoningDelta{Text: "t"}, agent.ReplyDone{Message: said, Model: "m", Usage: used, Stop: llm.StopTools, Cost: 1.5, Priced: true},
		agent.ReplyDone{Message: llm.Message{Role: llm.RoleTool, Parts: []llm.Part{result}}}, agent.ReplyDone{Message: llm.Message{Role: llm.RoleAssistant}},
		agent.ToolStarted{ID: "i", Name: "n", Args: json.RawMessage(`{"a":1}`)}, agent.ToolProgress{ID: "i", Name: "n", Text: "t"}, agent.ToolOutput{ID: "i", Name: "n", Text: "t"}, agent.ServerStarting{Server: "s", Over: true}, agent.ToolDone{ID: "i", Name: "n", Text: "t", Error: true, Took: time.Second},
		agent.WindowShortened{Messages: 1, Tokens: 2, Limit: 3, Summary: true}, agent.SummaryDone{Model: "m", Usage: used}, agent.SpendReport{Spend: agent.Spend{Calls: 1, ToolCalls: 2, Usage: used, Money: 1.5, Unpriced: 1}},
		team.AgentStarted{ID: "i", Agent: "a", Parent: "lead", Task: "1", Purpose: "p", Resumed: true}, team.AgentStarted{}, team.AgentQueued{ID: "i", Agent: "a", Parent: "lead", Purpose: "p"}, team.AgentQueued{},
		team.AgentEnded{ID: "i", Agent: "a", Status: "failed", Error: "x", Spent: agent.Spend{Calls: 1, ToolCalls: 2, Usage: used, Money: 1.5, Unpriced: 1}},
		team.AgentEnded{Status: "completed"}, team.AgentEnded{Status: "cancelled"}, team.TaskWaiting{ID: "1", Subject: "s", Agent: "a", Parent: "lead"},
		agent.RetryScheduled{Reason: "rate limited", Wait: time.Second, Request: 2}, agent.SpendReport{}, agent.ContinuationSent{Count: 1, Max: 2, Open: 3}, agent.Warning{Text: "w"},
	} {
		bodies = append(bodies, graph.ValueEmitted{Value: v})
	}
	for s := graph.Done; s < graph.Crashed; s++ {
		bodies = append(bodies, graph.RunEnded{Result: graph.Result{Status: s}})
	}
	for _, body := range bodies {
		ev := graph.Event{Seq: 1, Time: time.Now(), Thread: "t", Run: "r", Path: "p/", Step: 1, Task: "1.a.0", Node: "a", Body: body}
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s\n%v", b, err)
		}
	}
}

// BenchmarkColdStart measures the time that a command takes from its start to its end,
// in a program built as it is released. The goal for check is 50 ms.
func BenchmarkColdStart(b *testing.B) {
	exe := filepath.Join(b.TempDir(), "raddle")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", exe, "raddle.dev/cmd/raddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"check", "../../../examples/hello"},
		{"run", "-q", "../../../examples/hello", "x"},
		{"version"},
	} {
		b.Run(args[0], func(b *testing.B) {
			env := append(surroundings(b.TempDir()), "PATH="+os.Getenv("PATH"))
			for b.Loop() {
				cmd := exec.Command(exe, args...)
				cmd.Env = env
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
		})
	}
}
