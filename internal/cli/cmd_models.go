package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/provider"
	"raddle.dev/internal/term"
)

func newModelsCommand(env *environment) *cobra.Command {
	return newGroup(env, &cobra.Command{
		Use:     "models COMMAND",
		Short:   "List the models that can be called, and update what is known about them",
		Example: "  raddle models ls",
	}, newModelsLsCommand(env), newModelsUpdateCommand(env))
}

func newModelsUpdateCommand(env *environment) *cobra.Command {
	return newCommand(env, &noOptions{}, runModelsUpdate, &cobra.Command{
		Use:   "update [FILE|ADDRESS]",
		Short: "Read windows, prices and abilities of models from a newer catalogue",
		Long: "The catalogue is read from " + provider.CatalogueAddress + ", or from a file or an https address with the same data. raddle checks it, takes\n" +
			"over facts about models only, and stores it as " + provider.CatalogueName + " in the directory of config.yaml. The newer of it and the one in the program counts.",
		Example: "  raddle models update",
		Args:    checkArgCount(0, 1, ""),
	})
}

func runModelsUpdate(ctx context.Context, env *environment, _ noOptions, args []string) error {
	source := provider.CatalogueAddress
	if len(args) > 0 {
		source = args[0]
	}
	about, err := env.process.Models.Catalogue().Update(ctx, source)
	if err != nil {
		return err
	}
	env.printNote("%d models, of %s", about.Models, about.Date)
	return nil
}

func newModelsLsCommand(env *environment) *cobra.Command {
	return newOutputCommand(env, "write it as `FORMAT`: text or json", runModelsLs, &cobra.Command{
		Use:     "ls",
		Short:   "List models, with the tokens they take and what they cost",
		Long:    "You can also call other models of a client. The models of config.yaml come first, then those with known prices.",
		Example: "  raddle models ls --output json",
		Args:    checkArgCount(0, 0, ""),
	})
}

func runModelsLs(_ context.Context, env *environment, opts outputOptions, _ []string) error {
	models := env.process.Models.ListModels()
	if len(models) == 0 && opts.output == formatText {
		env.err.PrintLine("raddle: no client is ready\nnext: " + missingModelHint(env, "AGENT"))
		return nil
	}
	return env.printResult(opts.output, models, func() string {
		return modelsText(models) + missingKeysText(env.process.Models.ListClients()) + catalogueText(env)
	})
}

// catalogueText says where windows and prices come from.
func catalogueText(env *environment) string {
	known, err := env.process.Models.Catalogue().About()
	if err != nil {
		env.printWarning(plainText(err.Error()))
	}
	return fmt.Sprintf("\nWindows and prices: %s, %s (newer ones: raddle models update)\n", plainText(known.Source), known.Date)
}

// missingKeysText returns the clients that only need a key, with the variables to set, and where the credentials of clouds are from.
func missingKeysText(clients []provider.ClientInfo) string {
	var b strings.Builder
	for _, c := range clients {
		if c.Needs == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\nWithout a key (set the variable, or store a key with raddle login CLIENT):\n")
		}
		fmt.Fprintf(&b, "  %-12s %s\n", c.Client, c.Needs)
	}
	for _, c := range clients {
		if text := c.DescribeCloud(); text != "" {
			b.WriteString("\n" + plainText(text) + "\n")
		}
	}
	return b.String()
}

func modelsText(models []provider.Model) string {
	table := term.NewTable("MODEL", "WINDOW", "USD PER MILLION IN", "OUT")
	var others []string // clients of which no model is known by name
	for _, m := range models {
		if strings.HasSuffix(m.ID, ":") {
			others = append(others, m.ID+"MODEL")
			continue
		}
		window := "?"
		if m.Window > 0 {
			window = fmt.Sprint(m.Window)
		}
		table.AddRow(m.ID, window, formatPrice(m.Input), formatPrice(m.Output))
	}
	text := table.Format(0)
	if len(others) == len(models) {
		text = ""
	}
	if len(others) > 0 {
		text = joinNonEmpty("\n", text, "Any model of the server: "+joinWords(others)+"\n")
	}
	return text
}

// formatPrice returns a price, or "?" if it is unknown.
func formatPrice(price *float64) string {
	if price == nil {
		return "?"
	}
	return fmt.Sprint(*price)
}
