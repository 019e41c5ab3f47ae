package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/tool"
)

func resumeCommand(env *environment) *cobra.Command {
	var (
		c        app.ResumeOptions
		answers  []string
		inDoubt  string
		output   string
		noStream bool
	)
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that waits, failed or was stopped",
		Long: `RUN is the id of a run, or a unique prefix of it. The run continues after its last recorded result.
The prompt, the model and the variables stay the same.`,
		Example: `  raddle resume 06ab --answer yes
  raddle resume 06ab --answer review=yes --answer budget=100
  raddle resume 06ab --accept-changes
  raddle resume 06ab --in-doubt skip`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(env, 1, func(r runs.Info) bool { return !r.Final && r.Status != runs.Running }),
		RunE: func(_ *cobra.Command, args []string) error {
			return reportRefusal(env, output, resumeRun(env, args[0], c, answers, &drive{format: output, still: noStream, inDoubt: tool.Doubt(inDoubt)}))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
	flags.StringVar(&inDoubt, "in-doubt", "", "what to do with calls that were interrupted: `retry`, skip or ask")
	flags.BoolVar(&c.AcceptChanges, "accept-changes", false, "continue although files of the agent have changed")
	flags.BoolVar(&c.Takeover, "takeover", false, "continue although a process that this machine cannot see, such as one of another machine or container, still holds the run")
	flags.StringVar(&c.Agent, "agent", "", "where the agent is now: `PATH`")
	flags.StringVar(&output, "output", formatText, "write the result as `FORMAT`: text, json or stream-json")
	flags.BoolVarP(&noStream, "no-stream", "S", false, "show no text and no live lines on the terminal before the end")
	completeWords(cmd, "output", formatText, formatJSON, formatStream)
	completeWords(cmd, "in-doubt", tool.Doubts...)
	_ = cmd.RegisterFlagCompletionFunc("answer", env.completeAnswers)
	return cmd
}

// resumeRun implements the command "resume".
func resumeRun(env *environment, id string, c app.ResumeOptions, answers []string, d *drive) error {
	if err := checkFormat(d.format, formatText, formatJSON, formatStream); err != nil {
		return err
	}
	if _, ok := tool.ParseDoubt(string(d.inDoubt)); !ok && d.inDoubt != "" {
		return badUsage(suggestWord(string(d.inDoubt), tool.Doubts), "--in-doubt %s: it must be one of %s", d.inDoubt, joinWords(tool.Doubts))
	}
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	c.UIHooks = newUIHooks(env)
	c.InDoubt = d.inDoubt
	run, err := p.ResumeRun(context.Background(), id, c)
	if over, ok := errors.AsType[*runs.EndedError](err); ok { // the process that created the result may have died before it printed it
		err = errors.Join(err, printOver(env, over, d.format))
	}
	if err != nil {
		return err
	}
	d.env, d.run = env, run
	return d.runWithAnswers(answers)
}

// printOver prints the result of a run that is over, as the run did.
func printOver(env *environment, over *runs.EndedError, format string) error {
	if format == formatText {
		env.out.PrintText(over.Output)
		return nil
	}
	detail, err := env.process.Runs.ReadRunDetail(context.Background(), over.ID)
	if err != nil {
		return err
	}
	r := emptyReport(exitStale, over)
	r.thread = detail.Snapshot.Thread
	r.Run, r.Agent, r.Status = &detail.Run, &detail.Agent, detail.Snapshot.Status.String()
	if over.Status == graph.Done {
		o := flow.OutcomeOf(graph.Result{Status: graph.Done, Value: detail.Snapshot.Result})
		r.Output, r.ExitCode, r.Error = &o.Output, o.ExitCode, nil
	}
	if err := fromJournal(env, detail, r); err != nil {
		return err
	}
	writeReport(env, format, r, 1)
	return nil
}
