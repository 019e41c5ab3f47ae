package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/term"
)

func newInitCommand(env *environment) *cobra.Command {
	return newCommand(env, &noOptions{}, runInit, &cobra.Command{
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
		return listSteps(env)
	}
	next, err := g.AskAll(ctx)
	if errors.Is(err, term.ErrInterrupted) {
		return silentExit{exitInterrupted}
	}
	if err != nil {
		return lookInstead(ctx, env, err)
	}
	env.printNote("next: raddle (a conversation), or: %s", next)
	return nil
}

// listSteps lists the commands that do what the questions would, and what is set up already.
func listSteps(env *environment) error {
	first, steps := "raddle agents new helper", []string{}
	model, set := env.process.Config.Model, false
	if model != "" {
		client, _, _ := strings.Cut(model, ":")
		info, known := env.process.Models.FindKey(client)
		set = known && info.Ready && env.process.Models.JudgeClientKey(client) == "" || strings.HasPrefix(model, "script:")
		if !set {
			first, steps = "raddle login "+client+" < key.txt", append(steps, "then: raddle agents new helper")
		}
	} else {
		suggested, _ := env.process.Models.SuggestModel()
		client, _, _ := strings.Cut(suggested, ":")
		first = "raddle login " + client + " < key.txt"
		steps = append(steps, "then: raddle config set model "+suggested, "then: raddle agents new helper")
	}
	steps = append([]string{first}, append(steps, `then: raddle run helper 'How long is the word "shuttle"?'`)...)
	if set {
		env.printNote("%s set up: the model is %s, and raddle can call it as far as can be seen without a request.", env.err.Paint(term.Green, "✓"), model)
		env.printNote("next: %s", strings.Join(steps, "\n"))
		return nil
	}
	return badUsage(strings.Join(steps, "\n"), "init asks questions, and standard input or standard error is not a terminal")
}
