package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/progress"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/chat"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/tool"
)

// drivenRun is a run, and how the command wants to drive it and report on it.
type drivenRun struct {
	console    *console.Console
	process    *app.Process
	foreground *foreground
	run        *app.Run
	format     string
	answers    question.GivenAnswers
	inDoubt    tool.Doubt      // for every call that was interrupted; unset: as elsewhere
	still      bool            // no live lines, and no text before the end
	skip       func(error)     // as asker.skip; may be nil
	shown      map[string]bool // ids of questions that the person has seen on this terminal
	raw        bool            // show Markdown as it is written
	turn       *chat.Drive     // nil unless the run is a turn of a conversation

	watch *runWatcher
	stop  *stopper
	calls runs.Calls // calls of a run without an output

	worksSince time.Time // the start, or the last answer

	defaults sync.Map // questions that took their default, by ID, until their event arrives
}

// newDrive returns the drive of a run that shows text.
func newDrive(con *console.Console, p *app.Process, fg *foreground, run *app.Run) *drivenRun {
	return &drivenRun{console: con, process: p, foreground: fg, run: run, format: console.FormatText}
}

// runWithAnswers drives the run with the answers of the command line.
func (d *drivenRun) runWithAnswers(answers []string) (err error) {
	defer d.run.Close()
	d.answers, err = question.ParseAnswers(answers, question.NamesOf(d.run.Questions, d.run.GraphStructure()))
	if err == nil {
		err = d.answers.RefuseLate(graph.ForPeople(d.run.Questions), d.run.ResumeCommand())
	}
	if err != nil {
		return err
	}
	return d.runAndReport()
}

// runAndReport works on the run until it ends, is stopped or parks, and reports on it. The
// error carries the exit code.
func (d *drivenRun) runAndReport() error {
	d.watch = newRunWatcher(d.console, d.process, d.run, d.format == console.FormatStream, !d.still)
	// the result of a graph is not the text of a model
	if !d.still && d.format == console.FormatText && d.console.Out.IsTerminal() && d.run.Agent.Config != nil {
		d.watch.showReplies(d.raw)
	}
	d.foreground.watching.Store(d.watch)
	d.stop = newStopper(d.console, d.foreground)
	d.foreground.stopping.Store(d.stop)
	// another program of a pipeline may read the keyboard
	if d.console.Screen.IsTerminal() && !d.console.Out.IsPiped() {
		d.console.Keyboard.CaptureInput()
		defer d.console.Keyboard.Release()
	}
	res, err := d.driveRun()
	d.watch.finishWatch()
	d.console.Keyboard.Release()
	d.stop.close()
	return d.reportOutcome(driveOutcome{res: res, err: err, code: d.driveExitCode(res, err)})
}

// driveRun drives the run.
func (d *drivenRun) driveRun() (graph.Result, error) {
	ask := d.newAsker()
	driver := app.Driver{
		Ask: func(ctx context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
			asking, end := context.WithCancel(d.stop.asking)
			defer end()
			defer context.AfterFunc(ctx, end)() // an answer came from elsewhere
			d.notify("waits for you")
			defer func() { d.worksSince = time.Now() }()
			d.foreground.working.Store(false)
			defer d.foreground.working.Store(true)
			answers, park, err := ask.answerQuestions(asking, open)
			if errors.Is(context.Cause(ctx), app.ErrAnsweredElsewhere) {
				d.console.PrintNote("raddle: answered elsewhere")
			}
			return answers, park, err
		},
		Event: d.handleEvent, Topics: d.watch.eventTopics(), Pause: d.stop.pause,
	}
	if d.turn != nil {
		driver.Interrupt = d.turn.Interrupt
		driver.KeepJobs = d.run.Agent.Config != nil
	}
	if d.run.Resumed {
		ask.given = d.answers
	} else {
		driver.Ahead = d.answers.Preset()
	}
	if ask.prompter == nil && len(d.answers) == 0 { // otherwise the answers come first
		driver.Reply = d.replyDefault
	}
	if d.turn == nil || d.run.Resumed { // otherwise each turn of a conversation would say it
		for _, line := range d.run.Notices {
			d.console.PrintNote("raddle: %s", term.CleanLine(line))
		}
	}
	d.foreground.working.Store(true)
	d.worksSince = time.Now()
	res, err := d.run.Drive(d.stop.ctx, driver)
	if !d.stop.isStopped() {
		d.notify("is done")
	}
	d.shown = ask.shown
	if !d.run.Resumed {
		d.answers.MarkUsed(res.Unused, d.run.Agent.Redact)
	}
	if err == nil && res.Status == graph.Waiting && ask.prompter == nil {
		err = d.warnUntakenAnswers(ask, res)
	}
	return res, err
}

// noticeAfter is how long a run works before a person may have turned to something else.
const noticeAfter = 20 * time.Second

// notify calls a person back who has waited for long.
func (d *drivenRun) notify(what string) {
	if d.console.Quiet || os.Getenv("NO_MOTION") != "" || term.IsDumb() || time.Since(d.worksSince) < noticeAfter {
		return
	}
	d.console.Screen.Notify(d.run.Agent.Name+" "+what, os.Getenv)
}

// newAsker returns what answers the questions of the run.
func (d *drivenRun) newAsker() *asker {
	ask := &asker{console: d.console, inDoubt: d.inDoubt, stopped: d.stop.isStopped, onDefault: d.tookDefault, skip: d.skip,
		check: func(a graph.Answer) error { return d.run.CheckAnswers(d.stop.asking, a) }}
	if !d.run.Record.Headless {
		ask.prompter = d.console.NewPrompter()
	}
	return ask
}

// warnUntakenAnswers reports which answers of the command line the open questions did not take. It
// returns an error for an answer that a question refused.
func (d *drivenRun) warnUntakenAnswers(ask *asker, res graph.Result) error {
	var ids []string
	for _, q := range res.Questions {
		ids = append(ids, q.ID)
	}
	for _, q := range res.Questions {
		if q.Rejected != "" && !d.run.Resumed {
			return &failure.Error{Kind: failure.Usage, Err: d.run.Agent.Explain(&graph.AnswerError{ID: q.ID, Open: ids, Reason: q.Rejected})}
		}
	}
	for _, g := range d.answers {
		for _, q := range res.Questions {
			distance, named := q.NamedBy(g.ID)
			if g.Used || !named && g.ID != "" {
				continue
			}
			if g.ID == "" {
				distance = 1
			}
			if why := (*graph.AnswerError)(nil); errors.As(ask.checkFlagAnswer(q, g.Text, distance), &why) {
				text := fmt.Sprintf("%s did not accept the answer %s: %s", question.FormatName(q), wording.QuoteWord(g.Raw), flow.AnswerHeadline(why.Reason))
				if !d.run.Resumed {
					text += " (it is saved for later questions)"
				}
				d.console.PrintWarning(term.CleanText(text))
				break
			}
		}
	}
	return nil
}

// handleEvent shows an event. If the reader of the events has closed the pipe, the run stops.
func (d *drivenRun) handleEvent(ev graph.Event) {
	d.watch.handleEvent(ev)
	d.saveMedia(ev)
	if d.turn != nil {
		d.turn.Event(ev)
	}
	if b, ok := ev.Body.(graph.QuestionAnswered); ok {
		if q, taken := d.defaults.LoadAndDelete(b.ID); taken {
			d.tookDefault(q.(graph.Question), q.(graph.Question).Default)
		}
	}
	if d.console.Out.IsClosed() && d.format == console.FormatStream {
		d.stop.cancelWork()
	}
}

// saveMedia saves the pictures and documents that a model or a tool has made, and says where they are.
func (d *drivenRun) saveMedia(ev graph.Event) {
	saved, err := runs.SaveMedia(d.process.Dirs, d.run.Thread, runs.MediaOf(ev))
	if err != nil {
		d.console.PrintWarning(term.CleanText(err.Error()))
	}
	for _, f := range saved {
		d.console.PrintNote("%s", term.CleanLine(attach.Mark+f.String()))
	}
}

// replyDefault answers a question with its default during the drive: to end the drive
// and start another would read the whole journal again. The question is printed when
// its event arrives.
func (d *drivenRun) replyDefault(q graph.Question) (any, bool) {
	if d.stop.isStopped() || q.Default == "" || q.Rejected != "" || !takesDefault(q) {
		return nil, false
	}
	d.defaults.Store(q.ID, q)
	return q.Default, true
}

func (d *drivenRun) tookDefault(q graph.Question, text string) {
	d.console.PrintNote("raddle: question %s uses its default: %s", q.ID, text)
}

// driveExitCode returns the exit code of a drive.
func (d *drivenRun) driveExitCode(res graph.Result, err error) int {
	signal := d.stop.firstSignal()
	switch res.Status {
	case graph.Done:
		o := flow.OutcomeOf(res)
		if o.ExitCode == ending.Done && strings.TrimSpace(o.Output) == "" {
			// if the journal cannot be read, the report fails
			d.calls, _ = d.process.Runs.ReadModelCalls(context.Background(), d.run.ID)
		}
		return overview.DoneCode(o, d.calls)
	case graph.Waiting:
		if err != nil {
			return ending.CodeOf(err)
		}
		if signal != nil && ending.SignalCode(signal) != ending.Interrupted {
			return ending.SignalCode(signal)
		}
	case graph.Paused, graph.Canceled:
		switch {
		case endedElsewhere(err):
			return ending.CodeOf(err)
		case signal != nil:
			return ending.SignalCode(signal)
		case d.console.Out.IsClosed():
			return ending.Pipe
		}
	case graph.TimedOut:
	default:
		return ending.CodeOf(err)
	}
	return ending.StatusCode(res.Status)
}

// endedElsewhere reports whether a drive has stopped because of what another process did with its run.
func endedElsewhere(err error) bool {
	return errors.As(err, new(*graph.DisplacedError)) || errors.Is(err, app.ErrStoppedElsewhere)
}

// reportOutcome writes the result to standard output and the rest to standard error.
func (d *drivenRun) reportOutcome(o driveOutcome) error {
	if o.res.Status == graph.Done && !d.console.Quiet {
		for _, raw := range d.answers.ListUnused() {
			d.console.PrintWarning("nothing asked for the answer " + wording.QuoteWord(raw))
		}
	}
	switch d.format {
	case console.FormatText:
		if o.res.Status == graph.Done {
			d.printOutput(flow.OutcomeOf(o.res).Output)
		}
	default:
		r, err := reportRun(d.process, d.run, o, d.watch.warnings)
		if err != nil {
			return errors.Join(o.err, err)
		}
		writeReport(d.console, d.format, r, d.watch.seq+1)
	}
	d.printEnd(o)
	err := d.printNotice(o)
	d.leaveToServers(o.res)
	return err
}

// leaveToServers lets a server of the store continue a run that waits for a time, if there is one.
func (d *drivenRun) leaveToServers(res graph.Result) {
	if res.Status != graph.Waiting || res.Due.IsZero() || !d.run.Kept {
		return
	}
	served, err := runs.WakeByServers(context.Background(), d.process.Runs, d.run.Thread, d.run.ID, res.Due)
	switch {
	case err != nil:
		d.console.PrintWarning(term.CleanText("no server continues the run when its time has come: " + err.Error()))
	case served:
		d.console.PrintNote("raddle: a server of the store continues the run when its time has come")
	}
}

// printOutput writes the result of the run, unless the person has read it already.
func (d *drivenRun) printOutput(text string) {
	if d.watch.speech.IsShownInFull(text) {
		return
	}
	if d.watch.report != nil && d.console.Out.IsTerminal() && strings.TrimSpace(text) != "" {
		d.console.Screen.PrintLine("")
	}
	d.console.Out.PrintExact(d.console.RenderReply(text, d.raw))
}

// printEnd writes the last line about a run: how long it took, and what it cost.
func (d *drivenRun) printEnd(o driveOutcome) {
	switch {
	case d.watch.report == nil:
		if line := d.watch.spent.String(); line != "" {
			d.console.PrintNote("%s", d.console.Screen.Paint(term.Dim, "▸ "+line))
		}
		return
	case o.res.Status == graph.Waiting || o.res.Status == graph.Paused || o.res.Status == graph.Canceled || o.res.Status == 0:
		return // the notice about it follows
	}
	e := progress.Ending{Status: o.res.Status, Tokens: d.watch.spent.Usage.Input + d.watch.spent.Usage.Output, Cost: d.watch.spent.FormatCost()}
	if o.res.Status == graph.Done {
		e.Code = flow.OutcomeOf(o.res).ExitCode
		if d.run.Kept {
			e.Show = "raddle runs show last"
		}
		e.Apart = d.console.Out.IsTerminal()
	}
	d.watch.report.PrintEnd(e)
	d.console.Headed = o.res.Status != graph.Done
}

// printNotice says on standard error how to continue a run that is not over. It is printed
// even with --quiet, like errors.
func (d *drivenRun) printNotice(o driveOutcome) error {
	id := d.run.ID
	if o.code == ending.Pipe {
		return ending.Silent{Code: o.code} // the output pipe is closed
	}
	switch o.res.Status {
	case graph.Done:
		if o.code == ending.NoAnswer {
			d.console.Screen.PrintLine("raddle: the run is done, but there is no answer: " + term.CleanText(strings.Join(d.calls.Flaws, "; ")))
			d.console.Screen.PrintLine("next: ask again, or try another model: --model CLIENT:MODEL")
		}
		return ending.ExitSilently(o.code)
	case graph.Waiting:
		if why := (*graph.AnswerError)(nil); errors.As(o.err, &why) {
			d.console.Screen.PrintLine("raddle: " + term.CleanText(refusalText(d.console, why, o.err)))
			parkNotice(d.console, d.run, o.res, d.shown)
			return ending.Silent{Code: o.code}
		}
		if o.err != nil {
			return &ending.Error{Code: o.code, Err: o.err, Next: cmp.Or(ending.NextStep(d.process, o.err), d.retryHint(o.err))}
		}
		parkNotice(d.console, d.run, o.res, d.shown)
		return ending.Silent{Code: o.code}
	case graph.Paused, graph.Canceled:
		if endedElsewhere(o.err) {
			return &ending.Error{Code: o.code, Err: o.err, Next: ending.NextStep(d.process, o.err)}
		}
		text := "raddle: run " + id + " was stopped"
		if d.run.Kept {
			text += ", and is saved\nnext: " + resumeLine(d.run.ResumeCommand(), o.res)
		}
		d.console.Screen.PrintLine(text)
		return ending.Silent{Code: o.code}
	}
	if o.res.Head == 0 && !d.run.Resumed {
		return &ending.Error{Code: o.code, Err: o.err, Next: ending.NextStep(d.process, o.err)} // nothing was recorded
	}
	next := ending.NextStep(d.process, o.err)
	if ended := (*graph.EndingError)(nil); errors.As(o.err, &ended) && ended.Failure == nil {
		next = fmt.Sprintf("the run is over, and its %s has run; see all of it with: raddle runs show %s", ended.Finally, id)
	}
	if next == "" {
		next = d.retryHint(o.err)
	}
	return &ending.Error{Code: o.code, Err: o.err, Next: next}
}

// budgetHint says how a run continues whose budget, or that of one of its nodes, is used up.
func (d *drivenRun) budgetHint(e *agent.BudgetError) string {
	if e.Scope() == "" {
		flag := map[string]string{"money": "--max-cost DOLLARS", "calls": "--max-calls N", "tokens": "--max-tokens N"}[e.What]
		return fmt.Sprintf("give the whole run more than %s, then it continues: raddle resume %s %s", e.Limit, d.run.ID, flag)
	}
	return fmt.Sprintf("raise it there, then continue: %s --accept-changes", d.run.ResumeCommand())
}

// retryHint returns the next step after a failure.
func (d *drivenRun) retryHint(err error) string {
	if !d.run.Kept {
		return ""
	}
	var budget *agent.BudgetError
	if errors.As(err, &budget) && budget.Shared && budget.At != "" {
		return d.budgetHint(budget)
	}
	if field := map[string]string{"tokens": "max_tokens_per_turn", "money": "max_cost_per_turn"}; errors.As(err, &budget) && budget.Of != "" && field[budget.What] != "" {
		return fmt.Sprintf("raise %s in the config.yaml of %s, then continue: %s --accept-changes", field[budget.What], budget.Of, d.run.ResumeCommand())
	}
	if size := (*graph.StateSizeError)(nil); errors.As(err, &size) {
		return "keep less in the state, or raise `max_state` in raddle's config.yaml, then continue: " + d.run.ResumeCommand()
	}
	if v, err := d.process.Runs.ReadView(context.Background(), d.run.ID); err == nil { // without it, the rest is still true
		if cause := v.FindCause(); cause != nil {
			return term.CleanLine(cause.String()) + "; continue there: " + d.run.ResumeCommand()
		}
	}
	return "fix this, then continue: " + d.run.ResumeCommand()
}

// refusalText says why an answer was not accepted: on a terminal in plain words, elsewhere
// with the text that the file format fixes.
func refusalText(con *console.Console, why *graph.AnswerError, err error) string {
	headline := flow.AnswerHeadline(why.Reason)
	if headline == why.Reason || !con.Screen.IsTerminal() {
		return err.Error()
	}
	return fmt.Sprintf("the answer to %s was not accepted. %s", why.ID, headline)
}

// writeReport writes a report as JSON, alone or as the last line of a stream.
func writeReport(con *console.Console, format string, r *report, seq int64) {
	con.Answered = true
	var v any = r
	if format == console.FormatStream {
		line := resultLine{Seq: seq, Time: time.Now(), Kind: "result", Data: r}
		if r.Run != nil {
			line.Run = *r.Run
			line.Thread = r.thread
		}
		v = line
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // it contains only what JSON can represent
		b.Reset()
		b.WriteString("{}\n")
	}
	_, _ = con.Out.Write(b.Bytes())
}

// reportRefusal reports an error before a run has started, in the format that the user
// chose, and returns it.
func reportRefusal(con *console.Console, format string, err error) error {
	if (format == console.FormatJSON || format == console.FormatStream) && !con.Answered && err != nil {
		writeReport(con, format, emptyReport(ending.CodeOf(err), err), 1)
	}
	return err
}
