package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
)

// execution is one execution of a recording with the files of a directory.
type execution struct {
	recording *Recording
	player    *player
	dir       string // of the agent
	environ   []string

	process *app.Process
	clock   *testrun.Clock
	store   journal.Store
	threads map[string]string // names of the threads of this execution, by those of the recording
	steps   int
	agent   string
	changes []string // of files since the recording
	names   func(path string) (name string, index int)
	path    []string // nodes of the graph itself
}

// run executes all segments until something differs.
func (x *execution) run(ctx context.Context) error {
	p, err := x.openProcess()
	if err != nil {
		return err
	}
	defer p.Close()
	x.process = p
	x.clock = testrun.NewClock()
	x.threads = map[string]string{}
	st, err := p.Runs.OpenStore()
	if err != nil {
		return err
	}
	x.store = st.Store
	for i, s := range x.recording.segments {
		var next *segment
		if i+1 < len(x.recording.segments) {
			next = x.recording.segments[i+1]
		}
		if err := x.runSegment(ctx, s, next); err != nil {
			return err
		}
		if x.player.hasStopped() && (x.player.diff != nil || next == nil || strings.HasPrefix(x.player.ended, "stopped")) {
			return nil
		}
	}
	return nil
}

// openProcess opens a process whose runs are in memory, that traces nothing, and has the environment and the settings
// of the recorded run.
func (x *execution) openProcess() (*app.Process, error) {
	rec := x.recording.Record
	var env []string
	for _, pair := range x.environ {
		name, _, _ := environ.SplitPair(pair)
		name = environ.FoldName(name)
		if _, replaced := rec.Overrides[name]; !(replaced && flow.ReplacesValues(name)) && !strings.HasPrefix(name, "OTEL_") && name != "TRACEPARENT" {
			env = append(env, pair)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rec.Overrides)) {
		if flow.ReplacesValues(name) { // no other name decides what this process does
			env = append(env, name+"="+rec.Overrides[name])
		}
	}
	work := rec.Workspace
	if !config.IsDir(work) {
		work = ""
	}
	p, err := app.Open(app.Options{Environ: env, Work: work, Store: "memory:"})
	if err != nil {
		return nil, err
	}
	p.Config.Model = rec.Model
	p.Config.Temperature = rec.Temperature
	p.Config.TopP = rec.TopP
	p.Config.Session = ""
	p.Tools.Embedder = nil // nothing is sent
	if p.Config.FunctionCalling = nil; rec.NoSpawn {
		p.Config.FunctionCalling = new(false)
	}
	return p, nil
}

// prepareRun prepares the run of a segment.
func (x *execution) prepareRun(ctx context.Context, s *segment) (*app.Run, error) {
	hooks := app.UIHooks{Adjust: x.player.adjustHost, Clock: x.clock}
	if s.first.Kind == journal.KindStart {
		req := newRequest(s, x.dir)
		req.UIHooks = hooks
		run, err := x.process.StartRun(req)
		if err == nil {
			x.threads[s.thread] = run.Thread
		}
		return run, err
	}
	name := x.threads[s.thread]
	head := int64(0)
	if name == "" {
		name = s.thread
		x.threads[s.thread] = name
	} else {
		snap, err := history.Inspect(ctx, x.store, name, 0)
		if err != nil {
			return nil, err
		}
		head = snap.Head
	}
	first := s.first
	first.Sum = 0 // it has another number here
	if err := x.store.Append(ctx, name, head, []journal.Record{first}); err != nil {
		return nil, err
	}
	if s.over || s.records == 1 { // nothing followed but an edit
		return nil, nil
	}
	return x.process.ResumeRun(ctx, name, app.ResumeOptions{Agent: x.dir, AcceptChanges: true, UIHooks: hooks})
}

// newRequest returns the request that starts the run of a segment again.
func newRequest(s *segment, dir string) app.Request {
	rec := s.record
	req := app.Request{ID: s.run, Agent: dir, Prompt: rec.Prompt, Files: rec.Files, Media: s.media, Attached: rec.Attached, Headless: rec.Headless, Model: rec.Override, Templates: rec.Templates, Variables: rec.Variables, Strict: rec.Strict, Session: "temp", Transient: true, Compact: s.compacts}
	if _, name, ok := runs.SessionOf(s.thread); ok {
		req.Session = name
	} else if !s.talks {
		req.Session = ""
	}
	return req
}

// runSegment executes a segment and compares it with the recording.
func (x *execution) runSegment(ctx context.Context, s *segment, next *segment) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := x.player
	p.mu.Lock()
	p.segment = s
	p.cancel = cancel
	p.ended = ""
	p.mu.Unlock()
	run, err := x.prepareRun(ctx, s)
	if run == nil || err != nil {
		return err
	}
	defer run.Close()
	x.names = testrun.NameTasks(run.Agent)
	if x.agent = run.Agent.Name; s.record != nil {
		x.changes = flow.DescribeChanges(s.record.Sources, run.Agent.Sources())
	}
	before := int64(0)
	if snap, err := history.Inspect(ctx, x.store, run.Thread, 0); err == nil {
		before = snap.Head
	}
	res, failed := run.Drive(ctx, app.Driver{Ask: p.answer, Wake: x.wake, Topics: graph.TopicTask, Event: func(ev graph.Event) { p.watch(ev) }})
	if err := context.Cause(ctx); err != nil && !p.hasStopped() {
		return err
	}
	if err := x.compareSteps(s, run.Thread, before); err != nil {
		return err
	}
	if err := x.compareEnd(s, run, res, failed); err != nil {
		return err
	}
	if next != nil && next.first.Kind == journal.KindStart && next.thread == s.thread && !res.Status.Final() {
		_, err := history.Abandon(context.WithoutCancel(ctx), x.store, run.Thread, "it ended here")
		return err
	}
	return nil
}

// wake lets the time come that the run waits for, if it came in the recorded run.
func (x *execution) wake(parked graph.Result) bool {
	p := x.player
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.diff != nil || p.ended != "" {
		return false
	}
	for _, q := range slices.Concat(parked.Timers, parked.Questions) {
		if !q.Due.IsZero() && !q.Due.After(parked.Due) && p.segment.expired[q.ID] {
			x.clock.JumpTo(parked.Due)
			return true
		}
	}
	return false
}

// watch ends the replay at a node that has no effects.
func (p *player) watch(ev graph.Event) {
	if _, started := ev.Body.(graph.TaskStarted); started && p.until != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.isUntil(nodeOf(ev.Path)) || p.isUntil(ev.Path) {
			_ = p.stop(nil, "stopped before node "+p.until)
		}
	}
}

// compareSteps compares the steps of this execution with those of the recording, oldest first. An earlier difference
// counts.
func (x *execution) compareSteps(s *segment, thread string, before int64) error {
	var entries []history.Entry
	for e, err := range history.Entries(context.Background(), x.store, thread) {
		if err != nil {
			return err
		}
		if e.Seq <= before {
			break
		}
		entries = append(entries, e)
	}
	running := map[string][]string{} // nodes, by the path of their frame
	p := x.player
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Backward(entries) {
		if e.Kind == journal.KindStep {
			x.steps++
			was, known := s.steps[stepID{e.Path, e.Step}]
			if known && !slices.Equal(was, e.Next) {
				nodes := strings.Join(running[e.Path], ", ")
				node := nodeOf(e.Path)
				if nodes != "" {
					node = strings.TrimPrefix(node+"/"+nodes, "/")
				}
				p.diff = &Difference{What: "path", Node: node, Run: s.run, Record: s.seqs[stepID{e.Path, e.Step}], Was: nextText(was), Is: nextText(e.Next), Message: "leads to " + nextText(e.Next) + " instead of " + nextText(was)}
				p.ended = ""
				return nil
			}
		}
		if e.Next != nil || e.Kind == journal.KindStep {
			running[e.Path] = e.Next
			if e.Path == "" && !s.talks {
				x.path = append(x.path, e.Next...)
			}
		}
	}
	return nil
}

func nextText(next []string) string {
	if len(next) == 0 {
		return "the end"
	}
	return strings.Join(next, ", ")
}

// compareEnd compares how the run has ended, its output and its state.
func (x *execution) compareEnd(s *segment, run *app.Run, res graph.Result, failed error) error {
	p := x.player
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.diff != nil || p.ended != "" {
		return nil
	}
	p.trace.output = flow.OutcomeOf(res).Output
	d := &Difference{Run: s.run}
	switch {
	case s.status == graph.Running || s.status == graph.Paused:
		p.ended = "the recording ends before the end of the run"
		return nil
	case s.status == graph.Done && res.Status != graph.Done, s.status != graph.Done && s.status != graph.Waiting && res.Status == graph.Done:
		d.What, d.Was, d.Is = "status", s.status.String(), res.Status.String()
		d.Message = fmt.Sprintf("the run ends as %s instead of %s", res.Status, s.status)
		if failed != nil {
			d.Is += ": " + failed.Error()
		}
		if s.reason != "" {
			d.Was += ": " + s.reason
		}
		p.diff = d
		return nil
	case res.Status != graph.Done:
		p.ended = fmt.Sprintf("the recording ends here (%s)", s.status)
		return nil
	case p.trace.output != s.output && (p.base == nil || p.base.output != p.trace.output):
		d.What = "output"
		d.Was = s.output
		d.Is = p.trace.output
		d.Message = "the output differs"
		p.diff = d
		return nil
	}
	return x.compareState(s, run)
}

// compareState compares the state of a graph at its end with that of the execution of the recorded files. The caller
// must hold mu of the player.
func (x *execution) compareState(s *segment, run *app.Run) error {
	p := x.player
	if run.Agent.Config != nil {
		return nil
	}
	snap, err := history.Inspect(context.Background(), x.store, run.Thread, 0)
	if err != nil {
		return err
	}
	clear(p.trace.state)
	for _, v := range snap.Values {
		p.trace.state[v.Key] = string(flow.StoredValue(v.Tag, v.Parts))
	}
	if p.base == nil {
		return nil
	}
	keys := slices.Concat(slices.Collect(maps.Keys(p.base.state)), slices.Collect(maps.Keys(p.trace.state)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		was := p.base.state[key]
		is := p.trace.state[key]
		if was != is {
			p.diff = &Difference{What: "state", Run: s.run, Was: indentJSON(was), Is: indentJSON(is), Message: "the value of the key " + key + " at the end differs"}
			return nil
		}
	}
	return nil
}
