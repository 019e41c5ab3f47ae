package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/replay"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// replayOptions are the flags of "replay".
type replayOptions struct {
	agent, until, output, rules string
	live                        bool
}

func newReplayCommand(env *environment) *cobra.Command {
	var opts replayOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, _ *console.Console, _ *app.Process, opts replayOptions, args []string) error {
		return runReplay(ctx, env, opts, args)
	}, &cobra.Command{
		Use:   "replay RUN|FILE",
		Short: "Execute a run again, offline, and show the first difference",
		Long: `Executes a recorded run again with its agent as it is now. What the run got from models, scripts, tools, searches and
people comes from its journal: nothing is sent, written or run. If the agent still asks for the same, raddle says so. The
first prompt, input, argument, question, path or output that differs stops the replay with exit code 1.
FILE is a run that "raddle runs export" has written.

With --with-rules, nothing is executed. raddle judges each recorded call of a tool by the rules of another permissions.yaml,
instead of your own rules and those of the project, and lists what was decided then and what these rules would have
done. Answers that you gave for the whole run count for the calls after them. The exit code is 1 if a call that passed then would
ask or be denied.`,
		Example: `  raddle replay last
  raddle replay bug.raddle --agent ./triage
  raddle replay last --until review
  raddle replay last --live
  raddle replay last --with-rules strict.yaml`,
		Args:              checkArgCount(1, 1, "the id of a run, or a file,"),
		ValidArgsFunction: completeRuns(&env.opener, 1, nil),
	})
	flags := cmd.Flags()
	flags.StringVar(&opts.agent, "agent", "", "replay with the agent at `PATH` instead of the one that ran")
	flags.BoolVar(&opts.live, "live", false, "continue from the first difference with real models, tools and scripts, as a new run")
	flags.StringVar(&opts.until, "until", "", "stop before the node `NODE`")
	flags.StringVar(&opts.rules, "with-rules", "", "only judge the calls, by the permission rules of `FILE` (lists allow, ask, deny)")
	addOutputFlag(cmd, &opts.output, "write the result as `FORMAT`: text or json")
	return cmd
}

func runReplay(ctx context.Context, env *environment, opts replayOptions, args []string) error {
	if opts.rules != "" && (opts.live || opts.until != "") {
		return ending.BadUsage("leave --live and --until out", "--with-rules executes nothing, so it goes with neither --live nor --until")
	}
	job, err := newReplayJob(ctx, env.process, args[0], opts.agent)
	if err == nil && opts.live {
		err = checkLive(ctx, env.process, args[0])
	}
	if err != nil {
		return err
	}
	if opts.rules != "" {
		return judgeCalls(ctx, env.Console, env.process, job, opts)
	}
	job.Until = opts.until
	res, err := replay.Execute(ctx, job)
	if err != nil {
		return err
	}
	if err := env.PrintResult(opts.output, res, func() string { return res.Describe(env.Out.Paint) }); err != nil {
		return err
	}
	if opts.live && opts.until == "" && (res.Difference != nil || res.Ended != "") {
		return continueLive(ctx, env, res, job.Recording, opts.output)
	}
	if res.Difference != nil {
		return ending.Silent{Code: ending.Failed}
	}
	return nil
}

// judgeCalls implements --with-rules.
func judgeCalls(ctx context.Context, con *console.Console, p *app.Process, job replay.Job, opts replayOptions) error {
	res, err := replay.JudgeCalls(ctx, p, job, opts.rules)
	if err != nil {
		return err
	}
	width := 0
	if con.Out.IsTerminal() {
		width, _ = con.Out.Size()
	}
	if err := con.PrintResult(opts.output, res, func() string { return res.Describe(width, con.Out.Colors) }); err != nil {
		return err
	}
	if res.IsStricter() {
		return ending.Silent{Code: ending.Failed}
	}
	return nil
}

// checkLive returns an error if a recording came from elsewhere, and no one has accepted it: its answers would allow
// calls here.
func checkLive(ctx context.Context, p *app.Process, name string) error {
	if config.IsFile(p.Dirs.AbsPath(name)) {
		return failure.NewUsage("put it into the store, and look at it: raddle runs import "+wording.QuoteWord(name), "--live: the answers in %s would allow calls on this machine", name)
	}
	d, err := p.Runs.ReadRunDetail(ctx, name)
	if err == nil && d.Foreign != nil && (d.Foreign.Accepted == nil || !d.Foreign.Accepted.Whole) {
		err = failure.NewUsage("look at what it brings: raddle resume "+d.Run, "--live: run %s came from %s, and no one has accepted what it brings: its answers would allow calls on this machine", d.Run, d.Foreign.From)
	}
	return err
}

// continueLive continues a replayed run from its first difference, as a new run.
func continueLive(ctx context.Context, env *environment, res *replay.Result, rec *replay.Recording, format string) error {
	req, answers, err := res.NewLive(rec)
	if err != nil {
		return err
	}
	adjust := req.Adjust
	req.UIHooks = newUIHooks(ctx, env.Console, env.process, &env.foreground)
	req.Adjust = adjust
	run, err := startPrompted(ctx, &env.opener, req)
	if err != nil {
		return err
	}
	d := newDrive(env.Console, env.process, &env.foreground, run)
	d.format = format
	return d.runWithAnswers(answers)
}

// newReplayJob returns what to replay: a run of the store or an exported one, with the agent at a path, or its own if
// that is empty.
func newReplayJob(ctx context.Context, p *app.Process, name, agent string) (j replay.Job, err error) {
	if agent != "" {
		place, err := p.FindAgent(agent)
		if err != nil {
			return j, err
		}
		j.Agent = place.Dir
	}
	var f *runfile.File
	if path := p.Dirs.AbsPath(name); config.IsFile(path) {
		f, err = runfile.Load(path)
	} else {
		f, err = collectRun(ctx, p, name)
	}
	if err == nil {
		j.Recording, err = replay.NewRecording(ctx, f)
	}
	return j, err
}

// writeCase implements "test --from".
func writeCase(ctx context.Context, con *console.Console, p *app.Process, run string, args []string) error {
	if len(args) > 1 {
		return ending.BadUsage("name one directory, or none", "raddle test --from: unexpected argument %q", args[1])
	}
	job, err := newReplayJob(ctx, p, run, strings.Join(args, ""))
	if err != nil {
		return err
	}
	path, failures, err := replay.WriteCase(ctx, job)
	if err != nil {
		return err
	}
	for _, f := range failures {
		con.PrintWarning("the case does not pass yet: " + term.CleanText(f.Message))
	}
	con.PrintNote("raddle: a test case of run %s is in %s", job.Recording.Run, p.Dirs.ShortPath(path))
	con.PrintNote("next: raddle test %s", wording.QuoteWord(p.Dirs.ShortPath(path)))
	return nil
}
