package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/sandbox"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/doctor"
	"raddle.dev/internal/terminal/ending"
)

// doctorOptions are the flags of "doctor".
type doctorOptions struct {
	online bool
	output string
}

func newDoctorCommand(op *opener) *cobra.Command {
	var opts doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [AGENT]",
		Short: "Check that everything works, and say what to do if it does not",
		Long: `It checks the configuration, the key of your model, the store of runs, the programs that scripts need and the terminal; with an agent
also its files, models, tools and MCP servers, which it starts. --online sends one short request to the model. The exit code is 0 if
nothing is marked ✗.`,
		Example: `  raddle doctor
  raddle doctor explore --online`,
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completeAgents(op),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDoctor(cmd.Context(), op, opts, args) },
	}
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.online, "online", false, "send one short request to the model, without asking first")
	return cmd
}

// runDoctor also works with an invalid configuration. The exit code is that of the first error.
func runDoctor(ctx context.Context, op *opener, opts doctorOptions, args []string) error {
	d := &doctor.Doctor{Process: op.openWithFaults()}
	d.CheckVersion()
	d.CheckConfig(op.problem)
	if len(args) == 0 {
		checkReply(ctx, op.Console, op.process, d, d.CheckModels([]string{op.process.Config.Model}), opts)
	} else if a := d.CheckAgent(args[0]); a != nil {
		checkReply(ctx, op.Console, op.process, d, d.CheckModels(a.Models()), opts)
		d.CheckTools(ctx, a)
		d.CheckKnowledge(ctx, args[0])
	}
	d.CheckStore(ctx)
	d.CheckPrograms()
	d.CheckBox(ctx)
	if opts.output == console.FormatText {
		d.CheckTerminal(op.Screen, console.ShowsLinks(os.Getenv))
	}
	var failed error
	for i := range d.Results {
		if r := &d.Results[i]; r.Err != nil {
			r.Next = cmp.Or(r.Next, ending.NextStep(op.process, r.Err))
			if failed == nil {
				failed = ending.Silent{Code: ending.CodeOf(r.Err)}
			}
		}
	}
	if err := op.PrintResult(opts.output, d.Results, func() string { return doctor.FormatResults(op.Out.Colors, d.Results) }); err != nil {
		return err
	}
	return failed
}

// checkReply sends a request to a model, unless it is "", if the user wants that.
func checkReply(ctx context.Context, con *console.Console, p *app.Process, d *doctor.Doctor, id string, opts doctorOptions) {
	if id == "" {
		return
	}
	if !opts.online {
		g := newGuide(con, p)
		if opts.output != console.FormatText || g.Prompter == nil {
			return
		}
		if yes, err := g.AskYesNo(ctx, "Send one short request to "+id+" to see whether it answers?"); err != nil || !yes {
			return
		}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	d.CheckReply(ctx, id)
}

func newSandboxCommand(op *opener) *cobra.Command {
	run := func(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
		ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer cancel()
		code, err := sandbox.RunCommand(ctx, p.Tools, p.Dirs.Work, args, con.Out, con.Screen)
		if err == nil && code != 0 {
			err = ending.Silent{Code: code}
		}
		return err
	}
	cmd := newCommand(op, &noOptions{}, run, &cobra.Command{
		Use:   "sandbox -- COMMAND...",
		Short: "Run a command as an agent's commands run: in a box",
		Long: `The command reads everything but secrets, writes the current directory, a directory of temporary files and caches that are thrown away,
and reaches the hosts that rules allow. What it wrote is moved into the current directory when it has ended; files that run later, such as
hooks of git, are held back. The exit code is that of the command.`,
		Example: "  raddle sandbox -- go test ./...\n  raddle sandbox -- bash -c 'echo x > /etc/motd'\n  raddle sandbox explain",
		Args:    cobra.MinimumNArgs(1),
	})
	explain := func(_ context.Context, con *console.Console, p *app.Process, _ noOptions, _ []string) error {
		text, err := sandbox.ExplainBox(p.Tools, p.Dirs.Work)
		if err == nil {
			con.Out.PrintText(text)
		}
		return err
	}
	cmd.AddCommand(newCommand(op, &noOptions{}, explain, &cobra.Command{
		Use:     "explain",
		Short:   "Say what the box allows here",
		Example: "  raddle sandbox explain",
		Args:    checkArgCount(0, 0, ""),
	}))
	return cmd
}
