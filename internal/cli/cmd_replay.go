package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/replay"
	"raddle.dev/internal/runfile"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// replayOptions are the flags of "replay".
type replayOptions struct {
	agent, until, output string
	live                 bool
}

func newReplayCommand(env *environment) *cobra.Command {
	var opts replayOptions
	cmd := newCommand(env, &opts, runReplay, &cobra.Command{
		Use:   "replay RUN|FILE",
		Short: "Execute a run again, offline, and show the first difference",
		Long: `Executes a recorded run again with its agent as it is now. What the run got from models, scripts, tools, searches and
people comes from its journal: nothing is sent, written or run. If the agent still asks for the same, raddle says so. The
first prompt, input, argument, question, path or output that differs stops the replay with exit code 1.
FILE is a run that "raddle runs export" has written.`,
		Example: `  raddle replay last
  raddle replay bug.raddle --agent ./triage
  raddle replay last --until review`,
		Args:              checkArgCount(1, 1, "the id of a run, or a file,"),
		ValidArgsFunction: completeRuns(env, 1, nil),
	})
	flags := cmd.Flags()
	flags.StringVar(&opts.agent, "agent", "", "replay with the agent at `PATH` instead of the one that ran")
	flags.StringVar(&opts.until, "until", "", "stop before the node `NODE`")
	addOutputFlag(cmd, &opts.output, "write the result as `FORMAT`: text or json")
	return cmd
}

func runReplay(ctx context.Context, env *environment, opts replayOptions, args []string) error {
	rec, err := readRecording(ctx, env, args[0])
	if err != nil {
		return err
	}
	job := replay.Job{Recording: rec, Until: opts.until}
	if opts.agent != "" {
		place, err := env.process.FindAgent(opts.agent)
		if err != nil {
			return err
		}
		job.Agent = place.Dir
	}
	res, err := replay.Execute(ctx, job)
	if err != nil {
		return err
	}
	if err := env.printResult(opts.output, res, func() string { return describeReplay(env, res) }); err != nil {
		return err
	}
	if res.Difference != nil {
		return silentExit{exitFailed}
	}
	return nil
}

// readRecording reads a run of the store, or an exported one.
func readRecording(ctx context.Context, env *environment, name string) (*replay.Recording, error) {
	p := env.process
	if config.IsFile(p.Dirs.AbsPath(name)) {
		f, err := readRunFile(env, name)
		if err != nil {
			return nil, err
		}
		return replay.NewRecording(ctx, f)
	}
	f, err := runfile.Collect(ctx, runfile.Source{Archive: p.Runs, Run: name, Version: app.Version(), Secrets: p.Tools.SecretSet(), Learn: p.LearnSecrets})
	if err != nil {
		return nil, err
	}
	return replay.NewRecording(ctx, f)
}

// describeReplay returns the result of a replay for people.
func describeReplay(env *environment, res *replay.Result) string {
	var b strings.Builder
	for _, note := range res.Notes {
		fmt.Fprintf(&b, "note: %s\n", plainText(note))
	}
	d := res.Difference
	if d == nil {
		fmt.Fprintf(&b, "%s, %s, no difference", wording.FormatCount(res.Steps, "step"), wording.FormatCount(res.Effects, "effect"))
		if res.Ended != "" {
			b.WriteString("; " + plainText(res.Ended))
		}
		return b.String()
	}
	fmt.Fprintf(&b, "%s\n", env.out.Paint(term.Red, plainText(d.Error())))
	for line := range strings.Lines(plainText(d.Diff())) {
		style := term.Dim
		switch line[0] {
		case '+':
			style = term.Green
		case '-':
			style = term.Red
		}
		fmt.Fprintf(&b, "  %s\n", env.out.Paint(style, strings.TrimRight(line, "\n")))
	}
	if d.Recorded != "" {
		fmt.Fprintf(&b, "recorded answer (%s@%d): %s\n", d.Run, d.Record, wording.CutText(strings.Join(strings.Fields(plainText(d.Recorded)), " "), 200, "…"))
	}
	for _, c := range res.Changes {
		fmt.Fprintf(&b, "since then: %s\n", plainText(c))
	}
	fmt.Fprintf(&b, "after %s and %s without a difference", wording.FormatCount(res.Steps, "step"), wording.FormatCount(res.Effects, "effect"))
	return b.String()
}
