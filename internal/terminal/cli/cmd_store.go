package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/storage/storetool"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

func newStoreCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use:   "store",
		Short: "Check, copy and measure stores of runs",
		Long: `STORE is the URL of a store, as in config.yaml: sqlite:PATH, postgres://USER@HOST/NAME or redis://HOST. Without it, the
commands take the store that raddle uses.`,
		Example: `  raddle store check
  raddle store copy sqlite:$HOME/.local/state/raddle/runs.db postgres://raddle@db/runs`,
	}, newStoreCheckCommand(op), newStoreCopyCommand(op), newStoreMigrateCommand(op), newStoreReindexCommand(op), newStoreStatsCommand(op))
}

// storeOf returns the URL of the store that a command is for.
func storeOf(p *app.Process, args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return p.Config.Store
}

func newStoreCheckCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runStoreCheck, &cobra.Command{
		Use: "check [STORE]", Short: "Read every record and find what is damaged or missing",
		Long: `raddle checks that no journal has a gap, that the checksum of every record is right, that the records of each journal give a
state, that its snapshots are equal to that state, and that the bundles of agents have the files that they name. Runs may continue meanwhile. The exit code is 3 if there are faults.`,
		Args: checkArgCount(0, 1, "the store"),
	})
}

func runStoreCheck(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	st, at, err := storetool.OpenStore(storeOf(p, args), p.Dirs)
	if err != nil {
		return err
	}
	defer st.Close()
	result, err := storetool.CheckStore(ctx, st)
	if err != nil {
		return err
	}
	err = con.PrintResult(opts.output, result, func() string {
		var b strings.Builder
		for _, f := range result.Faults {
			fmt.Fprintf(&b, "%s@%d: %s\n", f.Thread, f.Record, f.What)
		}
		fmt.Fprintf(&b, "%s: %s with %s, %s", at.Place(), countJournals(result.Threads, result.Bundles), wording.FormatCount(int(result.Records), "record"), wording.FormatCount(len(result.Faults), "fault"))
		return term.CleanText(b.String())
	})
	if err == nil && len(result.Faults) > 0 {
		return ending.Silent{Code: ending.Invalid}
	}
	return err
}

// countJournals counts the journals of runs, and the bundles of agents if there are any.
func countJournals(threads, bundles int) string {
	text := wording.FormatCount(threads, "journal")
	if bundles > 0 {
		text += " and " + wording.FormatCount(bundles, "bundle")
	}
	return text
}

func newStoreCopyCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runStoreCopy, &cobra.Command{
		Use: "copy FROM TO", Short: "Copy all runs of a store, and the bundles of their agents, into another one",
		Long: `TO is created if it does not exist. A copy that was stopped continues where it was, and a later copy adds what is new. raddle changes no
journal of TO that differs from that of FROM, and leaves out runs that a process drives. Continue a run only in one of the two stores.
If FROM is not the store that raddle uses here, its runs count as foreign, like those of "raddle runs import".`,
		Args: checkArgCount(2, 2, "the URL of a store"),
	})
}

func runStoreCopy(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	from, source, err := storetool.OpenStore(args[0], p.Dirs)
	if err != nil {
		return err
	}
	defer from.Close()
	origin := ""
	if source.URL() != p.Runs.StoreURL() {
		origin = source.URL()
	}
	to, at, err := storetool.CreateStore(args[1], p.Dirs)
	if err != nil {
		return err
	}
	defer to.Close()
	result, err := storetool.CopyStore(ctx, from, to, origin)
	if err == nil {
		err = runs.Reindex(ctx, to, func(int) {})
	}
	if err != nil {
		return err
	}
	if origin != "" && result.Threads > 0 {
		con.PrintNote("raddle: these runs are marked as foreign, because %s is not the store of this configuration: each asks before it continues\nnext: to copy runs of your own, name the store: RADDLE_STORE=%s raddle store copy FROM TO", source.Place(), source.URL())
	}
	err = con.PrintResult(opts.output, result, func() string {
		return term.CleanText(fmt.Sprintf("copied to %s: %s with %s; %d were there already", at.Place(), countJournals(result.Threads, result.Bundles), wording.FormatCount(int(result.Records), "record"), result.Equal))
	})
	if err == nil && len(result.Busy) > 0 {
		return &ending.Error{Code: ending.Stale, Next: "copy again when they have stopped", Err: fmt.Errorf("not copied, because a process drives them: %s", strings.Join(result.Busy, ", "))}
	}
	return err
}

func newStoreMigrateCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runStoreMigrate, &cobra.Command{
		Use: "migrate [STORE]", Short: "Bring a store to the newest schema, and create it if it does not exist",
		Long: `Every command that opens a store does the same. With this one you decide when: before a new version of raddle is used by many
processes. A store with a newer schema than this raddle knows is an error, and is not changed.`,
		Args: checkArgCount(0, 1, "the store"),
	})
}

func runStoreMigrate(_ context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	st, at, err := storetool.CreateStore(storeOf(p, args), p.Dirs)
	if err != nil {
		return err
	}
	con.PrintNote("%s has the newest schema.", term.CleanText(at.Place()))
	return st.Close()
}

func newStoreReindexCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runStoreReindex, &cobra.Command{
		Use: "reindex [STORE]", Short: "Write what lists show of the runs of an earlier version",
		Long: `A list of runs reads an index, which each run keeps up to date. Of runs that an earlier version has recorded, or that another
program has, there is nothing in it: a list reads their journals. raddle serve writes what is missing when it starts.`,
		Args: checkArgCount(0, 1, "the store"),
	})
}

func runStoreReindex(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	st, at, err := storetool.OpenStore(storeOf(p, args), p.Dirs)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := runs.Reindex(ctx, st, func(left int) { con.PrintNote("%s left", wording.FormatCount(left, "journal")) }); err != nil {
		return err
	}
	con.PrintNote("The index of %s is complete.", term.CleanText(at.Place()))
	return nil
}

func newStoreStatsCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write the result as `FORMAT`: text or json", runStoreStats, &cobra.Command{
		Use: "stats [STORE]", Short: "Count the records of a store and their bytes",
		Long: `raddle reads every record. Bytes are those of the records; the size of the file or of the tables contains indexes and free space.`,
		Args: checkArgCount(0, 1, "the store"),
	})
}

func runStoreStats(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	st, at, err := storetool.OpenStore(storeOf(p, args), p.Dirs)
	if err != nil {
		return err
	}
	defer st.Close()
	result, err := storetool.MeasureStore(ctx, st)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, result, func() string { return term.CleanText(at.Place() + "\n" + result.Text()) })
}
