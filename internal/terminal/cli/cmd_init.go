package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

func newInitCommand(env *environment) *cobra.Command {
	return newCommand(&env.opener, &noOptions{}, func(ctx context.Context, _ *console.Console, _ *app.Process, opts noOptions, args []string) error {
		return runInit(ctx, env, opts, args)
	}, &cobra.Command{
		Use:   "init",
		Short: "Set raddle up: a model, a first agent, shell completion",
		Long: `It finds keys and models on this machine, asks which model to use, and saves it in config.yaml. Then it offers to send one short request,
to create an agent, and to set up completion in your shell. Esc skips a step. Nothing is written without a yes.`,
		Example: "  raddle init",
		Args:    checkArgCount(0, 0, ""),
	})
}

// runInit asks for each step. Without a person it lists the commands that do the same.
func runInit(ctx context.Context, env *environment, _ noOptions, _ []string) error {
	env.offersLook = true
	g := env.newGuide()
	if g.Prompter == nil {
		model, steps := g.ListSteps()
		if model == "" {
			return ending.BadUsage(steps, "init asks questions, and standard input or standard error is not a terminal")
		}
		env.PrintNote("%s set up: the model is %s, and can be asked as far as can be seen without a request.\nnext: %s", env.Screen.Paint(term.Green, "✓"), model, steps)
		return nil
	}
	next, err := g.AskAll(ctx)
	if errors.Is(err, term.ErrInterrupted) {
		return ending.Silent{Code: ending.Interrupted}
	}
	if err != nil {
		return lookInstead(ctx, env, err)
	}
	env.PrintNote("next: raddle (a conversation), or: %s", next)
	return nil
}
