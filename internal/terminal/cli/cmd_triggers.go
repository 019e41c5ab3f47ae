package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/triggerview"
)

// triggerOptions are the flags of the commands of triggers.
type triggerOptions struct {
	triggerview.EnableOptions
	off    bool
	limit  int
	output string
}

func newTriggersCommand(op *opener) *cobra.Command {
	var opts triggerOptions
	add := func(run runFunc[triggerOptions], use, short string, least, most int) *cobra.Command {
		return newCommand(op, &opts, run, &cobra.Command{Use: use, Short: short, Args: checkArgCount(least, most, "the name of a trigger or an agent")})
	}
	ls := add(func(ctx context.Context, con *console.Console, p *app.Process, o triggerOptions, _ []string) error {
		return triggerview.List(ctx, con, p, o.output)
	}, "ls", "List triggers with their next ticks and last runs", 0, 0)
	addOutputFlag(ls, &opts.output, "write them as `FORMAT`: text or json")
	enable := add(func(ctx context.Context, con *console.Console, p *app.Process, o triggerOptions, args []string) error {
		return triggerview.Enable(ctx, con, p, args[0], o.EnableOptions)
	}, "enable AGENT", "Show what the triggers of an agent start, ask, and let servers do it", 1, 1)
	enable.ValidArgsFunction = completeAgents(op)
	flags := enable.Flags()
	flags.StringVar(&opts.Hash, "hash", "", "do not ask: you have read what was shown for the files with `HASH`")
	opts.Run.AddFlags(flags, "each run")
	flags.Float64Var(&opts.Day.Money, "day-cost", 0, "spend at most `DOLLARS` in 24 hours, for each trigger")
	flags.IntVar(&opts.Day.Calls, "day-calls", 0, "call models at most `N` times in 24 hours, for each trigger")
	flags.IntVar(&opts.Day.Tokens, "day-tokens", 0, "use at most `N` tokens in 24 hours, for each trigger")
	pause := add(func(ctx context.Context, con *console.Console, p *app.Process, o triggerOptions, args []string) error {
		return triggerview.Pause(ctx, con, p, args[0], o.off)
	}, "pause TRIGGER", "Let a trigger start nothing until pause --off", 1, 1)
	pause.Flags().BoolVar(&opts.off, "off", false, "let it fire again; what came meanwhile does not happen")
	history := add(func(ctx context.Context, con *console.Console, p *app.Process, o triggerOptions, args []string) error {
		return triggerview.PrintHistory(ctx, con, p, append(args, "")[0], o.limit, o.output)
	}, "history [TRIGGER]", "Show what the newest ticks have done", 0, 1)
	history.Flags().IntVar(&opts.limit, "limit", 20, "show at most `N` ticks")
	addOutputFlag(history, &opts.output, "write them as `FORMAT`: text or json")
	return newGroup(op, &cobra.Command{
		Use: "triggers", Short: "Let agents start by themselves, and see what they did",
		Long: `The file of an agent says what starts it: a schedule, a webhook, an event, the end of another run. Nothing of it
happens until a person at this machine enables it, and only as long as the files stay as they were then. Servers of the
store (raddle serve) fire triggers, each tick once. Their runs are headless, within the budget that enabling names.`,
		Example: "  raddle triggers ls\n  raddle triggers enable report --max-cost 0.50 --day-cost 2\n  raddle triggers fire report/morning",
	}, ls, enable, add(func(ctx context.Context, con *console.Console, p *app.Process, _ triggerOptions, args []string) error {
		return triggerview.Disable(ctx, con, p, args[0])
	}, "disable TRIGGER", "Forget a trigger and its history; servers do not fire it any more", 1, 1),
		add(func(ctx context.Context, con *console.Console, p *app.Process, _ triggerOptions, args []string) error {
			return triggerview.Fire(ctx, con, p, args[0], append(args, "")[1])
		}, "fire TRIGGER [JSON]", "Fire a trigger now, with the data of its event", 1, 2),
		pause, history)
}
