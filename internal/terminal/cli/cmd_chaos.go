package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/chaosview"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/evalview"
	"raddle.dev/internal/terminal/lspview"
	"raddle.dev/internal/terminal/migrateview"
)

// This file has the commands of other packages that prove agents, and those for their files.

// A view is a command of another package, with its options.
type view interface {
	Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error
}

// newViewCommand completes the command of a view: its first word is an agent, and a signal ends it. output is where its
// format is, and usage describes it.
func newViewCommand(op *opener, v view, cmd *cobra.Command, output *string, usage string) *cobra.Command {
	cmd.Args = checkArgCount(1, -1, "the agent")
	cmd.ValidArgsFunction = completeAgents(op)
	addOutputFlag(cmd, output, usage)
	return bindView(op, v, cmd)
}

// bindView lets a command do what a view does, until a signal ends it.
func bindView(op *opener, v view, cmd *cobra.Command) *cobra.Command {
	return newCommand(op, &v, func(ctx context.Context, con *console.Console, p *app.Process, v view, args []string) error {
		ctx, stop := signalContext(ctx)
		defer stop()
		return v.Run(ctx, con, p, args)
	}, cmd)
}

func newChaosCommand(op *opener) *cobra.Command {
	var opts chaosview.Options
	return newViewCommand(op, &opts, chaosview.Describe(&opts), &opts.Output, "write the result as `FORMAT`: text or json")
}

func newEvalCommand(op *opener) *cobra.Command {
	var opts evalview.Options
	cmd := newViewCommand(op, &opts, evalview.Describe(&opts), &opts.Output, "write the results as `FORMAT`: text, json or junit")
	cmd.Args = checkArgCount(1, 1, "the agent")
	return cmd
}

func newDatasetCommand(op *opener) *cobra.Command {
	var opts evalview.AddOptions
	add := bindView(op, &opts, evalview.DescribeAdd(&opts))
	add.Args = checkArgCount(2, -1, "the data set or the run")
	return newGroup(op, &cobra.Command{Use: "dataset COMMAND", Short: "Make data sets of runs", Long: "Data sets are what raddle eval scores agents on. See: raddle help improving"}, add)
}

func newLSPCommand(op *opener) *cobra.Command {
	var opts lspview.ServerOptions
	return bindView(op, &opts, lspview.DescribeServer())
}

func newFmtCommand(op *opener) *cobra.Command {
	var opts lspview.FormatOptions
	cmd := bindView(op, &opts, lspview.DescribeFormat(&opts))
	cmd.Args = checkArgCount(1, -1, "the file or directory")
	return cmd
}

func newDiffCommand(op *opener) *cobra.Command {
	var opts migrateview.DiffOptions
	cmd := bindView(op, &opts, migrateview.DescribeDiff())
	cmd.Args = checkArgCount(1, 2, "the id of a run")
	cmd.ValidArgsFunction = completeRuns(op, 1, nil)
	addOutputFlag(cmd, &opts.Output, "write the changes as `FORMAT`: text or json")
	return cmd
}

func newRunsMigrateCommand(op *opener) *cobra.Command {
	var opts migrateview.MigrateOptions
	cmd := newViewCommand(op, &opts, migrateview.DescribeMigrate(&opts), &opts.Output, "write the runs as `FORMAT`: text or json")
	cmd.Args = checkArgCount(0, 1, "the agent")
	return cmd
}
