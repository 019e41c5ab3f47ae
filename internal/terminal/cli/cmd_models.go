package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/terminal/modeltest"
	"raddle.dev/internal/terminal/modelview"
)

func newModelsCommand(env *environment) *cobra.Command {
	return newGroup(env, &cobra.Command{
		Use:     "models COMMAND",
		Short:   "List the models that can be called, test one, and update what is known about them",
		Example: "  raddle models ls",
	}, newModelsLsCommand(env), newModelsTestCommand(env), newModelsUpdateCommand(env))
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
		return modelview.FormatModels(models) + modelview.FormatMissingKeys(env.process.Models.ListClients()) + catalogueText(env)
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

// modelsTestOptions are the flags of "models test".
type modelsTestOptions struct {
	yes    bool
	output string
}

func newModelsTestCommand(env *environment) *cobra.Command {
	var opts modelsTestOptions
	cmd := newCommand(env, &opts, runModelsTest, &cobra.Command{
		Use: "test CLIENT:MODEL", Short: "Play a short conversation with a model, and say what works", Args: checkArgCount(1, 1, "the model"), ValidArgsFunction: completeModels(env),
		Long: "raddle sends the model short orders with your key, and first shows what they cost at most. For a server that it does not know, it finds the\n" +
			"profile. Nothing is stored. The exit code is 0 if everything works that the model claims, and 1 otherwise.",
		Example: "  raddle models test openai:gpt-5.4-mini\n  raddle models test mine:some-model --yes --output json",
	})
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "send it without asking first")
	return cmd
}

func runModelsTest(ctx context.Context, env *environment, opts modelsTestOptions, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	target, err := modeltest.NewTarget(ctx, env.process.Models, args[0])
	if err != nil {
		return err
	}
	env.leave = "send nothing"
	view := &modelview.TestView{Out: env.out, Screen: env.err, Hidden: opts.output == formatJSON}
	if err := env.newGuide().AskToSend(ctx, view.DescribePlan(target), opts.yes); err != nil {
		return endInterrupted(err)
	}
	report, err := view.RunTest(ctx, target)
	if ctx.Err() != nil {
		return silentExit{exitInterrupted}
	}
	if view.Hidden {
		err = errors.Join(err, env.printJSON(report))
	}
	if err == nil && !report.Works {
		return silentExit{exitFailed}
	}
	return err
}
