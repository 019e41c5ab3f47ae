package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/modeltest"
	"raddle.dev/internal/terminal/modelview"
)

func newModelsCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use:     "models COMMAND",
		Short:   "List the models that can be called, test one, and update what is known about them",
		Example: "  raddle models ls",
	}, newModelsLsCommand(op), newModelsTestCommand(op), newModelsUpdateCommand(op))
}

func newModelsUpdateCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runModelsUpdate, &cobra.Command{
		Use:   "update [FILE|ADDRESS]",
		Short: "Read windows, prices and abilities of models from a newer catalogue",
		Long: "The catalogue is read from " + provider.CatalogueAddress + ", or from a file or an https address with the same data. raddle checks it, takes\n" +
			"over facts about models only, and stores it as " + provider.CatalogueName + " in the directory of config.yaml. The newer of it and the one in the program counts.",
		Example: "  raddle models update",
		Args:    checkArgCount(0, 1, ""),
	})
}

func runModelsUpdate(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	source := provider.CatalogueAddress
	if len(args) > 0 {
		source = args[0]
	}
	about, err := p.Models.Catalogue().Update(ctx, source)
	if err != nil {
		return err
	}
	con.PrintNote("%d models, of %s", about.Models, about.Date)
	return nil
}

func newModelsLsCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runModelsLs, &cobra.Command{
		Use:     "ls",
		Short:   "List models, with the tokens they take and what they cost",
		Long:    "You can also call other models of a client. The models of config.yaml come first, then those with known prices.",
		Example: "  raddle models ls --output json",
		Args:    checkArgCount(0, 0, ""),
	})
}

func runModelsLs(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	models := p.Models.ListModels()
	if len(models) == 0 && opts.output == console.FormatText {
		con.Screen.PrintLine("raddle: no client is ready\nnext: " + ending.HintModel(p, "AGENT"))
		return nil
	}
	return con.PrintResult(opts.output, models, func() string {
		return modelview.FormatModels(models) + modelview.FormatMissingKeys(p.Models.ListClients()) + catalogueText(con, p)
	})
}

// catalogueText says where windows and prices come from.
func catalogueText(con *console.Console, p *app.Process) string {
	known, err := p.Models.Catalogue().About()
	if err != nil {
		con.PrintWarning(term.CleanText(err.Error()))
	}
	return fmt.Sprintf("\nWindows and prices: %s, %s (newer ones: raddle models update)\n", term.CleanText(known.Source), known.Date)
}

// modelsTestOptions are the flags of "models test".
type modelsTestOptions struct {
	yes    bool
	output string
}

func newModelsTestCommand(op *opener) *cobra.Command {
	var opts modelsTestOptions
	cmd := newCommand(op, &opts, runModelsTest, &cobra.Command{
		Use: "test CLIENT:MODEL", Short: "Play a short conversation with a model, and say what works", Args: checkArgCount(1, 1, "the model"), ValidArgsFunction: completeModels(op),
		Long: "raddle sends the model short orders with your key, and first shows what they cost at most. For a server that it does not know, it finds the\n" +
			"profile. Nothing is stored. The exit code is 0 if everything works that the model claims, and 1 otherwise.",
		Example: "  raddle models test openai:gpt-5.4-mini\n  raddle models test mine:some-model --yes --output json",
	})
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "send it without asking first")
	return cmd
}

func runModelsTest(ctx context.Context, con *console.Console, p *app.Process, opts modelsTestOptions, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	target, err := modeltest.NewTarget(ctx, p.Models, args[0])
	if err != nil {
		return err
	}
	con.Leave = "send nothing"
	view := &modelview.TestView{Out: con.Out, Screen: con.Screen, Hidden: opts.output == console.FormatJSON}
	if err := newGuide(con, p).AskToSend(ctx, view.DescribePlan(target), opts.yes); err != nil {
		return ending.EndInterrupted(err)
	}
	report, err := view.RunTest(ctx, target)
	if ctx.Err() != nil {
		return ending.Silent{Code: ending.Interrupted}
	}
	if view.Hidden {
		err = errors.Join(err, con.PrintJSON(report))
	}
	if err == nil && !report.Works {
		return ending.Silent{Code: ending.Failed}
	}
	return err
}
