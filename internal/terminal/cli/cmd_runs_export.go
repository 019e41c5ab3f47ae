package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/shareview"
)

// runsExportOptions are the flags of "runs export".
type runsExportOptions struct{ file string }

func newRunsExportCommand(op *opener) *cobra.Command {
	var opts runsExportOptions
	cmd := newCommand(op, &opts, runRunsExport, &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run to one file: its journal and the files of its agent",
		Long: `The file is text, one JSON object a line: a header with the run and the version of raddle, the files of the agent, and
the records of the journal, oldest first, with those of the runs that it was forked from. It contains no secret that
raddle knows. "raddle runs import" puts it into another store, and "raddle replay" executes it again.`,
		Example: `  raddle runs export last -o bug.raddle
  raddle runs export last | head -n 1`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 1, nil),
	})
	cmd.Flags().StringVarP(&opts.file, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

func runRunsExport(ctx context.Context, con *console.Console, p *app.Process, opts runsExportOptions, args []string) error {
	f, err := collectRun(ctx, p, args[0])
	if err != nil {
		return err
	}
	if opts.file == "" || opts.file == "-" {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			return err
		}
		_, err := con.Out.Write(b.Bytes())
		return err
	}
	path := p.Dirs.AbsPath(opts.file)
	if err := f.Save(path); err != nil {
		return ending.BadUsage("choose a file that can be written", "-o: %v", err)
	}
	con.PrintNote("raddle: run %s is in %s: %s", f.Run.Run, p.Dirs.ShortPath(path), f.Describe())
	return nil
}

func newRunsShareCommand(op *opener) *cobra.Command {
	var opts shareview.Options
	cmd := bindView(op, &opts, shareview.Describe(&opts))
	cmd.Args = checkArgCount(1, 1, "the id of a run")
	cmd.ValidArgsFunction = completeRuns(op, 1, nil)
	return cmd
}

// collectRun reads a run of the store without its secrets.
func collectRun(ctx context.Context, p *app.Process, run string) (*runfile.File, error) {
	return runfile.Collect(ctx, runfile.Source{Archive: p.Runs, Run: run, Version: app.Version(), Secrets: p.Tools.SecretSet(), Learn: p.NewLearner()})
}

func newRunsImportCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runRunsImport, &cobra.Command{
		Use:   "import FILE",
		Short: "Put an exported run into the store",
		Long: `The run gets the id that it had. If the store has the run already, nothing changes; another run with this id is not
replaced. raddle checks the whole file first. The files of the agent stay in the file: to continue the run,
or to replay it without the file, name the agent's directory with --agent. Nothing of the run counts before you
have seen, on a terminal, what it would do next: "raddle resume" shows that and asks.`,
		Example: `  raddle runs import bug.raddle`,
		Args:    checkArgCount(1, 1, "a file"),
	})
}

func runRunsImport(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	path := p.Dirs.AbsPath(args[0])
	f, err := runfile.Load(path)
	if err != nil {
		return err
	}
	st, err := p.Runs.OpenStore()
	if err != nil {
		return err
	}
	done, err := f.Import(ctx, st, path)
	if err != nil {
		return err
	}
	con.PrintNote("raddle: %s", done.Describe())
	return con.PrintResult(opts.output, done, func() string { return done.Run })
}
