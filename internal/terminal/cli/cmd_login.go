package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/prompting"
	"raddle.dev/internal/terminal/setup"
)

// loginOptions are the flags of "login".
type loginOptions struct{ file bool }

func newLoginCommand(op *opener) *cobra.Command {
	var opts loginOptions
	cmd := newCommand(op, &opts, func(ctx context.Context, _ *console.Console, _ *app.Process, opts loginOptions, args []string) error {
		return runLogin(ctx, op, opts, args)
	}, &cobra.Command{
		Use:   "login PROVIDER",
		Short: "Store a key of a provider of models",
		Long: `The key is read from standard input, or asked for without showing it. It goes into the keychain of your system, otherwise into
keys.json in the directory of config.yaml, which only you can read. Keys in config.yaml and in the environment are used first.
OpenRouter can also make a key for raddle, if you agree in your browser.`,
		Example: `  raddle login openai
  raddle login anthropic < key.txt`,
		Args:              checkArgCount(1, 1, "the name of a provider"),
		ValidArgsFunction: completeProviders(op, false),
	})
	cmd.Flags().BoolVar(&opts.file, "file", false, "use the file even if there is a keychain")
	return cmd
}

func newLogoutCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, func(ctx context.Context, _ *console.Console, _ *app.Process, opts noOptions, args []string) error {
		return runLogout(ctx, op, opts, args)
	}, &cobra.Command{
		Use:               "logout PROVIDER",
		Short:             "Remove the stored key of a provider",
		Example:           "  raddle logout openai",
		Args:              checkArgCount(1, 1, "the name of a provider"),
		ValidArgsFunction: completeProviders(op, true),
	})
}

// completeProviders completes the first argument with clients; stored selects those that have a stored key.
func completeProviders(op *opener, stored bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, c := range op.openWithFaults().Models.ListClients() {
			switch place := op.process.Keys.PlaceOf(c.Client); {
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

func runLogin(ctx context.Context, op *opener, opts loginOptions, args []string) error {
	client, err := setup.FindKeyClient(op.process.Models, args[0])
	if err != nil {
		return err
	}
	key, err := readKey(ctx, op, client)
	if err != nil {
		return err
	}
	before, _ := op.process.Models.FindKey(client)
	if err := op.newGuide().StoreKey(client, key, opts.file); err != nil {
		return err
	}
	if now, _ := op.process.Models.FindKey(client); before.Key != "" && now.Key == before.Key && !slices.Contains([]string{string(keystore.Keychain), keystore.FileName}, now.Key) {
		op.PrintWarning(fmt.Sprintf("calls still use the key from %s; remove that one to use the stored key", now.Key))
	}
	if op.process.Config.Model == "" {
		if models := op.process.Models.ListChoices(client); len(models) > 0 {
			op.PrintNote("next: raddle config set model %s", models[0].ID)
		}
	}
	return nil
}

// readKey reads a key from standard input, or asks the person at the terminal for it.
func readKey(ctx context.Context, op *opener, client string) (string, error) {
	if g := op.newGuide(); g.Prompter != nil {
		key, err := g.AskKey(ctx, client)
		if errors.Is(err, term.ErrLeftOpen) || errors.Is(err, term.ErrInterrupted) {
			return "", ending.Silent{Code: ending.Interrupted}
		}
		return key, err
	}
	if term.IsTerminal(op.In) {
		return "", ending.BadUsage("write: raddle login "+client+" < FILE", "the key cannot be asked for: standard error is not a terminal")
	}
	text, err := prompting.ReadText(op.In)
	if err != nil {
		return "", err
	}
	key, err := setup.CheckKey(op.process.Models, client, text)
	if err != nil {
		return "", ending.BadUsage("write: raddle login "+client+" < FILE", "standard input: %v", err)
	}
	return key, nil
}

func runLogout(_ context.Context, op *opener, _ noOptions, args []string) error {
	client := args[0]
	if info, known := op.process.Models.FindKey(client); known {
		client = info.Client
	}
	place, err := op.process.Keys.Remove(client)
	switch {
	case err != nil:
		return fmt.Errorf("the key of %s cannot be removed: %w", client, err)
	case place == keystore.Nowhere:
		next := "raddle info shows where keys come from"
		if names, _ := op.process.Keys.Names(); len(names) > 0 {
			next = "there are keys of " + strings.Join(names, ", ")
		}
		return ending.BadUsage(next, "no key of %q is stored", client)
	}
	op.PrintNote("%s The key of %s is removed.", op.Screen.Paint(term.Green, "✓"), client)
	if err := op.reopenProcess(); err != nil {
		return err
	}
	if info, _ := op.process.Models.FindKey(client); info.Key != "" {
		op.PrintNote("Calls still use the key from %s.", info.Key)
	}
	return nil
}
