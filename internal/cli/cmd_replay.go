package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/config"
	"raddle.dev/internal/replay"
	"raddle.dev/internal/runfile"
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
	if err := env.printResult(opts.output, res, func() string { return res.Describe(env.out.Paint) }); err != nil {
		return err
	}
	if res.Difference != nil {
		return silentExit{exitFailed}
	}
	return nil
}

// readRecording reads a run of the store, or an exported one.
func readRecording(ctx context.Context, env *environment, name string) (*replay.Recording, error) {
	var f *runfile.File
	var err error
	if path := env.process.Dirs.AbsPath(name); config.IsFile(path) {
		f, err = runfile.Load(path)
	} else {
		f, err = collectRun(ctx, env, name)
	}
	if err != nil {
		return nil, err
	}
	return replay.NewRecording(ctx, f)
}
