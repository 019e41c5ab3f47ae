package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

func newConfigCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use:   "config COMMAND",
		Short: "Show and change raddle's settings",
		Long:  "The settings are in config.yaml; raddle help command-line lists its keys. Variables RADDLE_KEY override the file, and flags override both.",
		Example: `  raddle config set model openai:gpt-5-mini
  raddle config explain`,
	}, newConfigGetCommand(op), newConfigSetCommand(op), newConfigExplainCommand(op), newConfigPathCommand(op), newConfigEditCommand(op))
}

func newConfigGetCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runConfigGet, &cobra.Command{
		Use:               "get KEY",
		Short:             "Print the value of a setting",
		Long:              "Without a value the exit code is 1. Keys of providers are hidden.",
		Example:           "  raddle config get model",
		Args:              checkArgCount(1, 1, "the key"),
		ValidArgsFunction: completeSettings(false),
	})
}

func newConfigSetCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runConfigSet, &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change a setting in config.yaml",
		Long:  "The value is checked first, and comments and the order of the file stay. Lists such as clients are changed with raddle config edit.",
		Example: `  raddle config set model anthropic:claude-sonnet-4-5
  raddle config set read_timeout 2m`,
		Args:              checkArgCount(2, 2, "the key or the value"),
		ValidArgsFunction: completeSettingValue(op),
	})
}

func newConfigPathCommand(op *opener) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Print the path of config.yaml",
		Example: "  raddle config path",
		Args:    checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { // also with an invalid configuration
			op.Out.PrintExact(filepath.Join(op.openWithFaults().Dirs.Config, config.FileName))
			return nil
		},
	}
}

func newConfigEditCommand(op *opener) *cobra.Command {
	return &cobra.Command{
		Use:     "edit",
		Short:   "Open config.yaml in your editor, and check it afterwards",
		Long:    "The editor is that of VISUAL or EDITOR, otherwise vi.",
		Example: "  EDITOR=nano raddle config edit",
		Args:    checkArgCount(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { // also with an invalid configuration
			op.openWithFaults()
			return runConfigEdit(cmd.Context(), op.Console, op.process)
		},
	}
}

func newConfigExplainCommand(op *opener) *cobra.Command {
	cmd := newOutputCommand(op, "write it as `FORMAT`: text or json", runConfigExplain, &cobra.Command{
		Use:   "explain [KEY]",
		Short: "List settings with their values, and where each comes from",
		Example: `  raddle config explain
  raddle config explain model`,
		Args: checkArgCount(0, 1, ""),
	})
	cmd.ValidArgsFunction = completeSettings(false)
	return cmd
}

// completeSettings completes the first argument with keys of config.yaml.
func completeSettings(scalar bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return config.ListKeys(scalar), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeSettingValue completes a key, and the id of a model as its value.
func completeSettingValue(op *opener) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && args[0] == "model" {
			var ids []string
			for _, m := range op.openWithFaults().Models.ListChoices("") {
				ids = append(ids, term.CleanLine(m.ID))
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		}
		return completeSettings(true)(cmd, args, word)
	}
}

// listSettings returns the settings of a key, or all of them. The keys of providers from other sources than the file
// are among them.
func listSettings(p *app.Process, key string) ([]config.Setting, error) {
	list, err := config.ListSettings(p.Dirs, p.ConfigEnviron)
	if err != nil {
		return nil, err
	}
	for _, c := range p.Models.ListClients() {
		path := "clients." + c.Client + ".api_key"
		if c.Key != "" && len(config.FindSettings(list, path)) == 0 {
			list = append(list, config.Setting{Key: path, Value: config.HiddenValue, Source: c.Key})
		}
	}
	if key == "" {
		return list, nil
	}
	found := config.FindSettings(list, key)
	if len(found) == 0 {
		next := wording.SuggestNearest(key, config.ListKeys(false), "")
		return nil, ending.BadUsage(cmp.Or(next, "raddle config explain lists the keys"), "there is no setting %q", key)
	}
	return found, nil
}

func runConfigGet(_ context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	list, err := listSettings(p, args[0])
	if err != nil {
		return err
	}
	if len(list) == 1 && list[0].Key == args[0] {
		if list[0].Value == "" {
			return ending.Silent{Code: ending.Failed}
		}
		con.Out.PrintExact(list[0].Value)
		return nil
	}
	for _, s := range list {
		con.Out.PrintText(s.Key + ": " + s.Value)
	}
	return nil
}

func runConfigSet(_ context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	key := args[0]
	value := args[1]
	if key == "model" && value != "" {
		if err := p.Models.CheckNames(p.Dirs.Work, value, ""); err != nil {
			return err
		}
	}
	path, err := config.SetValue(p.Dirs.Config, key, value, p.ConfigEnviron)
	if err != nil {
		return err
	}
	con.PrintNote("%s %s is %s in %s.", con.Screen.Paint(term.Green, "✓"), key, term.CleanText(value), p.Dirs.ShortPath(path))
	if variable := "RADDLE_" + strings.ToUpper(key); p.ConfigEnviron.Get(variable) != "" {
		con.PrintWarning(variable + " is set and is used instead")
	}
	return nil
}

func runConfigExplain(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	list, err := listSettings(p, strings.Join(args, ""))
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, list, func() string { return settingsText(list, len(args) > 0) })
}

// settingsText returns settings as a table. Those without a value are one line below it, unless the user asked for
// them.
func settingsText(list []config.Setting, asked bool) string {
	var set []config.Setting
	var unset []string
	for _, s := range list {
		if s.Value == "" && !asked {
			unset = append(unset, s.Key)
			continue
		}
		set = append(set, s)
	}
	text := term.FormatRows(set,
		term.NewColumn("KEY", func(s config.Setting) string { return s.Key }),
		term.NewColumn("VALUE", func(s config.Setting) string { return cmp.Or(s.Value, "–") }),
		term.NewColumn("FROM", func(s config.Setting) string { return s.Source }),
	)
	if len(unset) > 0 {
		text += "\nNot set: " + strings.Join(unset, ", ") + "\n"
	}
	return text
}

// runConfigEdit opens config.yaml in the user's editor. If the file has errors afterwards, they are reported and the
// file stays as it is.
func runConfigEdit(ctx context.Context, con *console.Console, p *app.Process) error {
	dirs := p.Dirs
	path := filepath.Join(dirs.Config, config.FileName)
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(editor) == 0 {
		return ending.BadUsage("set it to the name of a program", "VISUAL or EDITOR is empty")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := config.WritePrivate(path, []byte(newConfigFile)); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = con.In, con.Out.File(), con.Screen.File()
	if err := cmd.Run(); err != nil {
		return &ending.Error{Code: ending.Failed, Next: "set VISUAL or EDITOR to your editor, or edit " + wording.QuoteWord(dirs.ShortPath(path)), Err: fmt.Errorf("%s: %w", editor[0], err)}
	}
	if err := config.CheckFile(dirs.Config, p.ConfigEnviron); err != nil {
		return &ending.Error{Code: ending.Invalid, Next: "correct it: raddle config edit", Err: err}
	}
	con.PrintNote("%s %s has no errors.", con.Screen.Paint(term.Green, "✓"), dirs.ShortPath(path))
	return nil
}

// newConfigFile is the first text of a config.yaml that the editor opens.
const newConfigFile = `# Settings of raddle. raddle help command-line lists the keys; raddle config explain shows what counts.
# model: openai:gpt-5-mini
`
