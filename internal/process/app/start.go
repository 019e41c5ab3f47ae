package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/telemetry"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/tool/builtin"
	"raddle.dev/tool/permission"
)

// Request says how to start a run. Only Agent is required.
type Request struct {
	Agent     string // name or path
	Prompt    string // complete, with the text of Files
	Files     []string
	Media     []llm.Part          // pictures and documents that are attached to the prompt
	Attached  []attach.Attachment // what they are, for people
	Headless  bool                // no person will ever be asked; models are informed of it
	Model     string              // replaces every model of the agent and its children
	Templates map[string]string   // replace templates of prompts, by node
	Variables map[string]string   // agent variables
	State     *jsonvalue.Object   // first values of a graph's state, in addition to those of its file; nil: none
	// Session is the one to continue or start; "temp": none; "": as the agent says. It is an error for graphs, in the
	// words of the file format.
	Session string
	// Transient says that the session need not outlive this process: it may be in a store that saves nothing.
	Transient bool
	Compact   bool          // summarize the conversation of the session, without a prompt
	Strict    bool          // unknown keys are errors
	Budget    *agent.Limits // of the run, in addition to what its agent says; nil: none
	Deadline  time.Duration // after which the run is ended, from its start, also while it waits; 0: never
	User      string        // for whom the run works; "": the user of the process
	ID        string        // of the run; "": a new one
	// Remote lets nodes with a queue wait for runs of their own, which the caller starts elsewhere: see
	// [Process.StartRemoteRun].
	Remote      bool
	TraceParent string // the span that asks for the run; "": that of the environment
	Via         string // what starts it, and for whom: as in runs.Record
	By          string
	// NeedAll makes a missing variable of a graph below the agent an error before the run, too: there is a person who
	// can set it.
	NeedAll bool
	UIHooks
}

// Attach adds files to a request with a prompt. name returns the name of a file for the start record, which does not
// name standard input.
func (r *Request) Attach(files []attach.File, name func(string) string) (err error) {
	r.Prompt, r.Media, err = attach.Join(r.Prompt, files)
	r.Attached = attach.DescribeFiles(files)
	for _, f := range files {
		if f.Name == attach.StandardInput {
			continue
		}
		if !attach.IsAddress(f.Name) {
			f.Name = name(f.Name)
		}
		r.Files = append(r.Files, f.Name)
	}
	return err
}

// Run is a run that only this process may drive until it is
// closed.
type Run struct {
	ID      string
	Thread  string // of its session; otherwise the run's own, with the same name
	Agent   *flow.Agent
	Record  *runs.Record
	Mode    *permission.ModeSwitch // each decision about a call reads it; it may change while the run works
	Resumed bool
	Kept    bool     // the run outlives this process
	Notices []string // lines for the person who watches it, about the files of its agent

	runner   *graph.Runner
	lock     *runs.Lock
	files    *agentFiles                 // from the store; nil: those of the agent's directory
	replies  []string                    // ids of the replies that the session had recorded before the run
	input    graph.Input                 // of a run that has not started
	publish  func(context.Context) error // writes the bundle of the agent of such a run; nil: there is none
	accept   bool
	accepted []byte // start record of a run that continues with changed files; nil: nothing has changed
	takeover bool
	given    givenInput
	moved    string // where the caller said that the agent is now
	parked
	reachable

	origin *runOrigin // of a run that came from elsewhere; nil: it was started here

	handle    graph.Handle         // of the drive that works
	jobs      *builtin.Jobs        // background commands of the process; nil: the run never works here
	telemetry *telemetry.Telemetry // nil: none
}

// reachable is what other processes reach of a run.
type reachable struct {
	process *Process               // that drives the run; nil: none does
	asking  atomic.Pointer[asking] // while Driver.Ask asks; nil: it does not
	waits   waitList               // for events
	sent    sentMessages           // to its agent
}

// parked is how a run stood before it was resumed.
type parked struct {
	Questions []graph.Question // that were open
	Timers    []graph.Question // for which it waited
	Due       time.Time        // when a run that waited is to be continued; zero: when it is answered
	status    graph.Status
}

// givenInput is what a caller gives a run that has not started, in addition to its prompt.
type givenInput struct {
	user  string
	state *jsonvalue.Object
	media []llm.Part
}

// ResumeCommand returns the command that resumes the run with the same flags: the journal does
// not record what the caller consented to.
func (r *Run) ResumeCommand() string {
	line := "raddle resume " + r.ID
	if r.moved != "" {
		line += " --agent " + r.moved
	}
	if r.accept {
		line += " --accept-changes"
	}
	if now := r.Mode.Mode(); string(now) != cmp.Or(r.Record.Mode, string(permission.ModeEdits)) {
		line += " --mode " + string(now)
	}
	return line
}

// StartRun prepares a new run: it loads the agent, compiles it, and takes the run's
// lock. It records nothing and calls no model; [Run.Drive] does.
func (p *Process) StartRun(req Request) (*Run, error) {
	if err := p.Dirs.RequireWork(); err != nil {
		return nil, err
	}
	place, err := p.FindAgent(req.Agent)
	if err != nil {
		return nil, err
	}
	req.Mode = cmp.Or(req.Mode, permission.NewModeSwitch(cmp.Or(p.Config.Mode, permission.ModeEdits)))
	id := cmp.Or(req.ID, graph.NewID(time.Now()))
	run := &Run{
		reachable: reachable{process: p},
		jobs:      p.Tools.Jobs,
		ID:        id,
		Thread:    id,
		Record:    p.newRecord(place, req),
		Mode:      req.Mode,
		given:     givenInput{user: cmp.Or(req.User, p.User)},
	}
	run.telemetry, _ = p.trace.openTelemetry()
	if p.chooseAdjust(req.UIHooks) == nil {
		if err := p.Models.CheckNames(run.Record.Dir, run.Record.Override, run.Record.Model); err != nil {
			return nil, err
		}
	}
	if err := p.prepareRun(run, req); err != nil {
		run.Close()
		return nil, err
	}
	return run, nil
}

// prepareRun loads a run's agent. In a session it loads the agent again if an earlier turn set variables that
// the request lacks: what is loaded depends on them.
func (p *Process) prepareRun(run *Run, req Request) error {
	req.recorded = func() ([]string, error) { return run.replies, nil }
	host, err := p.loadAgent(run, req)
	if err != nil {
		return err
	}
	thread, err := p.sessionThread(run.Agent, req.Session, req.Transient)
	if err != nil {
		return err
	}
	if thread != "" && run.Record.Parent == nil {
		run.Thread = thread
		given := run.Record.Variables
		if err := p.openSession(run); err != nil {
			return err
		}
		if !maps.Equal(given, run.Record.Variables) {
			_ = run.Agent.Close() // it has not run
			if host, err = p.loadAgent(run, req); err != nil {
				return err
			}
		}
	}
	g, err := compileGraph(run.Agent, host)
	if _, unset := errors.AsType[*flow.VariablesError](err); req.NeedAll && (err == nil || unset) {
		if missing := run.Agent.MissingVariables(); missing != nil {
			return &flow.VariablesError{Missing: missing}
		}
	}
	if err != nil {
		return err
	}
	if p.chooseAdjust(req.UIHooks) == nil && run.Record.Parent == nil {
		if err := p.Models.CheckCallable(run.Agent); err != nil {
			return err
		}
	}
	if len(req.Media) > 0 && !flow.TakesMedia(run.Agent) {
		return newMediaError(run.Agent)
	}
	run.given.state = req.State
	run.given.media = req.Media
	recordAgent(run.Record, run.Agent)
	if err := p.prepareBundle(run, host); err != nil {
		return err
	}
	if err := p.SetPrompt(run, req.Prompt); err != nil {
		return err
	}
	if req.Compact {
		meta := run.input.Meta
		run.input = run.Agent.CompactInput()
		run.input.Meta = meta
		run.input.User = run.given.user
		run.sent.close() // no model would see a message
	}
	return p.acquireStore(run, g, req.UIHooks)
}

// newMediaError reports a graph to which nothing can be attached.
func newMediaError(a *flow.Agent) error {
	return failure.NewUsage("write {{initial_prompt}} into the prompt of the llm node that shall see it",
		"agent '%s' takes no pictures or documents: they go to the nodes whose prompt has {{initial_prompt}}, and none has it", a.Name)
}

// SetPrompt replaces the prompt of a run that has not started.
func (p *Process) SetPrompt(run *Run, prompt string) (err error) {
	run.input = run.Agent.Input(prompt, run.given.media...)
	run.input.User = run.given.user
	run.input.Set = append(run.input.Set, flow.StateWrites(run.Agent, run.given.state)...)
	run.Record.Prompt = run.Agent.Redact(prompt)
	run.input.Meta, err = p.encodeRecord(run.Record)
	return err
}

// loadAgent loads a run's agent and records which variables of the environment it takes.
func (p *Process) loadAgent(run *Run, req Request) (flow.Host, error) {
	above := run.Record.Overrides // of the run that waits for this one
	run.Record.Overrides = nil
	host, err := p.newHost(run.Record, req.UIHooks)
	if err != nil {
		return host, err
	}
	host.Session = req.Session
	found := map[string]string{}
	host.Getenv = func(name string) string {
		value, set := above[name]
		if !set || run.Record.Parent == nil {
			value, set = p.env.Lookup(name)
		}
		if set {
			found[name] = value
		}
		return value
	}
	run.Agent, err = p.loadAndCheck(host, run.Record)
	if err == nil && run.Agent.Config != nil {
		for _, name := range flow.TextVariables { // a resumed run makes the same instructions
			host.Getenv(name)
		}
	}
	run.Record.Overrides = found
	return host, err
}

// acquireStore gives a run its store and its lock.
func (p *Process) acquireStore(run *Run, g *graph.Graph, s UIHooks) error {
	st, err := p.Runs.OpenStore()
	if err != nil {
		return err
	}
	run.Kept = st.Location.KeepsRuns()
	run.runner = p.newRunner(g, st, s)
	if run.lock == nil {
		run.lock, err = st.LockRun(run.Thread)
	}
	return err
}

func (p *Process) newRecord(place Place, req Request) *runs.Record {
	mode := string(req.Mode.Mode())
	if mode == string(permission.ModeEdits) {
		mode = ""
	}
	return &runs.Record{
		Mode:         mode,
		Agent:        place.Name,
		Dir:          place.Dir,
		Prompt:       req.Prompt,
		Files:        req.Files,
		Attached:     req.Attached,
		Model:        p.Config.Model,
		Override:     p.resolveOverride(req.Model),
		Templates:    req.Templates,
		Variables:    req.Variables,
		Temperature:  p.Config.Temperature,
		TopP:         p.Config.TopP,
		NoSpawn:      p.Config.FunctionCalling != nil && !*p.Config.FunctionCalling,
		Limits:       runs.Limits{Budget: req.Budget, Deadline: deadlineAfter(req.Deadline, req.Clock)},
		Strict:       req.Strict,
		Distribution: runs.Distribution{Remote: req.Remote},
		Headless:     req.Headless,
		Workspace:    p.Dirs.Work,
		Version:      Version(),
		Beginning:    runs.Beginning{TraceParent: p.trace.findParent(req.TraceParent), Via: req.Via, By: req.By},
	}
}

// resolveOverride returns the id of a model that the caller named. The path of a transcript is
// relative to the working directory if such a file exists, otherwise to the agent's directory.
func (p *Process) resolveOverride(id string) string {
	if list := flow.SplitModels(id); len(list) > 1 {
		for i, one := range list {
			list[i] = p.resolveOverride(one)
		}
		return strings.Join(list, ",")
	}
	if file, ok := strings.CutPrefix(id, "script:"); ok && !filepath.IsAbs(file) {
		if abs := p.Dirs.AbsPath(file); config.IsFile(abs) {
			return "script:" + abs
		}
	}
	return id
}

// loadAndCheck loads the agent of a request and checks the request against it.
func (p *Process) loadAndCheck(host flow.Host, rec *runs.Record) (*flow.Agent, error) {
	agent, err := flow.Load(rec.Dir, host)
	if err != nil && host.Session != "" {
		host.Session = ""
		if _, other := flow.Load(rec.Dir, host); other == nil {
			return nil, &failure.Error{Kind: failure.Usage, Err: err} // only the session is wrong
		}
	}
	if err != nil {
		return nil, err
	}
	if rec.Parent != nil { // variables are those of all agents of the run above
		return agent, nil
	}
	return agent, checkVariables(agent, rec.Variables)
}

// compileGraph prepares a loaded agent to run.
func compileGraph(a *flow.Agent, host flow.Host) (*graph.Graph, error) {
	if host.Strict && strictyaml.HasErrors(a.Findings) {
		return nil, &StrictError{Agent: a.Name, Findings: a.Findings}
	}
	return a.CompileGraph()
}

// StrictError reports an agent that could run, but not in strict mode.
type StrictError struct {
	Agent    string
	Findings []strictyaml.Finding
}

func (e *StrictError) Error() string {
	return "agent '" + e.Agent + "' has errors in strict mode"
}

// checkVariables returns an error for variables that the agent does not declare.
func checkVariables(a *flow.Agent, given map[string]string) error {
	var declared []string
	for _, each := range a.Agents() {
		for _, v := range each.Variables() {
			if !slices.Contains(declared, v.Name) {
				declared = append(declared, v.Name)
			}
		}
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
	return failure.NewUsage(next, "agent '%s' has no variable %q", a.Name, names[0])
}

// Close releases the run, so that other processes may drive it.
func (r *Run) Close() {
	if r.Agent != nil {
		_ = r.Agent.Close() // only readers remain
	}
	if r.lock != nil {
		r.lock.Release()
	}
}

// AskFunc answers open questions, in the order in which they were asked; those that
// it leaves out stay open. It returns park to stop as soon as its answers are
// used. ctx ends when the run is to stop.
type AskFunc func(ctx context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error)

// Driver says how a caller takes part in a drive. With the zero value a run continues
// until it ends or asks.
type Driver struct {
	Ahead []graph.Answer // answers to questions that a new run will ask; they are recorded with its start
	Begin []graph.Answer // answers to open questions of a resumed run, with which the drive begins
	// Recorded is called once, when what the drive begins with is in the store: the start with Ahead, or Begin.
	// Everything up to the place is recorded. It is not called if the drive ends before; it may be nil. Topics must
	// have [graph.TopicRun].
	Recorded func(at runs.Point)

	Reply graph.Reply // answers questions when they are asked, before Ask; may be nil
	Ask   AskFunc     // if nil, questions stay open
	// Wake is called when the run waits for a time and no question is answered. It returns true when that time has
	// come by the clock of the run: then the run continues. If nil, the run stays parked.
	Wake   func(parked graph.Result) bool
	Event  func(ev graph.Event) // called for each event; may be nil
	Topics graph.Topic          // the events to create
	Pause  <-chan struct{}      // closing it stops the run after the current step
	Break  []graph.Break        // where the run stops, as in [graph.Input]
	// Interrupt ends the current turn of an agent that is not a graph at once when it is closed: the
	// text so far becomes the reply, and the run is done. A run that waits ends, too. A graph is paused
	// at once.
	Interrupt <-chan struct{}

	// KeepJobs says that background commands of the run continue when it ends, until the process ends: the run is a
	// turn of a conversation.
	KeepJobs bool

	grace  time.Duration // as in [graph.Input]
	cancel string        // as in [graph.Resume]
}

// Drive works on the run until it ends, is paused, or waits for a person. The
// error is that of [graph.Runner.Run], in the words of the file
// format.
func (r *Run) Drive(ctx context.Context, d Driver) (res graph.Result, err error) {
	if deadline := r.Record.Deadline; !deadline.IsZero() {
		return r.driveUntil(ctx, d, deadline)
	}
	return r.driveOn(ctx, d)
}

// driveOn is Drive without the deadline of the run.
func (r *Run) driveOn(ctx context.Context, d Driver) (res graph.Result, err error) {
	ctx, d, end := r.traceDrive(ctx, d)
	defer func() { end(res, err) }()
	ctx, release := r.withInterrupt(ctx, &d)
	defer release()
	if r.process != nil {
		d.Reply = r.withEvents(ctx, r.process, d.Reply)
		stopped, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		ctx = stopped
		defer func() {
			if errors.Is(context.Cause(stopped), ErrStoppedElsewhere) && !res.Status.Final() {
				err = &failure.Error{Kind: failure.Stale, Err: fmt.Errorf("run %s: %w", r.ID, ErrStoppedElsewhere), Next: "raddle runs show " + r.ID}
			}
		}()
		defer r.process.postman.serveRun(r.process, r, func() { stop(ErrStoppedElsewhere) })()
		defer func() { r.forgetWaits(ctx, res) }()
		ctx = r.withMessages(ctx)
		defer func() { r.forgetTaken(ctx, res) }()
	}
	tempdir.RemoveStale()
	jobs := runs.FamilyOf(r.Thread)
	r.jobs.EndLost(jobs)
	defer func() {
		if res.Status != graph.Waiting && !d.KeepJobs {
			r.jobs.EndThread(jobs)
		}
	}()
	if r.origin.asks() { // before anything of the run is prepared
		if decided, err := r.settleOrigin(ctx, &d); err != nil || !decided {
			return graph.Result{Run: r.ID, Thread: r.Thread, Status: r.status, Questions: r.Questions}, err
		}
	}
	if err := r.prepareAgent(ctx); err != nil {
		return graph.Result{Run: r.ID, Status: r.status}, &failure.Error{Kind: failure.Invalid, Err: err}
	}
	res = graph.Result{Run: r.ID, Thread: r.Thread, Status: r.status, Questions: r.Questions, Timers: r.Timers, Due: r.Due}
	if !r.Resumed {
		if r.publish != nil {
			if err := r.publish(ctx); err != nil {
				return res, err
			}
		}
		in := r.input
		in.Run, in.Thread, in.Ahead, in.Reply, in.Topics, in.Pause, in.Break, in.Grace, in.Handle = r.ID, r.Thread, r.redactAnswers(d.Ahead), r.redactReply(d.Reply), d.Topics, d.Pause, d.Break, d.grace, &r.handle
		in.Until = r.Record.Deadline
		if res, err = r.consumeEvents(d, func() eventSeq { return r.runner.Run(ctx, in) }); err != nil {
			return res, err
		}
	} else if res.Status != graph.Waiting || len(d.Begin) > 0 || d.cancel != "" || r.IsDue() {
		if res, err = r.resumeDrive(ctx, d, d.Begin); err != nil {
			return res, err
		}
	}
	d.Recorded = nil // of the first drive only
	for refused := false; res.Status == graph.Waiting; {
		if d.isInterrupted() && !refused {
			refused = true
			if res, err = r.resumeDrive(ctx, d, r.Agent.InterruptAnswers(res.Questions)); err != nil {
				return res, err
			}
			continue
		}
		var answers []graph.Answer
		var letter *mail.Letter
		park := false
		if d.Ask != nil && len(res.Questions) > 0 {
			answers, park, letter, err = r.ask(ctx, &d, res.Questions)
		}
		if d.isInterrupted() && !refused {
			continue
		}
		if err != nil || len(answers) == 0 && (d.Wake == nil || res.Due.IsZero() || !d.Wake(res)) {
			return res, err
		}
		if park {
			d.Ask = nil
		}
		if res, err = r.resumeDrive(ctx, r.removeRecorded(ctx, d, letter), answers); err != nil {
			return res, err
		}
	}
	return res, nil
}

// newRunner returns what drives runs of a graph in a store.
func (p *Process) newRunner(g *graph.Graph, st *runs.Store, s UIHooks) *graph.Runner {
	store := st.Store
	if s.Journal != nil {
		store = s.Journal(store)
	}
	return &graph.Runner{
		Graph:     g,
		Store:     store,
		StoreAway: newStoreWatch(cmp.Or(s.Log, p.Log), s.StoreAway),
		Clock:     s.Clock,
		MaxState:  max(0, cmp.Or(p.Config.MaxState, 64<<20)),
	}
}

// newStoreWatch returns what is called when a run begins to wait for its store, and when the store is back.
func newStoreWatch(log *slog.Logger, tell func(error)) func(thread string, err error) {
	return func(thread string, err error) {
		switch {
		case log == nil:
		case err != nil:
			log.Warn("the store is not available; raddle tries again", "run", thread, "error", err)
		default:
			log.Info("the store is back", "run", thread)
		}
		if tell != nil {
			tell(err)
		}
	}
}
