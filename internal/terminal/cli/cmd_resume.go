package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runlimits"
	"raddle.dev/tool"
)

// resumeOptions are the flags of "resume".
type resumeOptions struct {
	noBox bool
	app.ResumeOptions
	answers  []string
	inDoubt  string
	mode     string
	output   string
	raw      bool
	noStream bool

	onlyFailed bool
	limits     runlimits.Limits
}

func newResumeCommand(env *environment) *cobra.Command {
	var opts resumeOptions
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that waits, failed or was stopped",
		Long: `RUN is the id of a run, or a unique prefix of it; last is the newest run, and last~1 the one before it.
The run continues after its last recorded result. The prompt, the model and the variables stay the same.
A run that has failed because a node before had given no data, such as a reply that was not JSON, continues at that node.
--only-failed repeats only the failed items of a map. If the run continued without them (on_failure: collect or skip), that
happens in a copy of the run, in which what follows the map runs again.`,
		Example: `  raddle resume last --answer yes
  raddle resume last
  raddle resume last --answer review=yes --answer budget=100
  raddle resume last --accept-changes
  raddle resume last --in-doubt skip
  raddle resume last --only-failed`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(&env.opener, 1, func(r runs.Info) bool { return !r.Final && r.Status != runs.Running }),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reportRefusal(env.Console, opts.output, runResume(cmd.Context(), env, opts, args))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
	flags.StringVar(&opts.inDoubt, "in-doubt", "", "what to do with calls that were interrupted: `retry`, skip or ask")
	flags.BoolVar(&opts.AcceptChanges, "accept-changes", false, "continue although files of the agent have changed")
	flags.BoolVar(&opts.onlyFailed, "only-failed", false, "repeat the failed items of a map, and nothing else that is done")
	flags.BoolVar(&opts.Takeover, "takeover", false, "continue although a process that this machine cannot see, such as one of another machine or container, still holds the run")
	flags.StringVar(&opts.Agent, "agent", "", "where the agent is now: `PATH`")
	addOutputFlag(cmd, &opts.output, "write the result as `FORMAT`: text, json or stream-json")
	flags.BoolVar(&opts.raw, "raw", false, "show replies on the terminal as they are written, without formatting their Markdown")
	addTraceFlag(cmd, &env.opener)
	flags.BoolVarP(&opts.noStream, "no-stream", "S", false, "show no text and no live lines on the terminal before the end")
	opts.limits.AddFlags(flags, "the whole run")
	addNoBoxFlag(cmd, &opts.noBox)
	addModeFlag(cmd, &opts.mode, "what runs without a question from now on: `MODE` plan, ask, edits or box (default: as before)")
	completeWords(cmd, "in-doubt", tool.Doubts...)
	_ = cmd.RegisterFlagCompletionFunc("answer", completeAnswers(&env.opener))
	return cmd
}

func runResume(ctx context.Context, env *environment, opts resumeOptions, args []string) error {
	doubt, ok := tool.ParseDoubt(opts.inDoubt)
	if !ok && opts.inDoubt != "" {
		return ending.BadChoice("--in-doubt", opts.inDoubt, tool.Doubts)
	}
	mode, err := parseMode(opts.mode)
	if err != nil {
		return err
	}
	if err := env.openProcess(); err != nil {
		return err
	}
	env.process.Tools.NoBox = opts.noBox
	opts.UIHooks = newUIHooks(ctx, env.Console, env.process, &env.foreground)
	opts.Budget, opts.Deadline = opts.limits.Limits, opts.limits.Deadline
	opts.InDoubt = doubt
	opts.Mode = mode
	run, err := resumeOrRepeat(ctx, env, &opts, args[0])
	// the process that created the result may have died before it printed it
	if over, ok := errors.AsType[*runs.EndedError](err); ok {
		if len(opts.answers) > 0 {
			err = runs.ExplainAnswered(ctx, env.process.Runs, over.ID, []string{strings.SplitN(opts.answers[0], "=", 2)[0], ""}, err)
		}
		err = errors.Join(err, printOver(ctx, env.Console, env.process, over, opts.output))
	}
	if errors.As(err, new(*runs.BusyError)) && len(opts.answers) > 0 {
		return handOverAnswers(ctx, env, args[0], opts.answers, err)
	}
	if err != nil {
		return err
	}
	d := newDrive(env.Console, env.process, &env.foreground, run)
	d.format = opts.output
	d.still = opts.noStream
	d.raw = opts.raw
	d.inDoubt = doubt
	return d.runWithAnswers(opts.answers)
}

// resumeOrRepeat prepares to continue a run, at the cause of its failure if that is known, or to repeat what has failed in
// it.
func resumeOrRepeat(ctx context.Context, env *environment, opts *resumeOptions, id string) (*app.Run, error) {
	prepare := env.process.ResumeAtCause
	if opts.onlyFailed {
		prepare = env.process.RepeatFailed
	}
	run, said, err := prepare(ctx, id, opts.ResumeOptions)
	if err == nil && said != "" {
		env.PrintNote("raddle: %s", term.CleanLine(said))
	}
	return run, err
}

// handOverAnswers gives answers of the command line to the process that drives a run. busy says that there is one.
func handOverAnswers(ctx context.Context, env *environment, id string, flags []string, busy error) error {
	detail, err := env.process.Runs.ReadRunDetail(ctx, id)
	if err != nil {
		return err
	}
	open := graph.ForPeople(detail.Snapshot.Questions)
	if len(open) == 0 {
		return busy
	}
	given, err := question.ParseAnswers(flags, question.NamesOf(open, graph.Structure{}))
	if err != nil {
		return err
	}
	ask := &asker{console: env.Console, given: given, stopped: func() bool { return true }}
	answers, _, err := ask.answerQuestions(ctx, open)
	if err != nil {
		return err
	}
	if unused := given.ListUnused(); len(unused) > 0 {
		return ending.BadUsage("the open questions: "+strings.Join(idsOf(open), ", "), "--answer %s: run %s has no such question open", unused[0], detail.Run)
	}
	return sendAnswers(ctx, env.Console, env.process, detail.Run, answers, busy)
}

// idsOf returns the ids of questions.
func idsOf(open []graph.Question) (ids []string) {
	for _, q := range open {
		ids = append(ids, q.ID)
	}
	return ids
}

// sendAnswers gives answers to the process that drives a run. busy says that there is one.
func sendAnswers(ctx context.Context, con *console.Console, p *app.Process, run string, answers []graph.Answer, busy error) error {
	handed, err := p.SendAnswers(ctx, run, answers)
	switch {
	case err != nil:
		return runs.ExplainAnswered(ctx, p.Runs, run, []string{answers[0].ID}, err)
	case !handed:
		return errors.Join(busy, errors.New("it has just stopped: answer again"))
	}
	con.PrintNote("raddle: %s of run %s recorded; the process that drives it continues", wording.FormatCount(len(answers), "answer"), run)
	return nil
}

// printOver prints the result of a run that is over, as the run did.
func printOver(ctx context.Context, con *console.Console, p *app.Process, over *runs.EndedError, format string) error {
	if format == console.FormatText {
		con.Out.PrintExact(over.Output)
		return nil
	}
	detail, err := p.Runs.ReadView(ctx, over.ID)
	if err != nil {
		return err
	}
	r, err := viewReport(p, detail)
	if err != nil {
		return err
	}
	writeReport(con, format, r, 1)
	return nil
}
