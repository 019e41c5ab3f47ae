package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph/history"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// runsRmOptions are the flags of "runs rm".
type runsRmOptions struct{ finished, sessions bool }

func newRunsRmCommand(op *opener) *cobra.Command {
	var opts runsRmOptions
	cmd := newCommand(op, &opts, runRunsRm, &cobra.Command{
		Use:   "rm RUN...",
		Short: "Delete runs permanently",
		Long: `Removes runs with all their records. --all-finished removes the runs that are over, but not sessions: a session
is a conversation, and is removed only if you name it or add --sessions.`,
		Example: `  raddle runs rm last last~1
  raddle runs rm --all-finished`,
		ValidArgsFunction: completeRuns(op, 0, func(r runs.Info) bool { return r.Status != runs.Running }),
	})
	cmd.Flags().BoolVar(&opts.finished, "all-finished", false, "remove all runs that are over; those that wait or failed stay, and so do sessions")
	cmd.Flags().BoolVar(&opts.sessions, "sessions", false, "with --all-finished: remove sessions, too, whose last turn is over")
	return cmd
}

func runRunsRm(ctx context.Context, con *console.Console, p *app.Process, opts runsRmOptions, args []string) error {
	switch {
	case opts.finished && len(args) > 0:
		return ending.BadUsage("leave one of them out", "--all-finished already selects the runs")
	case opts.finished:
		return removeFinished(ctx, con, p, opts.sessions)
	case opts.sessions:
		return ending.BadUsage("add --all-finished, or name the sessions", "--sessions goes with --all-finished")
	case len(args) == 0:
		return ending.BadUsage("usage: raddle runs rm RUN...", "raddle runs rm: the id of a run is missing")
	}
	ids, err := resolveLastWords(ctx, p, args)
	if err != nil {
		return err
	}
	return removeRuns(ctx, con, p, ids)
}

// resolveLastWords replaces last and last~N by the ids that they mean now: the first of several
// runs that a command changes may move the others in the list.
func resolveLastWords(ctx context.Context, p *app.Process, refs []string) ([]string, error) {
	ids := slices.Clone(refs)
	for i, ref := range refs {
		id, err := p.Runs.ResolveLast(ctx, ref)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}

// removeFinished removes the runs that are over, and with sessions also the sessions whose
// last turn is over.
func removeFinished(ctx context.Context, con *console.Console, p *app.Process, sessions bool) error {
	list, err := p.Runs.ListEnded(ctx)
	if err != nil {
		return err
	}
	var ids []string
	kept := 0
	for _, r := range list {
		if r.Session == "" {
			ids = append(ids, r.Run)
		} else {
			kept++
		}
	}
	if err := p.Runs.RemoveRuns(ctx, ids, noteRemoved(con)); err != nil {
		return err
	}
	if !sessions {
		if kept > 0 {
			con.PrintNote("raddle: %s not removed; to remove sessions, too: raddle runs rm --all-finished --sessions", wording.FormatCount(kept, "session"))
		}
		return compactStore(ctx, con, p)
	}
	all, err := p.Runs.ListSessions(ctx, "") // with all branches
	if err != nil {
		return err
	}
	var threads []string
	for _, s := range all {
		if s.Final {
			threads = append(threads, s.Thread)
		}
	}
	return removeRuns(ctx, con, p, threads)
}

// noteRemoved says that a run was removed.
func noteRemoved(con *console.Console) func(id string) {
	return func(id string) { con.PrintNote("removed run %s", id) }
}

func removeRuns(ctx context.Context, con *console.Console, p *app.Process, ids []string) error {
	for _, id := range ids {
		id, err := p.Runs.RemoveRun(ctx, id)
		if err != nil {
			return err
		}
		noteRemoved(con)(id)
	}
	return compactStore(ctx, con, p)
}

// runsPruneOptions are the flags of "runs prune".
type runsPruneOptions struct {
	keep        history.Keep
	age, output string
}

func newRunsPruneCommand(op *opener) *cobra.Command {
	var opts runsPruneOptions
	cmd := newCommand(op, &opts, runRunsPrune, &cobra.Command{
		Use:   "prune RUN...",
		Short: "Shorten the journals of runs, from their beginning",
		Long: `The status of the run, its state and all that a resume needs stay. raddle removes older checkpoints and the
records of its model calls, so that usage counts only what is left. The flags say what else to keep. A
journal can be cut only at a snapshot, so more may stay.`,
		Example: `  raddle runs prune last
  raddle runs prune --keep-steps 10 last last~1`,
		Args:              checkArgCount(1, -1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 0, func(r runs.Info) bool { return r.Status != runs.Running }),
	})
	flags := cmd.Flags()
	flags.IntVar(&opts.keep.Steps, "keep-steps", 0, "keep the newest `N` steps")
	flags.IntVar(&opts.keep.Records, "keep-records", 0, "keep the newest `N` records")
	flags.StringVar(&opts.age, "keep-since", "", "keep what was written in the last `TIME`: 12h, 7d")
	addOutputFlag(cmd, &opts.output, "write what is left as `FORMAT`: text or json")
	return cmd
}

func runRunsPrune(ctx context.Context, con *console.Console, p *app.Process, opts runsPruneOptions, args []string) error {
	if opts.age != "" {
		d, err := parseAge("--keep-since", opts.age)
		if err != nil {
			return err
		}
		opts.keep.Since = time.Now().Add(-d)
	}
	if opts.keep.Records < 0 || opts.keep.Steps < 0 {
		return ending.BadUsage("give 0 or more", "the number of records or steps cannot be negative")
	}
	ids, err := resolveLastWords(ctx, p, args)
	if err != nil {
		return err
	}
	left := []runs.PruneResult{}
	for _, id := range ids {
		one, err := p.Runs.PruneRun(ctx, id, opts.keep)
		if err != nil {
			return err
		}
		left = append(left, one)
		con.PrintNote("raddle: run %s begins at @%d, %s removed", one.Run, one.First, wording.FormatCount(int(one.Removed), "record"))
	}
	return con.PrintResult(opts.output, left, func() string { return "" })
}

// oldRun is the age from which finished runs are removed.
const oldRun = "30d"

// runsGCOptions are the flags of "runs gc".
type runsGCOptions struct{ age string }

func newRunsGCCommand(op *opener) *cobra.Command {
	var opts runsGCOptions
	cmd := newCommand(op, &opts, runRunsGC, &cobra.Command{
		Use:   "gc",
		Short: "Remove old finished runs",
		Long: `Runs that wait, failed or were stopped stay, unless retention_failed of config.yaml says for how long failed runs are kept. Then raddle
removes unused space from the file of the runs. That needs as much free disk space as the remaining runs take.`,
		Example: `  raddle runs gc
  raddle runs gc --older-than 12h`,
		Args: checkArgCount(0, 0, ""),
	})
	cmd.Flags().StringVar(&opts.age, "older-than", "", "remove what ended `TIME` ago: 12h, 7d; otherwise retention_done of config.yaml, or "+oldRun)
	return cmd
}

func runRunsGC(ctx context.Context, con *console.Console, p *app.Process, opts runsGCOptions, _ []string) error {
	keep := p.Config.Retention
	if opts.age != "" || keep.Done == 0 {
		d, err := parseAge("--older-than", cmp.Or(opts.age, oldRun))
		if err != nil {
			return err
		}
		keep.Done = max(d, 1) // 0: however young
	}
	ids, err := p.Runs.ListEndedRuns(ctx, keep.Done, keep.Failed)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		con.PrintNote("nothing to remove: no run ended that long ago")
	}
	if err := p.Runs.RemoveRuns(ctx, ids, noteRemoved(con)); err != nil {
		return err
	}
	if n, err := runs.RemoveUnusedBundles(ctx, p.Runs); err != nil {
		return err
	} else if n > 0 {
		con.PrintNote("removed %s of agents that no run needs", wording.FormatCount(n, "bundle"))
	}
	return compactStore(ctx, con, p)
}

// compactStore returns the space of removed runs to the file system.
func compactStore(ctx context.Context, con *console.Console, p *app.Process) error {
	before, after, err := p.Runs.CompactStore(ctx)
	if err == nil && after < before {
		con.PrintNote("the store has %s, %s before", formatMegabytes(after), formatMegabytes(before))
	}
	return err
}

func formatMegabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// parseAge reads the value of a flag that is an age.
func parseAge(flag, text string) (time.Duration, error) {
	d, err := config.ParseAge(text)
	if err != nil {
		return 0, ending.BadUsage("", "%s: %v", flag, err)
	}
	return d, nil
}

func newRunsCancelCommand(op *opener) *cobra.Command {
	opts := &app.CancelOptions{}
	cmd := newCommand(op, opts, runRunsCancel, &cobra.Command{
		Use:   "cancel RUN...",
		Short: "End runs permanently, and keep their journals",
		Long: `The process that drives the run stops it at once, and continues with its other runs; one of this machine that does not
gets SIGTERM after some seconds. If the graph has a ` + "`finally`" + `, this command runs that node. You cannot resume the run after
that, but you can show, compare and fork it.`,
		Example:           `  raddle runs cancel last`,
		Args:              checkArgCount(1, -1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 0, func(r runs.Info) bool { return !r.Final }),
	})
	cmd.Flags().BoolVar(&opts.Abrupt, "abrupt", false, "do not run the finally of the graph")
	cmd.Flags().BoolVar(&opts.AcceptChanges, "accept-changes", false, "run the finally of the graph although the agent's files have changed")
	return cmd
}

func runRunsCancel(ctx context.Context, con *console.Console, p *app.Process, opts app.CancelOptions, args []string) error {
	ids, err := resolveLastWords(ctx, p, args)
	if err != nil {
		return err
	}
	for _, id := range ids {
		done, err := p.CancelByHand(ctx, id, opts)
		if err != nil {
			return err
		}
		con.PrintNote("%s", done)
	}
	return nil
}
