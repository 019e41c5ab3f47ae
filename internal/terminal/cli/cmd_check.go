package cli

import (
	"context"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/agentcheck"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/migrateview"
)

// checkOptions are the flags of "check".
type checkOptions struct {
	strict bool
	runs   bool
	output string
}

func newCheckCommand(op *opener) *cobra.Command {
	var opts checkOptions
	cmd := newCommand(op, &opts, runCheck, &cobra.Command{
		Use:   "check AGENT...",
		Short: "Find errors in agents without running them",
		Long: `Reads and validates agents, and proves that every placeholder has a value on every path to it. Hooks of the
directory in which you start raddle (.raddle/hooks.yaml) are read as well, because no agent runs there without them.
No model is called, and no key is needed. The exit code is 3 if there are errors.`,
		Example: `  raddle check review-gate
  raddle check --strict agents/*/graph.yaml
  raddle check --runs review-gate`,
		Args: checkArgCount(1, -1, "the agent"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return agentNames(op), cobra.ShellCompDirectiveDefault
		},
	})
	cmd.Flags().BoolVar(&opts.strict, "strict", false, "treat unknown keys as errors")
	cmd.Flags().BoolVar(&opts.runs, "runs", false, "also say how the parked runs of each agent continue with it; the exit code is 3 if one needs a migration or consent")
	addOutputFlag(cmd, &opts.output, "write the findings as `FORMAT`: text or json")
	return cmd
}

func runCheck(ctx context.Context, con *console.Console, p *app.Process, opts checkOptions, args []string) error {
	var all []agentcheck.Report
	var parked []*app.ExaminedRun
	ok := true
	for _, name := range args {
		place, err := p.FindAgent(name)
		if err != nil {
			return err
		}
		c := agentcheck.Check(ctx, p, place, agentcheck.Options{Strict: opts.strict, Syntax: true})
		all = append(all, c)
		ok = ok && c.OK
		if opts.output == console.FormatText {
			printChecked(con, p, &c)
		}
		if opts.runs && c.OK {
			list, fine, err := migrateview.CheckRuns(ctx, con, p, place.Name, opts.output)
			if err != nil {
				return err
			}
			parked, ok = append(parked, list...), ok && fine
		}
	}
	if opts.output == console.FormatJSON {
		err := con.PrintJSON(struct {
			OK     bool                `json:"ok"`
			Agents []agentcheck.Report `json:"agents"`
			Runs   []*app.ExaminedRun  `json:"runs,omitempty"`
		}{ok, all, parked})
		if err != nil {
			return err
		}
	}
	if !ok {
		return ending.Silent{Code: ending.Invalid}
	}
	return nil
}

// printChecked writes the findings of an agent, and a summary line.
func printChecked(con *console.Console, p *app.Process, c *agentcheck.Report) {
	out := con.Out
	look := ending.LookAtFindings(p, out.Colors)
	look.Columns = out.Columns()
	for _, f := range c.Findings {
		out.PrintText(look.FormatFinding(f))
		out.PrintExact(look.FormatExcerpt(f))
	}
	if c.Err != nil && !strictyaml.HasErrors(c.Findings) {
		out.PrintText(term.OneLine(p.Dirs.ShortPath(c.Dir)) + ": " + out.Paint(term.Red, "error:") + " " + c.Err.Error())
	}
	if con.Quiet {
		return
	}
	verdict := out.Paint(term.Green, "ok")
	if !c.OK {
		verdict = out.Paint(term.Red, wording.FormatCount(c.Errors, "error"))
	}
	if c.Warnings > 0 {
		verdict += ", " + out.Paint(term.Yellow, wording.FormatCount(c.Warnings, "warning"))
	}
	out.PrintText(term.OneLine(c.Agent) + ": " + verdict)
}
