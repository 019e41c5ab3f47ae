package flow_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	replay "raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/script"
)

// transcripts opens the models that the examples name, and counts their calls.
type transcripts struct {
	mu    sync.Mutex
	calls map[string]int // by prompt and length of the conversation
}

func (*transcripts) IsKnown(_, id string) bool            { return strings.HasPrefix(id, "script:") }
func (*transcripts) Facts(string, string) flow.ModelFacts { return flow.ModelFacts{} }

func (c *transcripts) Open(_ context.Context, dir, id string) (llm.Model, error) {
	m, err := replay.Open(filepath.Join(dir, strings.TrimPrefix(id, "script:")))
	return formatCount{m, c}, err
}

type formatCount struct {
	llm.Model
	c *transcripts
}

func (m formatCount) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	m.c.mu.Lock()
	m.c.calls[fmt.Sprint(len(r.Messages), " ", r.Messages[0].Text())]++
	m.c.mu.Unlock()
	return m.Model.Stream(ctx, r)
}

// exampleTools are the tools of an example: its own script's and those that the
// program brings along, in the repository's directory.
type exampleTools struct{ root string }

// Open implements flow.Toolbox.
func (b exampleTools) Open(n flow.ToolNeed) (*flow.Toolset, error) {
	set := &flow.Toolset{}
	for _, name := range n.Global {
		t, ok := builtin.Lookup(name, builtin.Host{Workspace: b.root})
		if !ok {
			return nil, fmt.Errorf("there is no tool %s", name)
		}
		set.Tools = append(set.Tools, t)
	}
	h := &script.Host{Workspace: b.root, Env: os.Environ(), Agent: &script.Agent{Name: n.Agent, Dir: n.Dir, Variables: n.Variables}}
	own, problems := h.OwnTools()
	for _, p := range problems {
		set.Problems = append(set.Problems, flow.ToolProblem{Text: p.String()})
	}
	set.Tools = append(set.Tools, own...)
	return set, nil
}

// exampleHost is what the examples run in.
func exampleHost(t *testing.T, models *transcripts) flow.Host {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return flow.Host{Models: models, Workspace: root, Tooling: flow.Tooling{Box: exampleTools{root}}}
}

// inOrder runs one task after the other.
type inOrder struct{}

func (inOrder) Execute(n, _ int, task func(int)) {
	for i := range n {
		task(i)
	}
}

// An exampleRun drives an example in one process after another.
type exampleRun struct {
	t      *testing.T
	dir    string
	models *transcripts
	clock  *graphtest.Clock
}

// newExampleRun returns a run of the example in a directory.
func newExampleRun(t *testing.T, dir string) *exampleRun {
	return &exampleRun{t, dir, &transcripts{calls: map[string]int{}}, &graphtest.Clock{}}
}

func (r *exampleRun) runner(st journal.Store) (*graph.Runner, *flow.Agent) {
	r.t.Helper()
	a, err := flow.Load(r.dir, exampleHost(r.t, r.models))
	if err == nil {
		err = a.Prepare(r.t.Context())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			r.t.Error(err)
		}
	})
	g, err := a.CompileGraph()
	if err != nil {
		r.t.Fatal(err)
	}
	return &graph.Runner{Graph: g, Store: st, Executor: inOrder{}, Clock: r.clock}, a
}

// finish starts or resumes the run and answers what is asked: "yes" where that
// can be chosen, else the default. The times that it waits for come at once. ok is false when the store died.
func (r *exampleRun) finish(st journal.Store) (res graph.Result, ok bool) {
	r.t.Helper()
	runner, a := r.runner(st)
	ctx := r.t.Context()
	res, err := runner.InvokeResume(ctx, graph.Resume{Thread: "run"})
	if errors.Is(err, journal.ErrNoThread) {
		in := a.Input("hello")
		in.Thread = "run"
		res, err = runner.Invoke(ctx, in)
	}
	for err == nil && res.Status == graph.Waiting {
		in := graph.Resume{Thread: "run"}
		for _, q := range res.Questions {
			answer := q.Default
			if len(q.Options) > 0 {
				answer = q.Options[0]
			}
			in.Answers = append(in.Answers, graph.Answer{ID: q.ID, Value: answer})
		}
		if len(res.Questions) == 0 {
			_ = r.clock.Wait(ctx, res.Due.Sub(r.clock.Now())) // the context does not end
		}
		res, err = runner.InvokeResume(ctx, in)
	}
	if errors.Is(err, graphtest.ErrCrash) {
		return res, false
	}
	if err != nil {
		r.t.Fatal(a.Explain(err))
	}
	return res, true
}

// Every example is stopped after each of its records in turn and continues with a new engine on the reopened file: the same output, the
// same state, and of the calls that were made only the one whose reply had no record is made again.
func TestExamplesSurviveACrashAtEveryRecord(t *testing.T) {
	dirs, err := filepath.Glob("../examples/*/graph.yaml")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("%d examples, %v", len(dirs), err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			whole := newExampleRun(t, dir)
			count := &graphtest.Crash{Store: journal.NewMemory(), Limit: -1}
			want, _ := whole.finish(count)
			if flow.OutcomeOf(want).Output == "" {
				t.Fatal("no output")
			}
			for limit := range count.RecordCount() {
				crashExample(t, dir, limit, want)
			}
		})
	}
}

func crashExample(t *testing.T, dir string, limit int, want graph.Result) {
	t.Helper()
	r := newExampleRun(t, dir)
	path := filepath.Join(t.TempDir(), "runs.db")
	st := openStore(t, path)
	if _, ok := r.finish(&graphtest.Crash{Store: st, Limit: limit}); ok {
		t.Fatalf("crash after %d records: the run ended", limit)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = openStore(t, path)
	got, ok := r.finish(st)
	if err := st.Close(); err != nil || !ok {
		t.Fatalf("crash after %d records: %v", limit, err)
	}
	if g, w := flow.OutcomeOf(got), flow.OutcomeOf(want); g != w {
		t.Errorf("crash after %d records: outcome %+v, want %+v", limit, g, w)
	}
	if g, w := string(flow.StateJSON(got.State)), string(flow.StateJSON(want.State)); g != w {
		t.Errorf("crash after %d records: state\n%s\nwant\n%s", limit, g, w)
	}
	again := 0
	for prompt, n := range r.models.calls {
		if again += n - 1; n > 2 {
			t.Errorf("crash after %d records: %d calls for %q", limit, n, prompt)
		}
	}
	if again > 1 {
		t.Errorf("crash after %d records: %d calls were made again: %v", limit, again, r.models.calls)
	}
}

func openStore(t *testing.T, path string) journal.Store {
	t.Helper()
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// The examples are what the README promises: no warning, nothing that needs more
// than bash.
func TestExamplesAreCleanAndNeedBashOnly(t *testing.T) {
	files, err := filepath.Glob("../examples/*/graph.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		host := exampleHost(t, &transcripts{})
		host.Strict = true
		a, err := flow.Load(filepath.Dir(file), host)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Findings {
			t.Errorf("%s", f)
		}
		for _, s := range a.Sources() {
			if ext := filepath.Ext(s.Path); ext == ".py" || ext == ".ts" {
				t.Errorf("%s needs %s", file, s.Path)
			}
		}
		if _, err := os.Stat(filepath.Join(a.Dir, "transcript.yaml")); err != nil {
			t.Error(err)
		}
	}
}
