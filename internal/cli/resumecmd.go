package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

func (sh *shell) resumeCommand() *cobra.Command {
	var (
		c        app.Continue
		answers  []string
		output   string
		noStream bool
	)
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Continue a run that waits, failed, was stopped or was killed",
		Long: `RUN is the id of a run, or enough of its beginning. What the run has recorded is not done again.
Everything else is as it was started: flags cannot change the prompt, the model or the variables.`,
		Example: `  raddle resume 06ab --answer yes
  raddle resume 06ab --answer review=yes --answer budget=100
  raddle resume 06ab --accept-changes`,
		Args:              want(1, 1, "the id of a run"),
		ValidArgsFunction: sh.completeRuns(1, func(r app.RunInfo) bool { return !r.Final && r.Status != app.Running }),
		RunE: func(_ *cobra.Command, args []string) error {
			return sh.refuse(output, sh.resumeRun(args[0], c, answers, &drive{format: output, still: noStream}))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
	flags.BoolVar(&c.AcceptChanges, "accept-changes", false, "continue although files of the agent have changed")
	flags.StringVar(&c.Agent, "agent", "", "where the agent is now: `PATH`")
	flags.StringVar(&output, "output", formatText, "write the result as `FORMAT`: text, json or stream-json")
	flags.BoolVarP(&noStream, "no-stream", "S", false, "show no text and no changing line on the terminal before the end")
	fixed(cmd, "output", formatText, formatJSON, formatStream)
	_ = cmd.RegisterFlagCompletionFunc("answer", sh.completeAnswers)
	return cmd
}

// resumeRun is the command "resume".
func (sh *shell) resumeRun(id string, c app.Continue, answers []string, d *drive) error {
	if err := checkFormat(d.format, formatText, formatJSON, formatStream); err != nil {
		return err
	}
	p, err := sh.app()
	if err != nil {
		return err
	}
	c.Surroundings = sh.around()
	run, err := p.Resume(context.Background(), id, c)
	if over, ok := errors.AsType[*app.OverError](err); ok && d.format == formatText {
		sh.out.text(over.Output) // the process that made it may have died before it printed it
	}
	if err != nil {
		return err
	}
	d.sh, d.run = sh, run
	return d.begin(answers)
}
