// Package testrun runs the test cases of agents, through internal/process/app as every other run. [Runner.RunCase] runs
// one case and compares what it did with what is expected; [Setup] lets a caller read its events, or run it in another
// store and more than once.
//
// A [Trial] is one run of a case: [Runner.Open] makes its scratch directory, its process and what answers for models,
// tools and nodes; [Trial.Drive] starts the run, and continues it if it is called again; [Trial.Result] compares. What
// was answered is remembered by effect, so that a drive that repeats an effect after a crash gets the same answer
// again.
//
// Nothing is written outside of the scratch directory, no provider is called, and no key is read.
package testrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// Runner runs cases. The zero value works. It is safe for concurrent use.
type Runner struct {
	Environ []string // of the process; nil: that of this process. Keys of providers are left out
	Temp    string   // where scratch directories are made; empty: the system's temporary directory

	mu       sync.Mutex
	children map[string][]string // directories of the agents below an agent, by its directory
}

// Setup says how a case is run. The zero value runs it once, in memory.
type Setup struct {
	Store string // URL; empty: in memory

	// Loaded is called with the agent before it runs. Event is called for each event of each drive, with all topics,
	// and Answered for each answer that the case gives. All may be nil.
	Loaded   func(*flow.Agent)
	Event    func(graph.Event)
	Answered func(q graph.Question, answer any)

	Journal func(journal.Store) journal.Store // returns the store that drives write to; nil: that of the process

	Adjust func(*flow.Host) // called after the answers of the case are in place; nil: nothing is changed

	// Drive replaces the one call of Trial.Drive. It may stop the run and call Trial.Drive again; nil: it is called
	// once.
	Drive func(ctx context.Context, t *Trial) (graph.Result, error)
}

// RunCase runs a case, and compares what it did with what is expected. The error says why it could not run at all, for
// example because its scratch directory cannot be made; a case whose agent or stubs are wrong has failures.
func (r *Runner) RunCase(ctx context.Context, c *testcase.Case, s Setup) (*Result, error) {
	began := time.Now()
	t, err := r.Open(c, s)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if len(t.faults) == 0 {
		drive := s.Drive
		if drive == nil {
			drive = func(ctx context.Context, t *Trial) (graph.Result, error) { return t.Drive(ctx) }
		}
		t.end, t.err = drive(ctx, t)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	res := t.Result()
	res.Took = time.Since(began)
	return res, nil
}

// Trial is one run of a case.
type Trial struct {
	Case    *testcase.Case
	Scratch string // its directory
	RunID   string // of the run; empty before the first drive

	remove  func() // removes the scratch directory; nil: there is none
	setup   Setup
	runner  *Runner
	agent   string // the copy of the agent's directory
	loaded  *flow.Agent
	process *app.Process
	stubs   *stubs
	seen    *observation
	clock   *Clock
	faults  []testcase.Failure // why the case cannot run
	end     graph.Result
	err     error
}

// Open prepares a case to run. The caller must close the trial.
func (r *Runner) Open(c *testcase.Case, s Setup) (*Trial, error) {
	t := &Trial{Case: c, setup: s, runner: r, seen: newObservation(), clock: NewClock()}
	if err := t.prepare(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Trial) prepare() (err error) {
	if t.runner.Temp == "" {
		t.Scratch, t.remove, err = tempdir.New("test-") // the next process removes it if this one is killed
	} else if t.Scratch, err = os.MkdirTemp(t.runner.Temp, "raddle-test-"); err == nil {
		scratch := t.Scratch
		t.remove = func() { _ = os.RemoveAll(scratch) }
	}
	if err != nil {
		return err
	}
	if t.Scratch, err = filepath.EvalSymlinks(t.Scratch); err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Dir(t.Case.Pos.File))
	if err != nil {
		return err
	}
	t.agent = filepath.Join(t.Scratch, agentsDir, filepath.Base(dir))
	others, err := t.runner.listChildren(dir, t.Scratch)
	if err != nil {
		t.addFault(err)
		return nil
	}
	if err := copyAgents(append([]string{dir}, others...), filepath.Join(t.Scratch, agentsDir)); err != nil {
		return err
	}
	if t.process, err = t.runner.openProcess(t.Scratch, t.agent, t.setup.Store); err != nil {
		return err
	}
	t.loaded, err = t.load()
	if err != nil {
		t.addFault(err)
		return nil
	}
	if err := t.loaded.ValidationFailure(); err != nil {
		t.addFault(err)
		return nil
	}
	names := newNaming(t.loaded)
	t.stubs = newStubs(t.Case, names, t.process.Models.UsageCost)
	t.seen.names = names
	t.faults = names.checkCase(t.Case)
	if t.setup.Loaded != nil && len(t.faults) == 0 {
		t.setup.Loaded(t.loaded)
	}
	return nil
}

// addFault records why the case cannot run: each error of the agent's files with its place, or the error as it is.
func (t *Trial) addFault(err error) {
	var load *flow.LoadError
	var refused *spec.ValidationError
	var found []strictyaml.Finding
	switch {
	case errors.As(err, &load):
		found = load.Findings
	case errors.As(err, &refused):
		found = refused.Findings
	}
	for _, f := range found {
		if f.Severity == strictyaml.SeverityError {
			f.Pos.File = t.cleanText(f.Pos.File)
			text := f.Text()
			if hint := cmp.Or(f.Hint, f.Fix); hint != "" {
				text += " (" + hint + ")"
			}
			t.faults = append(t.faults, testcase.Failure{Pos: f.Pos, What: "agent", Message: t.cleanText(text)})
		}
	}
	if len(found) == 0 {
		t.faults = append(t.faults, testcase.Failure{Pos: t.Case.Pos, What: "agent", Message: t.cleanText(err.Error())})
	}
}

// cleanText returns a text with the directory of the user instead of its copy.
func (t *Trial) cleanText(text string) string {
	return strings.ReplaceAll(text, t.agent, filepath.Dir(t.Case.Pos.File))
}

// load loads the agent without running it.
func (t *Trial) load() (*flow.Agent, error) {
	return t.process.Load(app.LoadRequest{Agent: t.agent, Model: "", Variables: t.variables()})
}

func (t *Trial) variables() map[string]string {
	given := map[string]string{}
	for _, v := range t.Case.Variables {
		given[v.Key] = v.Value
	}
	return given
}

// Drive starts the run of the case, or continues the one that an earlier drive has started. As long as it waits for a
// time that comes within that of the case, the time passes at once, and the run continues.
func (t *Trial) Drive(ctx context.Context) (graph.Result, error) {
	t.stubs.beginDrive()
	hooks := app.UIHooks{Mode: permission.NewModeSwitch(permission.ModeEdits), Adjust: t.adjustHost, Journal: t.setup.Journal, Clock: t.clock}
	var run *app.Run
	var err error
	if t.RunID == "" {
		session := ""
		if t.loaded.File == nil {
			session = "temp"
		}
		run, err = t.process.StartRun(app.Request{Agent: t.agent, Prompt: t.Case.Prompt, Variables: t.variables(), Session: session, State: t.Case.State, UIHooks: hooks})
	} else {
		run, err = t.process.ResumeRun(ctx, t.RunID, app.ResumeOptions{UIHooks: hooks})
	}
	if err != nil {
		return graph.Result{Status: graph.Failed}, err
	}
	defer run.Close()
	t.RunID = run.ID
	return run.Drive(ctx, app.Driver{Reply: t.answer, Event: t.observe, Topics: graph.AllTopics, Wake: t.wake})
}

// wake lets the time come that the run waits for, if it comes within that of the case.
func (t *Trial) wake(parked graph.Result) bool {
	if t.clock.MeasureWait(parked.Due) > t.Case.Passes() {
		return false
	}
	t.clock.JumpTo(parked.Due)
	return true
}

// readEnd returns how the run has ended, from its journal, without its state.
func (t *Trial) readEnd(ctx context.Context) (graph.Result, error) {
	d, err := t.process.Runs.ReadRunDetail(ctx, t.RunID)
	if err != nil {
		return graph.Result{Status: graph.Failed}, err
	}
	return graph.Result{Run: t.RunID, Status: d.Snapshot.Status, Value: d.Snapshot.Result}, nil
}

// Reopen replaces the process of the trial, as after a crash: the next drive has a new connection to the store.
func (t *Trial) Reopen() (err error) {
	_ = t.process.Close()
	t.process, err = t.runner.openProcess(t.Scratch, t.agent, t.setup.Store)
	return err
}

// answer answers a question as the case says.
func (t *Trial) answer(q graph.Question) (any, bool) {
	v, ok := t.stubs.answer(q)
	v = decodeEvent(q, v)
	if !ok && q.Kind == agent.KindDoubt {
		return string(tool.DoubtRetry), true // only a crash asks this
	}
	if ok && t.setup.Answered != nil {
		t.setup.Answered(q, v)
	}
	return v, ok
}

func (t *Trial) observe(ev graph.Event) {
	t.seen.add(ev)
	if t.setup.Event != nil {
		t.setup.Event(ev)
	}
}

// adjustHost puts what answers for the case around what an agent uses.
func (t *Trial) adjustHost(h *flow.Host) {
	t.stubs.adjustHost(h)
	if t.setup.Adjust != nil {
		t.setup.Adjust(h)
	}
}

// Close ends the processes of the trial and removes its scratch directory.
func (t *Trial) Close() {
	if t.process != nil {
		_ = t.process.Close()
	}
	if t.remove != nil {
		t.remove()
	}
}

// openProcess opens a process whose state, cache and home are in a scratch directory. Configuration, agents and
// functions of the user are read from where they are.
func (r *Runner) openProcess(scratch, work, store string) (*app.Process, error) {
	env := r.Environ
	if env == nil {
		env = os.Environ()
	}
	plain, err := app.Open(app.Options{Environ: env, Work: work, Store: "memory:"})
	if plain == nil || err != nil {
		return nil, err
	}
	dirs := plain.Dirs
	_ = plain.Close()
	own := map[string]string{
		"HOME": filepath.Join(scratch, "home"), "TMPDIR": filepath.Join(scratch, "tmp"), "XDG_STATE_HOME": filepath.Join(scratch, "state"), "XDG_CACHE_HOME": filepath.Join(scratch, "cache"),
		"RADDLE_CONFIG_DIR": dirs.Config, "RADDLE_FUNCTIONS_DIR": dirs.Functions, "OTEL_SDK_DISABLED": "true",
	}
	for _, name := range []string{"HOME", "TMPDIR"} {
		if err := os.MkdirAll(own[name], 0o700); err != nil {
			return nil, err
		}
	}
	env = slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := environ.SplitPair(pair)
		name = environ.FoldName(name)
		_, replaced := own[name]
		return replaced || strings.HasSuffix(name, "_API_KEY") || name == "RADDLE_STORE"
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	store = cmp.Or(store, "memory:")
	p, err := app.Open(app.Options{Environ: env, Work: work, Store: store})
	if err != nil {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
		return nil, fmt.Errorf("the configuration cannot be used: %w", err)
	}
	p.Tools.Embedder = nil // nothing is sent
	return p, nil
}
