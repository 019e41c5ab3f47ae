package cli

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/narrate"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/eventlog"
	"raddle.dev/internal/report/progress"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

// runWatcher is what a command records and shows of a run while it drives it. Only the
// goroutine that drives may call its methods, unless a method says otherwise.
type runWatcher struct {
	console *console.Console
	process *app.Process
	run     *app.Run
	stream  bool // events go to standard output

	narrator *narrate.Narrator     // nil: no narration
	report   *progress.Reporter    // nil: no terminal, or narration
	log      *narrate.Log          // nil: no log
	events   *eventlog.Log         // nil: no log of events
	live     *progress.LiveLines   // nil: no live lines
	speech   *progress.ReplyStream // nil: the result is shown at the end
	spent    runview.SpendTotal

	started  bool            // a drive of this process has started
	again    map[string]bool // tasks that asked, and run again after the answer
	calls    map[string]bool // calls of tools that have started, by their path and id
	warnings []string
	seq      int64

	activity *progress.Activity // may be used from any goroutine

	mu    sync.Mutex
	notes []string // to be shown with the next piece of a reply
}

// newRunWatcher prepares for a run. live requests live lines if they are
// possible.
func newRunWatcher(con *console.Console, p *app.Process, run *app.Run, stream, wantLive bool) *runWatcher {
	w := &runWatcher{console: con, process: p, run: run, stream: stream, again: map[string]bool{}, calls: map[string]bool{}, activity: progress.NewActivity()}
	switch {
	case con.Quiet:
	case con.ShowsBlocks():
		look := progress.NewLook(con.Screen.Colors, os.Getenv)
		w.report = progress.NewReporter(con.Screen, look, run.Agent)
		w.report.Detail = con.Verbose
		if wantLive && !term.IsDumb() {
			w.live = progress.NewLiveLines(con.Screen, look, run.Agent)
		}
	default:
		w.narrator = narrate.New(dimWriter{con.Screen}, run.Agent, false)
		w.narrator.Detail = con.Verbose
	}
	if log := runLogger(con, p); log != nil {
		w.log = narrate.NewLog(log, run.Agent)
	}
	w.events = eventlog.New(p.Log, p.Tools.SecretSet().Bytes, run.Agent)
	return w
}

// showReplies shows the text of replies while models write it: with live lines also the end that is not final, which
// they need not show then.
func (w *runWatcher) showReplies(raw bool) {
	w.speech = progress.NewReplyStream(w.console.Screen, w.console.Out, w.console.MarkdownRenderer(raw))
	if w.report != nil {
		w.report.Replies = true
	}
	if w.live != nil {
		w.live.Mute = true
		w.speech.ShowPending = true
	}
}

// dimWriter writes dimmed lines.
type dimWriter struct{ screen *term.Screen }

func (d dimWriter) Write(line []byte) (int, error) {
	d.screen.PrintLine(d.screen.Paint(term.Dim, strings.TrimSuffix(string(line), "\n")))
	return len(line), nil
}

// eventTopics returns the events that must be created.
func (w *runWatcher) eventTopics() graph.Topic {
	t := graph.TopicRun | graph.TopicQuestion | graph.TopicTask | graph.TopicEmit
	if w.narrator != nil {
		t |= narrate.Topics
	}
	if w.report != nil {
		t |= progress.ReportTopics
	}
	if w.log != nil {
		t |= narrate.LogTopics
	}
	if w.stream || w.events != nil {
		t |= graph.AllTopics
	}
	return t
}

// handleEvent handles one event.
func (w *runWatcher) handleEvent(ev graph.Event) {
	w.activity.HandleEvent(ev)
	w.seq++
	ev.Seq = w.seq // a command may drive several times: the sequence numbers of its stream continue
	if w.stream {
		w.writeEvent(ev)
	}
	if w.events != nil {
		w.events.WriteEvent(ev)
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		w.printStarted(b)
		w.started = true
	case graph.ValueEmitted:
		if call, ok := b.Value.(agent.ToolStarted); ok {
			if w.calls[ev.Path+call.ID] {
				return // it asked, and continues after the answer
			}
			w.calls[ev.Path+call.ID] = true
		}
		if v, ok := b.Value.(agent.Warning); ok {
			w.warnings = append(w.warnings, v.Text)
		}
		if call, ok := updates.ModelCallOf(ev); ok {
			cost, known := call.Cost(w.process.Models.UsageCost)
			w.spent.AddCall(call.Usage, call.Model, cost, known)
		}
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

// addNote adds a line that a model wants to show, from any goroutine. The line is
// shown when the model writes, after the lines that lead up to it.
func (w *runWatcher) addNote(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, line)
}

func (w *runWatcher) reportNotes(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		if !updates.IsSpeech(b.Value) {
			return
		}
	case graph.TaskDone, graph.RunEnded:
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.notes {
		w.console.Screen.PrintLine(line)
	}
	w.notes = nil
}

func (w *runWatcher) showEvent(ev graph.Event) {
	w.reportNotes(ev)
	if w.narrator != nil {
		w.narrator.Event(ev)
	}
	if w.report != nil {
		w.report.HandleEvent(ev)
	}
	if w.live != nil {
		w.live.HandleEvent(ev)
	}
	if w.speech != nil {
		w.speech.HandleEvent(ev)
	}
	if w.log != nil {
		w.log.Event(ev)
	}
}

// printStarted says which run this is. The run is recorded by now, and no node has
// run yet.
func (w *runWatcher) printStarted(b graph.RunStarted) {
	if w.started {
		return
	}
	if w.report != nil {
		w.report.PrintStart(w.run.ID, b.Resumed)
		noteFindings(w.console, w.process, w.run.Agent)
		return
	}
	verb := "run"
	if b.Resumed {
		verb = "resuming run"
	}
	w.console.PrintNote("raddle: %s %s", verb, w.console.Screen.Paint(term.Cyan, w.run.ID))
	noteFindings(w.console, w.process, w.run.Agent)
}

// noteFindings writes what is wrong with an agent, although it can run. It leaves out what the run itself says.
func noteFindings(con *console.Console, p *app.Process, a *flow.Agent) {
	for _, f := range append(slices.Clip(a.FindingsForRun()), a.UnreadyChildren()...) {
		if f.Severity != strictyaml.SeverityInfo && f.Code != flow.ProjectFinding {
			con.PrintNote("%s", ending.LookAtFindings(p, con.Screen.Colors).FormatFinding(f))
		}
	}
}

// finishWatch ends the display.
func (w *runWatcher) finishWatch() {
	if w.live != nil {
		w.live.Close()
	}
	if w.speech != nil {
		w.console.Screen.EndLine(w.console.Out) // however the run ended
	}
	w.console.Screen.ClearLive()
}

// writeEvent writes an event to standard output, as one line of JSON.
func (w *runWatcher) writeEvent(ev graph.Event) {
	line := append(updates.EncodeEvent(ev), '\n')
	if w.live == nil {
		_, _ = w.console.Out.Write(line)
		return
	}
	w.console.Screen.PassThrough(w.console.Out, string(line)) // both may be on one screen
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
