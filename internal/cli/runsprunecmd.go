package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/wording"
)

func runsPruneCommand(env *environment) *cobra.Command {
	var keep graph.Keep
	var age, output string
	cmd := &cobra.Command{
		Use:   "prune RUN...",
		Short: "Shorten the journals of runs, from their beginning",
		Long: `The status of the run, its state and all that a resume needs stay. raddle removes older checkpoints and the
records of its model calls, so that usage counts only what is left. The flags say what else to keep. A
journal can be cut only at a snapshot, so more may stay.`,
		Example: `  raddle runs prune 06ab
  raddle runs prune --keep-steps 10 06ab 06ac`,
		Args:              checkArgCount(1, -1, "the id of a run"),
		ValidArgsFunction: completeRuns(env, 0, func(r runs.Info) bool { return r.Status != runs.Running }),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			if age != "" {
				d, err := parseAge("--keep-since", age)
				if err != nil {
					return err
				}
				keep.Since = time.Now().Add(-d)
			}
			if keep.Records < 0 || keep.Steps < 0 {
				return badUsage("give 0 or more", "the number of records or steps cannot be negative")
			}
			return pruneRuns(env, args, keep, output)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&keep.Steps, "keep-steps", 0, "keep the newest `N` steps")
	flags.IntVar(&keep.Records, "keep-records", 0, "keep the newest `N` records")
	flags.StringVar(&age, "keep-since", "", "keep what was written in the last `TIME`: 12h, 7d")
	flags.StringVar(&output, "output", formatText, "write what is left as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
}

func pruneRuns(env *environment, ids []string, keep graph.Keep, output string) error {
	p, err := env.openProcess()
	if err != nil {
		return err
	}
	left := []runs.PruneResult{}
	for _, id := range ids {
		one, err := p.Runs.PruneRun(context.Background(), id, keep)
		if err != nil {
			return err
		}
		left = append(left, one)
		if !env.quiet {
			env.err.PrintLine(fmt.Sprintf("raddle: run %s begins at @%d, %s removed", one.Run, one.First, wording.FormatCount(int(one.Removed), "record")))
		}
	}
	if output == formatJSON {
		return env.printJSON(left)
	}
	return nil
}

// oldRun is the age from which finished runs are removed.
const oldRun = "30d"

func runsGCCommand(env *environment) *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove old finished runs",
		Long: `Runs that wait, failed or were stopped stay, however old they are. Then raddle removes unused space from the file
of the runs. That needs as much free disk space as the remaining runs take.`,
		Example: `  raddle runs gc
  raddle runs gc --older-than 12h`,
		Args: checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			d, err := parseAge("--older-than", age)
			if err != nil {
				return err
			}
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			ids, err := p.Runs.ListEndedRuns(context.Background(), d)
			if err != nil {
				return err
			}
			if len(ids) == 0 && !env.quiet {
				env.err.PrintLine("nothing to remove: no run ended that long ago")
			}
			if err := p.Runs.RemoveRuns(context.Background(), ids, env.reportRemoved); err != nil {
				return err
			}
			return compactStore(env, p)
		},
	}
	cmd.Flags().StringVar(&age, "older-than", oldRun, "remove what ended `TIME` ago: 12h, 7d")
	return cmd
}

// compactStore returns the space of removed runs to the file system.
func compactStore(env *environment, p *app.Process) error {
	before, after, err := p.Runs.CompactStore(context.Background())
	if err == nil && after < before && !env.quiet {
		env.err.PrintLine(fmt.Sprintf("the store has %s, %s before", formatMegabytes(after), formatMegabytes(before)))
	}
	return err
}

func formatMegabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// parseAge reads a duration: in Go's format, or in days.
func parseAge(flag, text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return d, nil
	}
	return 0, badUsage("write 90m, 12h or 7d", "%s %s: not a time", flag, text)
}
