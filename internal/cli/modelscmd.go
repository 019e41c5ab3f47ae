package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"raddle.dev/internal/provider"
	"raddle.dev/internal/term"
)

func modelsCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "models COMMAND",
		Short:   "List the models that can be called",
		Example: "  raddle models ls",
		Args:    env.noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var output string
	cmd.AddCommand(outputFlag(&cobra.Command{
		Use:     "ls",
		Short:   "List models, with the tokens they take and what they cost",
		Long:    "You can also call other models of a client. The models of config.yaml come first, then those with known prices.",
		Example: "  raddle models ls --output json",
		Args:    checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			models := p.Models.ListModels()
			if output == formatJSON {
				return env.printJSON(models)
			}
			env.out.PrintText(modelsText(models))
			if len(models) == 0 {
				env.err.PrintLine("raddle: no client is ready\nnext: " + p.Models.ExplainMissingModel())
			}
			return nil
		},
	}, &output))
	return cmd
}

func modelsText(models []provider.Model) string {
	if len(models) == 0 {
		return ""
	}
	table := term.NewTable("MODEL", "WINDOW", "USD PER MILLION IN", "OUT")
	for _, m := range models {
		window := "?"
		if m.Window > 0 {
			window = fmt.Sprint(m.Window)
		}
		table.AddRow(m.ID, window, formatPrice(m.Input), formatPrice(m.Output))
	}
	return table.Format(0)
}

// formatPrice returns a price, or "?" if it is unknown.
func formatPrice(price *float64) string {
	if price == nil {
		return "?"
	}
	return fmt.Sprint(*price)
}
