package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/terminal/setup"
)

// loginOptions are the flags of "login".
type loginOptions struct{ file bool }

func newLoginCommand(env *environment) *cobra.Command {
	var opts loginOptions
	cmd := newCommand(env, &opts, runLogin, &cobra.Command{
		Use:   "login PROVIDER",
		Short: "Store a key of a provider of models",
		Long: `The key is read from standard input, or asked for without showing it. It goes into the keychain of your system, otherwise into
keys.json in the directory of config.yaml, which only you can read. Keys in config.yaml and in the environment are used first.
OpenRouter can also make a key for raddle, if you agree in your browser.`,
		Example: `  raddle login openai
  raddle login anthropic < key.txt`,
		Args:              checkArgCount(1, 1, "the name of a provider"),
		ValidArgsFunction: completeProviders(env, false),
	})
	cmd.Flags().BoolVar(&opts.file, "file", false, "use the file even if there is a keychain")
	return cmd
}

func newLogoutCommand(env *environment) *cobra.Command {
	return newCommand(env, &noOptions{}, runLogout, &cobra.Command{
		Use:               "logout PROVIDER",
		Short:             "Remove the stored key of a provider",
		Example:           "  raddle logout openai",
		Args:              checkArgCount(1, 1, "the name of a provider"),
		ValidArgsFunction: completeProviders(env, true),
	})
}

// completeProviders completes the first argument with clients; stored selects those that have a stored key.
func completeProviders(env *environment, stored bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, c := range env.openWithFaults().Models.ListClients() {
			switch place := env.process.Keys.PlaceOf(c.Client); {
			case len(args) > 0 || stored && place == keystore.Nowhere:
			case c.Key != "":
				names = append(names, describeCompletion(c.Client, "key from "+c.Key))
			default:
				names = append(names, describeCompletion(c.Client, "no key"))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func runLogin(ctx context.Context, env *environment, opts loginOptions, args []string) error {
	client, err := setup.FindKeyClient(env.process.Models, args[0])
	if err != nil {
		return err
	}
	key, err := readKey(ctx, env, client)
	if err != nil {
		return err
	}
	before, _ := env.process.Models.FindKey(client)
	if err := env.newGuide().StoreKey(client, key, opts.file); err != nil {
		return err
	}
	if now, _ := env.process.Models.FindKey(client); before.Key != "" && now.Key == before.Key && !slices.Contains([]string{string(keystore.Keychain), keystore.FileName}, now.Key) {
		env.printWarning(fmt.Sprintf("calls still use the key from %s; remove that one to use the stored key", now.Key))
	}
	if env.process.Config.Model == "" {
		if models := env.process.Models.ListChoices(client); len(models) > 0 {
			env.printNote("next: raddle config set model %s", models[0].ID)
		}
	}
	return nil
}

// readKey reads a key from standard input, or asks the person at the terminal for it.
func readKey(ctx context.Context, env *environment, client string) (string, error) {
	if g := env.newGuide(); g.Prompter != nil {
		key, err := g.AskKey(ctx, client)
		if errors.Is(err, term.ErrLeftOpen) || errors.Is(err, term.ErrInterrupted) {
			return "", silentExit{exitInterrupted}
		}
		return key, err
	}
	if term.IsTerminal(env.in) {
		return "", badUsage("write: raddle login "+client+" < FILE", "the key cannot be asked for: standard error is not a terminal")
	}
	text, err := readAll(env.in)
	if err != nil {
		return "", err
	}
	key, err := setup.CheckKey(env.process.Models, client, text)
	if err != nil {
		return "", badUsage("write: raddle login "+client+" < FILE", "standard input: %v", err)
	}
	return key, nil
}

func runLogout(_ context.Context, env *environment, _ noOptions, args []string) error {
	client := args[0]
	if info, known := env.process.Models.FindKey(client); known {
		client = info.Client
	}
	place, err := env.process.Keys.Remove(client)
	switch {
	case err != nil:
		return fmt.Errorf("the key of %s cannot be removed: %w", client, err)
	case place == keystore.Nowhere:
		next := "raddle info shows where keys come from"
		if names, _ := env.process.Keys.Names(); len(names) > 0 {
			next = "there are keys of " + joinWords(names)
		}
		return badUsage(next, "no key of %q is stored", client)
	}
	env.printNote("%s The key of %s is removed.", env.err.Paint(term.Green, "✓"), client)
	if err := env.reopenProcess(); err != nil {
		return err
	}
	if info, _ := env.process.Models.FindKey(client); info.Key != "" {
		env.printNote("Calls still use the key from %s.", info.Key)
	}
	return nil
}
