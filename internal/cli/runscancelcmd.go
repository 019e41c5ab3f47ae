package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
)

func runsCancelCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel RUN...",
		Short: "End runs permanently, and keep their journals",
		Long: `raddle stops the process that drives the run, as SIGTERM does, and waits for it. You cannot resume the run
after that, but you can show, compare and fork it.`,
		Example:           `  raddle runs cancel 06ab`,
		Args:              checkArgCount(1, -1, "the id of a run"),
		ValidArgsFunction: completeRuns(env, 0, func(r runs.Info) bool { return !r.Final }),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			for _, id := range args {
				if id, err = p.Runs.CancelRun(context.Background(), id); err != nil {
					return err
				}
				if !env.quiet {
					env.err.PrintLine("cancelled run " + id)
				}
			}
			return nil
		},
	}
}

func runsExportCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "export RUN",
		Short: "Write the journal of a run as JSON, one record a line",
		Long: `The first line describes the run. Each other line is a record: its content, and its two parts, head and
data, as they are in the store, in base64.`,
		Example:           `  raddle runs export 06ab > run.jsonl`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(env, 1, nil),
		RunE:              func(_ *cobra.Command, args []string) error { return exportRun(env, args[0]) },
	}
}

// exportedRecord is a record as "runs export" writes it.
type exportedRecord struct {
	historyLine
	Head []byte `json:"head"`
	Data []byte `json:"data"`
}

func exportRun(env *environment, id string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	d, err := p.Runs.ReadRunDetail(context.Background(), id)
	if err != nil {
		return err
	}
	err = env.printJSON(struct {
		Format   string    `json:"format"`
		Run      runs.Info `json:"run"`
		Version  string    `json:"version"` // of raddle
		Exported time.Time `json:"exported"`
	}{"raddle-journal-1", d.Info, app.Version(), time.Now().UTC()})
	if err != nil {
		return err
	}
	return p.Runs.ExportRecords(context.Background(), d.Run, func(e graph.Entry, r graph.Record) error {
		return env.printJSON(exportedRecord{lineOf(&e), r.Head, r.Data})
	})
}
