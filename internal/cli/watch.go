package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/team"
)

// runWatcher is what a command records and shows of a run while it drives it. Only the
// goroutine that drives may call its methods, unless a method says otherwise.
type runWatcher struct {
	env    *environment
	run    *app.Run
	stream bool // events go to standard output

	narrator *flow.Narrator
	log      *flow.RunLog // nil: no log
	events   *eventLog    // nil: no log of events
	live     *liveLines   // nil: no live lines
	speech   *replyStream // nil: the result is shown at the end
	spent    spendTotal

	begun    bool            // a drive of this process has started
	again    map[string]bool // tasks that asked, and run again after the answer
	calls    map[string]bool // calls of tools that have started, by their path and id
	warnings []string
	seq      int64

	mu      sync.Mutex
	notes   []string            // to be shown with the next piece of a reply
	working map[string]bool     // running tasks that are more than a reply, by path and id
	tasks   map[string]liveTask // running tasks, by path and id
}

// newRunWatcher prepares for a run. live requests live lines if they are
// possible.
func newRunWatcher(env *environment, run *app.Run, stream, wantLive bool) *runWatcher {
	w := &runWatcher{env: env, run: run, stream: stream, again: map[string]bool{}, calls: map[string]bool{}, working: map[string]bool{}, tasks: map[string]liveTask{}}
	if !env.quiet {
		w.narrator = flow.NewNarrator(dimWriter{env.err}, run.Agent, false)
		w.narrator.Detail = env.verbose
		if wantLive && env.err.IsTerminal() && !isDumbTerminal() {
			w.live = newLiveLines(env.err, run.Agent)
		}
	}
	if log := env.runLogger(); log != nil {
		w.log = flow.LogRun(log, run.Agent)
	}
	w.events = newEventLog(env.devLog, env.redactBytes, run.Agent)
	return w
}

// dimWriter writes dimmed lines.
type dimWriter struct{ t *terminal }

func (d dimWriter) Write(line []byte) (int, error) {
	d.t.printLine(d.t.paintText(dim, strings.TrimSuffix(string(line), "\n")))
	return len(line), nil
}

// eventTopics returns the events that must be created.
func (w *runWatcher) eventTopics() graph.Topic {
	t := graph.TopicRun | graph.TopicQuestion | graph.TopicTask | graph.TopicEmit
	if w.narrator != nil {
		t |= flow.NarrateTopics
	}
	if w.log != nil {
		t |= flow.LogTopics
	}
	if w.stream || w.events != nil {
		t |= graph.AllTopics
	}
	return t
}

// handleEvent handles one event.
func (w *runWatcher) handleEvent(ev graph.Event) {
	w.countTasks(ev)
	w.seq++
	ev.Seq = w.seq // a command may drive several times: the sequence numbers of its stream continue
	if w.stream {
		w.writeEvent(ev)
	}
	if w.events != nil {
		w.events.logEvent(ev)
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		w.printStarted(b)
		w.begun = true
	case graph.ValueEmitted:
		if call, ok := b.Value.(agent.ToolStarted); ok {
			if w.calls[ev.Path+call.ID] {
				return // it asked, and continues after the answer
			}
			w.calls[ev.Path+call.ID] = true
		}
		w.handleEmitted(b.Value)
	case graph.TaskDone:
		if b.Waiting {
			w.again[ev.Path+ev.Task] = true
		}
	case graph.TaskStarted:
		if w.again[ev.Path+ev.Task] {
			delete(w.again, ev.Path+ev.Task)
			return
		}
	}
	w.showEvent(ev)
}

// countTasks counts the running tasks, except those that only wait for a model or for the tasks inside them.
func (w *runWatcher) countTasks(ev graph.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch b := ev.Body.(type) {
	case graph.TaskStarted:
		if b.Kind != "llm" && b.Kind != team.Node {
			w.working[ev.Path+ev.Task] = true
		}
		w.tasks[ev.Path+ev.Task] = liveTask{path: ev.Path, below: taskPath(ev)}
	case graph.ValueEmitted:
		if t, ok := w.tasks[ev.Path+ev.Task]; ok {
			t.waits = time.Time{}
			if wait, ok := b.Value.(agent.RetryScheduled); ok {
				t.waits = time.Now().Add(wait.Wait)
			}
			w.tasks[ev.Path+ev.Task] = t
		}
	case graph.TaskDone:
		delete(w.working, ev.Path+ev.Task)
		delete(w.tasks, ev.Path+ev.Task)
	case graph.RunEnded:
		if ev.Path == "" {
			clear(w.tasks)
		}
	}
}

// liveTask is a running task.
type liveTask struct {
	path  string    // of its frame
	below string    // path of what it calls
	waits time.Time // until then it waits to send a request again
}

// onlyWaits reports whether every running task waits to send a request to a model
// again: interrupting it loses nothing. It is safe for concurrent use.
func (w *runWatcher) onlyWaits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		if !t.waits.After(time.Now()) && !w.hasTasks(t) {
			return false
		}
	}
	return len(w.tasks) > 0
}

// hasTasks reports whether a task is running inside another one.
func (w *runWatcher) hasTasks(outer liveTask) bool {
	for _, t := range w.tasks {
		if strings.HasPrefix(t.path, outer.below) {
			return true
		}
	}
	return false
}

// onlyReplies reports whether the run is one of an agent, and all that is running are replies of models: interrupting
// them loses nothing. It is safe for concurrent use.
func (w *runWatcher) onlyReplies() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run.Agent.Config != nil && len(w.working) == 0
}

func (w *runWatcher) handleEmitted(v any) {
	switch v := v.(type) {
	case flow.Warning:
		w.warnings = append(w.warnings, v.Text)
	case agent.Warning:
		w.warnings = append(w.warnings, v.Text)
	case agent.ReplyDone:
		if v.Priced {
			w.spent.addCall(v.Usage, v.Model, v.Cost, true)
			return
		}
		cost, known := w.env.process.Models.UsageCost(v.Model, v.Usage)
		w.spent.addCall(v.Usage, v.Model, cost, known)
	case agent.SummaryDone:
		cost, known := w.env.process.Models.UsageCost(v.Model, v.Usage)
		w.spent.addCall(v.Usage, v.Model, cost, known)
	case flow.ModelDone:
		cost, known := w.env.process.Models.UsageCost(v.Model, v.Usage)
		w.spent.addCall(v.Usage, v.Model, cost, known)
	}
}

// addNote adds a line that a model wants to show, from any goroutine. The line is
// shown when the model writes, after the lines that lead up to it.
func (w *runWatcher) addNote(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, line)
}

func (w *runWatcher) tellNotes(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		switch b.Value.(type) {
		case flow.Delta, flow.ModelDone, agent.TextDelta, agent.ReasoningDelta, agent.ReplyDone:
		default:
			return
		}
	case graph.TaskDone, graph.RunEnded:
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.notes {
		w.env.err.printLine(line)
	}
	w.notes = nil
}

func (w *runWatcher) showEvent(ev graph.Event) {
	w.tellNotes(ev)
	if w.narrator != nil {
		w.narrator.Event(ev)
	}
	if w.live != nil {
		w.live.handleEvent(ev)
	}
	if w.speech != nil {
		w.speech.handleEvent(ev)
	}
	if w.log != nil {
		w.log.Event(ev)
	}
}

// printStarted says which run this is. The run is recorded by now, and no node has
// run yet.
func (w *runWatcher) printStarted(b graph.RunStarted) {
	if w.env.quiet || w.begun {
		return
	}
	verb := "run"
	if b.Resumed {
		verb = "resuming run"
	}
	w.env.err.printLine(fmt.Sprintf("raddle: %s %s", verb, w.env.err.paintText(cyan, w.run.ID)))
	for _, f := range w.run.Agent.Findings {
		if f.Severity != strictyaml.SeverityInfo {
			w.env.err.printLine(w.env.formatFinding(f, w.env.err.colors))
		}
	}
}

// finishWatch ends the display.
func (w *runWatcher) finishWatch() {
	if w.live != nil {
		w.live.close()
	}
	if w.speech != nil {
		w.env.err.endLine(w.env.out) // however the run ended
	}
	w.env.err.clearStatus()
}

// writeEvent writes an event to standard output, as one line of JSON.
func (w *runWatcher) writeEvent(ev graph.Event) {
	b, err := json.Marshal(ev)
	if err != nil { // a node sent a value that JSON cannot represent
		ev.Body = graph.ValueEmitted{Value: flow.Warning{Text: err.Error()}}
		b, _ = json.Marshal(ev)
	}
	if b = append(b, '\n'); w.live == nil {
		_, _ = w.env.out.Write(b)
		return
	}
	w.env.err.passThrough(w.env.out, string(b)) // both may be on one screen
}

// resultLine returns the last line of a stream: the report in the envelope of events.
type resultLine struct {
	Seq    int64     `json:"seq"`
	Time   time.Time `json:"time"`
	Thread string    `json:"thread,omitempty"`
	Run    string    `json:"run,omitempty"`
	Kind   string    `json:"kind"`
	Data   *report   `json:"data"`
}
