package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

// inboxOptions are the flags of "inbox".
type inboxOptions struct {
	output   string
	noResume bool
	limit    int
}

func newInboxCommand(env *environment) *cobra.Command {
	var opts inboxOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, _ *console.Console, _ *app.Process, opts inboxOptions, args []string) error {
		return runInbox(ctx, env.Console, env.process, &env.foreground, opts, args)
	}, &cobra.Command{
		Use:     "inbox",
		Aliases: []string{"answer"},
		Short:   "Answer the open questions of all runs",
		Long: `On a terminal, raddle asks the questions one after the other, the oldest first. When you have answered those of
a run, it continues here; then the next run asks. Esc leaves a question open, Ctrl-C ends the command.
raddle does not ask the questions of a run that another process drives: answer them there.
It begins with the runs that have waited longest, of which it takes at most 100 at once: -n takes more or fewer.

If standard output is not a terminal, or with --output json, raddle lists the questions and asks nothing.`,
		Example: `  raddle inbox
  raddle inbox --no-resume
  raddle inbox --output json`,
		Args: checkArgCount(0, 0, ""),
	})
	cmd.Flags().BoolVar(&opts.noResume, "no-resume", false, "only record the answers: a server of the store continues the runs, or raddle resume")
	cmd.Flags().IntVarP(&opts.limit, "limit", "n", -1, "the questions of at most `N` runs; 0: all (default 100, all as json)")
	addTraceFlag(cmd, &env.opener)
	addOutputFlag(cmd, &opts.output, "write the questions as `FORMAT`: text or json")
	return cmd
}

func runInbox(ctx context.Context, con *console.Console, p *app.Process, fg *foreground, opts inboxOptions, _ []string) error {
	if opts.limit < 0 && opts.output == console.FormatText {
		opts.limit = defaultRuns
	}
	list, damaged, more, err := p.Runs.ListOpenRuns(ctx, runs.OpenPoint{}, max(opts.limit, 0))
	if err != nil {
		return err
	}
	warnDamaged(con, damaged)
	if more {
		defer con.PrintNote("more runs wait; see the questions of all with: -n 0")
	}
	if opts.output == console.FormatJSON {
		return con.PrintJSON(inboxLines(list))
	}
	if len(list) == 0 {
		con.PrintNote("no open questions")
		return nil
	}
	if con.NewPrompter() == nil || !con.Out.IsTerminal() {
		printInbox(con, list)
		return nil
	}
	return answerInbox(ctx, con, p, fg, list, opts.noResume)
}

// warnDamaged says which runs cannot be read. They may have questions.
func warnDamaged(con *console.Console, damaged []runs.Info) {
	for _, r := range damaged {
		con.PrintNote("warning: run %s is damaged, and its questions cannot be read: %s", r.Run, r.Reason)
	}
	if len(damaged) > 0 {
		con.PrintNote("next: raddle store check")
	}
}

// inboxLine is an open question as "inbox --output json" writes it.
type inboxLine struct {
	overview.Question
	Resume *string `json:"resume"` // the command that answers it; null if a process drives the run
}

func inboxLines(list []runs.OpenRun) []inboxLine {
	lines := []inboxLine{}
	for _, r := range list {
		for _, q := range overview.ListQuestions(&r) {
			l := inboxLine{Question: q}
			if r.Status != runs.Running {
				l.Resume = new("raddle resume " + r.Run)
				if q.Asked.Kind != flow.KindTrust { // no flag consents
					*l.Resume += " --answer " + answerWord(r.Open, q.Asked)
				}
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// answerWord returns the words with which a command line answers one of the open questions of a run.
func answerWord(open []runs.AskedQuestion, q graph.Question) string {
	if len(open) == 1 {
		return "TEXT"
	}
	return wording.QuoteWord(q.ID + "=TEXT")
}

// printInbox writes the open questions as a table.
func printInbox(con *console.Console, list []runs.OpenRun) {
	table := term.NewTable(
		term.NewColumn("RUN", func(o inboxRow) string { return o.run.Run }),
		term.NewColumn("AGENT", func(o inboxRow) string { return runview.NameAgent(&o.run.Info) }),
		term.NewColumn("SINCE", func(o inboxRow) string { return runview.FormatAge(time.Since(o.Since)) }),
		term.NewColumn("QUESTION", inboxRow.describe),
	)
	for i := range list {
		for _, q := range list[i].Open {
			table.AddRow(inboxRow{&list[i], q})
		}
	}
	con.PrintTable(table)
	con.PrintNote("next: raddle inbox on a terminal, or raddle resume RUN --answer TEXT")
}

// An inboxRow is a row of the inbox.
type inboxRow struct {
	run *runs.OpenRun
	runs.AskedQuestion
}

// describe returns the question in one line.
func (o inboxRow) describe() string {
	first, _, _ := strings.Cut(term.CleanText(o.Prompt), "\n")
	text := question.FormatName(o.Question) + ": " + wording.CutText(first, 60, "…")
	if len(o.Options) > 0 {
		text += " (" + term.CleanText(strings.Join(o.Options, ", ")) + ")"
	}
	if !o.Due.IsZero() {
		text += ", " + runview.FormatUntil(o.Due)
	}
	if o.run.Status == runs.Running {
		text += " " + runview.DescribeWait(o.run.Info)
	}
	return text
}

// An inbox asks the open questions of runs, one run after the other.
type inbox struct {
	console    *console.Console
	process    *app.Process
	foreground *foreground
	noResume   bool
	ended      bool  // the person has left the inbox
	failed     error // of the first run that did not continue as it should
}

// answerInbox asks the questions of runs. The error has the exit code of the first run that failed.
func answerInbox(ctx context.Context, con *console.Console, p *app.Process, fg *foreground, list []runs.OpenRun, noResume bool) error {
	b := &inbox{console: con, process: p, foreground: fg, noResume: noResume}
	for i := range list {
		r := &list[i]
		con.Screen.PrintLine(con.Screen.Paint(term.Cyan, fmt.Sprintf("(%d/%d) run %s, agent %s, %s", i+1, len(list), r.Run, term.CleanText(r.Agent), runview.FormatAge(time.Since(r.Since)))))
		err := b.answerOpen(ctx, r)
		b.noteFailure(err)
		if b.ended {
			return ending.Silent{Code: ending.Interrupted}
		}
	}
	return b.failed
}

// answerOpen asks the questions of a run, whether or not another process drives it.
func (b *inbox) answerOpen(ctx context.Context, r *runs.OpenRun) error {
	if r.Status != runs.Running {
		err := b.answerRun(ctx, r.Run)
		if !errors.As(err, new(*runs.BusyError)) {
			return err
		}
	}
	detail, err := b.process.Runs.ReadRunDetail(ctx, r.Run) // a list may have the beginning of a long question only
	if err != nil {
		return err
	}
	stop := newStopper(b.console, b.foreground)
	defer stop.close()
	ask := &asker{console: b.console, prompter: b.console.NewPrompter(), stopped: stop.isStopped}
	ask.skip = func(err error) { b.ended = b.ended || errors.Is(err, term.ErrInterrupted) }
	answers, _, err := ask.answerQuestions(stop.asking, detail.Snapshot.Questions)
	if err != nil || len(answers) == 0 {
		return err
	}
	return sendAnswers(ctx, b.console, b.process, r.Run, answers, &runs.BusyError{Run: r.Run})
}

// noteFailure prints an error of a run, and keeps its exit code. A run that waits has not failed.
func (b *inbox) noteFailure(err error) {
	code := ending.CodeOf(err)
	if err == nil || code == ending.Waiting {
		return
	}
	if !errors.As(err, &ending.Silent{}) {
		ending.PrintError(b.console, b.process, err)
	}
	if b.failed == nil {
		b.failed = ending.Silent{Code: code}
	}
}

// answerRun asks the questions of a run, and continues it or records the answers.
func (b *inbox) answerRun(ctx context.Context, id string) error {
	run, err := b.process.ResumeRun(ctx, id, app.ResumeOptions{UIHooks: newUIHooks(ctx, b.console, b.process, b.foreground)})
	if err != nil {
		return err
	}
	if len(run.Questions) == 0 {
		run.Close()
		b.console.PrintNote("raddle: it was answered in the meantime")
		return nil
	}
	d := newDrive(b.console, b.process, b.foreground, run)
	d.skip = func(err error) { b.ended = b.ended || errors.Is(err, term.ErrInterrupted) }
	if b.noResume {
		err = b.recordAnswers(d)
	} else {
		err = d.runWithAnswers(nil)
	}
	b.ended = b.ended || d.stop.isStopped()
	return err
}

// recordAnswers asks the questions of a run and records the answers, without continuing it.
func (b *inbox) recordAnswers(d *drivenRun) error {
	defer d.run.Close()
	d.stop = newStopper(b.console, b.foreground)
	defer d.stop.close()
	answers, _, err := d.newAsker().answerQuestions(d.stop.asking, d.run.Questions)
	if err != nil || len(answers) == 0 {
		return err
	}
	recording, served := runs.WithServers(d.stop.ctx, b.process.Runs, d.run.Thread, d.run.ID)
	if _, err := app.RecordChange(recording, b.process, app.RunChange{Run: d.run, Answers: answers}); err != nil {
		return err
	}
	if served {
		b.console.PrintNote("raddle: %s of run %s recorded; a server of the store continues it", wording.FormatCount(len(answers), "answer"), d.run.ID)
		return nil
	}
	b.console.PrintNote("raddle: %s of run %s recorded\nnext: %s", wording.FormatCount(len(answers), "answer"), d.run.ID, d.run.ResumeCommand())
	return nil
}
