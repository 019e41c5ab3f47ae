// Package migrateview shows on a terminal what has changed in agents since their runs started, and continues the runs with the agents as they are.
package migrateview

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// DiffOptions are the flags of "diff".
type DiffOptions struct{ Output string }

// DescribeDiff describes the command.
func DescribeDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff RUN",
		Short: "Say what has changed in an agent since a run started",
		Long: `Compares the agent as it is now with what the run was started with: keys, nodes, edges, prompts, schemas, models and
scripts. The last lines say how the run continues, and what to write into the graph.yaml if it cannot. Nothing is changed.
To compare the states of runs: raddle runs diff.`,
		Example: `  raddle diff last
  raddle diff last --output json`,
	}
}

// Run implements the view.
func (o *DiffOptions) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	if len(args) > 1 {
		return failure.NewUsage("to compare two runs: raddle runs diff "+strings.Join(args, " "), "raddle diff compares a run with its agent as it is now, and takes one run")
	}
	e, err := p.ExamineRun(ctx, args[0], false)
	if err != nil {
		return err
	}
	if o.Output == console.FormatJSON {
		return con.PrintJSON(e)
	}
	for _, f := range e.Files {
		con.Out.PrintText(term.CleanText(f))
	}
	for _, c := range e.Changes {
		con.Out.PrintText("  " + term.CleanText(strings.ReplaceAll(c.String(), "\n", " ")))
	}
	con.Out.PrintText(describeNext(e))
	printLines(con, e)
	return nil
}

// describeNext says how a run continues.
func describeNext(e *app.ExaminedRun) string {
	switch e.Verdict {
	case app.VerdictSame:
		return "nothing has changed since run " + e.Run + " was started"
	case app.VerdictCovered:
		text := "the migrations of the agent cover it: raddle resume " + e.Run
		if len(e.Done) > 0 {
			text += " (" + term.CleanText(strings.Join(e.Done, "; ")) + ")"
		}
		return text
	case app.VerdictRefused:
		var needs []string
		for _, n := range e.Needs {
			needs = append(needs, term.CleanText(n.Kind+" "+n.Name+": "+n.Why))
		}
		return "in the way of run " + e.Run + ": " + strings.Join(needs, "; ")
	}
	return "to continue with it: raddle resume " + e.Run + " --accept-changes"
}

// printLines prints what to write into the file.
func printLines(con *console.Console, e *app.ExaminedRun) {
	if e.Lines != "" {
		con.Out.PrintText("write into the graph.yaml:")
		con.Out.PrintExact(term.CleanText(e.Lines) + "\n")
	}
}

// MigrateOptions are the flags of "runs migrate".
type MigrateOptions struct {
	DryRun, All bool
	Output      string
}

// DescribeMigrate describes the command.
func DescribeMigrate(o *MigrateOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate [AGENT]",
		Short: "Continue parked runs with an agent that has changed",
		Long: `Tries all runs of the agent that have not ended and that no process works on, and prints what each of them needs. What the migrations of
the agent cover is done, as one record of the run; the run waits as before. The exit code is 8 if a run needs more.`,
		Example: `  raddle runs migrate review-gate --dry-run
  raddle runs migrate review-gate
  raddle runs migrate --all`,
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "write nothing")
	cmd.Flags().BoolVar(&o.All, "all", false, "the runs of all agents")
	return cmd
}

// Run implements the view.
func (o *MigrateOptions) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	name := ""
	switch {
	case o.All == (len(args) == 1):
		return ending.BadUsage("raddle runs migrate AGENT, or: raddle runs migrate --all", "it needs either the agent or --all")
	case len(args) == 1:
		place, err := p.FindAgent(args[0])
		if err != nil {
			return err
		}
		name = place.Name
	}
	list, err := Examine(ctx, p, name, !o.DryRun)
	if err != nil {
		return err
	}
	if o.Output == console.FormatJSON {
		err = con.PrintJSON(list)
	} else {
		PrintRuns(con, list)
	}
	if err == nil && !Continue(list) {
		return ending.Silent{Code: ending.Stale}
	}
	return err
}

// Examine examines the parked runs of an agent; an empty name: those of all agents.
func Examine(ctx context.Context, p *app.Process, agent string, migrate bool) ([]*app.ExaminedRun, error) {
	list := []*app.ExaminedRun{}
	err := p.ExamineRuns(ctx, agent, migrate, func(e *app.ExaminedRun) error {
		list = append(list, e)
		return nil
	})
	return list, err
}

// CheckRuns examines the parked runs of an agent, and prints them in the format text. fine reports that all of them continue.
func CheckRuns(ctx context.Context, con *console.Console, p *app.Process, agent, output string) (list []*app.ExaminedRun, fine bool, err error) {
	list, err = Examine(ctx, p, agent, false)
	if err == nil && output == console.FormatText {
		PrintRuns(con, list)
	}
	return list, Continue(list), err
}

// Continue reports whether all runs continue without a word from a person.
func Continue(list []*app.ExaminedRun) bool {
	for _, e := range list {
		switch e.Verdict {
		case app.VerdictSame, app.VerdictCovered, app.VerdictMigrated:
		default:
			return false
		}
	}
	return true
}

// PrintRuns prints a table of runs with what each needs, and the lines to write, each once.
func PrintRuns(con *console.Console, list []*app.ExaminedRun) {
	if len(list) == 0 {
		con.PrintNote("no run is parked")
		return
	}
	table := term.NewTable(
		term.NewColumn("RUN", func(e *app.ExaminedRun) string { return e.Run }),
		term.NewColumn("AGENT", func(e *app.ExaminedRun) string { return term.CleanText(e.Agent) }),
		term.NewColumn("STATUS", func(e *app.ExaminedRun) string { return e.Status }),
		term.NewColumn("CONTINUES", func(e *app.ExaminedRun) string { return e.Verdict }),
		term.NewColumn("WHAT", describeRow),
	)
	lines := map[string]bool{}
	for _, e := range list {
		table.AddRow(e)
	}
	con.PrintTable(table)
	for _, e := range list {
		if !lines[e.Lines] {
			printLines(con, e)
		}
		lines[e.Lines] = true
	}
}

// describeRow says what was or would be done with a run, what it needs, or how many changes there are.
func describeRow(e *app.ExaminedRun) string {
	var parts []string
	switch {
	case e.Error != "":
		return term.OneLine(e.Error)
	case e.Verdict == app.VerdictRefused:
		for _, n := range e.Needs {
			parts = append(parts, n.Kind+" "+n.Name)
		}
	case len(e.Done) > 0:
		parts = e.Done
	case e.Verdict == app.VerdictAccept && len(e.Changes) > 0:
		return wording.FormatCount(len(e.Changes), "change") + ": raddle diff " + e.Run
	case e.Verdict == app.VerdictAccept:
		return wording.FormatCount(len(e.Files), "file") + ": raddle diff " + e.Run
	}
	return term.OneLine(strings.Join(parts, "; "))
}
