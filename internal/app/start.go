package app

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/tempdir"
	"raddle.dev/internal/wording"
)

// Request is what starts a run. Only Agent is required.
type Request struct {
	Agent     string // name or path
	Prompt    string // complete, with the text of Files
	Files     []string
	Headless  bool              // nobody will ever be asked: models are told so
	Model     string            // in place of every model of the agent and its children
	Variables map[string]string // agent variables
	Session   string            // to continue or begin; "temp": none; "": as the agent says. Refused for graphs, in their words
	Strict    bool              // unknown keys are errors
	Surroundings
}

// Run is a run that this process may drive, and no other as long as it is not
// closed.
type Run struct {
	ID        string
	Thread    string // of its session; else the run's own, named like it
	Agent     *flow.Agent
	Record    *Record
	Resumed   bool
	Kept      bool             // the run outlives this process
	Questions []graph.Question // open when it was resumed

	runner   *graph.Runner
	lock     *runLock
	input    graph.Input // of a run that has not begun
	accept   bool
	takeover bool
	moved    string       // where the caller said that the agent is now
	status   graph.Status // before it was resumed
}

// Again is the command that resumes the run as it was resumed now: what the caller
// consented to is not recorded.
func (r *Run) Again() string {
	line := "raddle resume " + r.ID
	if r.moved != "" {
		line += " --agent " + r.moved
	}
	if r.accept {
		line += " --accept-changes"
	}
	return line
}

// Start prepares a new run: it loads the agent, compiles it, and takes the run's
// lock. Nothing is recorded and no model is called before [Run.Drive].
func (p *Process) Start(req Request) (*Run, error) {
	if err := p.Dirs.requireWork(); err != nil {
		return nil, err
	}
	place, err := p.Find(req.Agent)
	if err != nil {
		return nil, err
	}
	id := graph.NewID(time.Now())
	run := &Run{ID: id, Thread: id, Record: p.record(place, req)}
	if err := p.checkModels(run.Record); err != nil {
		return nil, err
	}
	if err := p.prepare(run, req); err != nil {
		run.Close()
		return nil, err
	}
	return run, nil
}

// prepare loads a run's agent, in a session with what its earlier turns have left.
func (p *Process) prepare(run *Run, req Request) error {
	host, err := p.enter(run, req)
	if err != nil {
		return err
	}
	thread, err := p.session(run.Agent, req.Session)
	if err != nil {
		return err
	}
	if thread != "" {
		run.Thread = thread
		if req.recorded, err = p.join(run); err != nil {
			return err
		}
		if host, err = p.enter(run, req); err != nil {
			return err
		}
	}
	g, err := compile(run.Agent, host)
	if err != nil {
		return err
	}
	if err := p.Callable(run.Agent); err != nil {
		return err
	}
	run.Record.Sources, run.Record.Definition = run.Agent.Sources(), run.Agent.Definition()
	run.input = run.Agent.Input(req.Prompt)
	run.Record.Prompt = run.Agent.Redact(req.Prompt)
	if run.input.Meta, err = p.encode(run.Record); err != nil {
		return err
	}
	return p.take(run, g)
}

// enter loads a run's agent and notes which variables of the environment it takes.
func (p *Process) enter(run *Run, req Request) (flow.Host, error) {
	run.Record.Overrides = nil
	host, err := p.host(run.Record, req.Surroundings)
	if err != nil {
		return host, err
	}
	host.Session = req.Session
	found := map[string]string{}
	host.Getenv = func(name string) string {
		value, set := p.env.lookup(name)
		if set {
			found[name] = value
		}
		return value
	}
	run.Agent, err = p.admit(host, run.Record)
	run.Record.Overrides = found
	return host, err
}

// take gives a run its store and its lock.
func (p *Process) take(run *Run, g *graph.Graph) error {
	st, err := p.open()
	if err != nil {
		return err
	}
	run.Kept = st.file != ""
	run.runner = p.runner(g, st)
	if run.lock == nil {
		run.lock, err = lockRun(st.locks(), run.Thread)
	}
	return err
}

func (p *Process) record(place Place, req Request) *Record {
	return &Record{
		Agent: place.Name, Dir: place.Dir, Prompt: req.Prompt, Files: req.Files,
		Model: p.Config.Model, Override: p.override(req.Model), Variables: req.Variables,
		Temperature: p.Config.Temperature, TopP: p.Config.TopP,
		NoSpawn: p.Config.FunctionCalling != nil && !*p.Config.FunctionCalling,
		Strict:  req.Strict, Headless: req.Headless, Workspace: p.Dirs.Work, Version: Version(),
	}
}

// override is a model that the caller named. The path of a transcript means the
// working directory if there is such a file, else the agent's directory.
func (p *Process) override(id string) string {
	if file, ok := strings.CutPrefix(id, "script:"); ok && !filepath.IsAbs(file) {
		if abs := p.Dirs.Abs(file); isFile(abs) {
			return "script:" + abs
		}
	}
	return id
}

// admit loads the agent of a request and holds the request against it.
func (p *Process) admit(host flow.Host, rec *Record) (*flow.Agent, error) {
	agent, err := flow.Load(rec.Dir, host)
	if err != nil && host.Session != "" {
		host.Session = ""
		if _, other := flow.Load(rec.Dir, host); other == nil {
			return nil, &Error{Kind: Usage, Err: err} // the session is all that is wrong
		}
	}
	if err != nil {
		return nil, err
	}
	return agent, checkVariables(agent, rec.Variables)
}

// compile makes a loaded agent ready to run.
func compile(a *flow.Agent, host flow.Host) (*graph.Graph, error) {
	if host.Strict && flow.HasErrors(a.Findings) {
		return nil, &StrictError{Agent: a.Name, Findings: a.Findings}
	}
	return a.Graph()
}

// StrictError is an agent that could run, but was asked for strictly.
type StrictError struct {
	Agent    string
	Findings []flow.Finding
}

func (e *StrictError) Error() string {
	return "agent '" + e.Agent + "' has faults, and it was to be held to the letter"
}

// checkVariables refuses variables that the agent does not declare.
func checkVariables(a *flow.Agent, given map[string]string) error {
	var declared []string
	for _, v := range a.Variables() {
		declared = append(declared, v.Name)
	}
	var names []string
	for name := range given {
		if !slices.Contains(declared, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	next := wording.SuggestNearest(names[0], declared, "")
	switch {
	case next != "":
	case declared == nil:
		next = "it declares none"
	default:
		next = "it declares " + strings.Join(declared, ", ")
	}
	return usage(next, "agent '%s' has no variable %q", a.Name, names[0])
}

// Close gives the run back, so that others may drive it.
func (r *Run) Close() {
	if r.Agent != nil {
		_ = r.Agent.Close() // only readers are left
	}
	if r.lock != nil {
		r.lock.release()
	}
}

// Ask answers open questions, in the order in which they were asked; those that
// it leaves out stay open. It returns park to stop once the answers it gave are
// used. ctx ends when the run is to stop.
type Ask func(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error)

// Driver is who takes part in a drive. The zero value lets a run go on until it
// ends or asks.
type Driver struct {
	Ahead  []graph.Answer       // answers to questions that a new run will ask; they are recorded with its start
	Reply  graph.Reply          // answers questions when they are asked, before Ask; nil: nobody does
	Ask    Ask                  // nil: questions stay open
	Event  func(ev graph.Event) // nil: nobody looks
	Topics graph.Topic          // the events to build
	Pause  <-chan struct{}      // closing it stops the run after the step under way
}

// Drive works on the run until it ends, is paused, or waits for somebody. The
// error is the one that [graph.Runner.Run] ends with, in the words of the file
// format.
func (r *Run) Drive(ctx context.Context, d Driver) (graph.Result, error) {
	tempdir.RemoveStale()
	if err := r.Agent.Prepare(ctx); err != nil {
		return graph.Result{Run: r.ID, Status: r.status}, &Error{Kind: Invalid, Err: err}
	}
	res := graph.Result{Run: r.ID, Thread: r.Thread, Status: r.status, Questions: r.Questions}
	if !r.Resumed {
		in := r.input
		in.Run, in.Thread, in.Ahead, in.Reply, in.Topics, in.Pause = r.ID, r.Thread, r.redacted(d.Ahead), r.reply(d.Reply), d.Topics, d.Pause
		var err error
		if res, err = r.follow(d, func() eventSeq { return r.runner.Run(ctx, in) }); err != nil {
			return res, err
		}
	} else if res.Status != graph.Waiting {
		var err error
		if res, err = r.resume(ctx, d, nil); err != nil {
			return res, err
		}
	}
	for res.Status == graph.Waiting && d.Ask != nil {
		answers, park, err := d.Ask(ctx, res.Questions)
		if err != nil || len(answers) == 0 {
			return res, err
		}
		if park {
			d.Ask = nil
		}
		if res, err = r.resume(ctx, d, answers); err != nil {
			return res, err
		}
	}
	return res, nil
}

// runner is what drives runs of a graph in a store.
func (p *Process) runner(g *graph.Graph, st *journals) *graph.Runner {
	return &graph.Runner{Graph: g, Store: st.Store, MaxState: max(0, cmp.Or(p.Config.MaxState, 64<<20))}
}
