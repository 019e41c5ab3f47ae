package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/memory"
)

// memoryOptions are the flags of the commands of memory.
type memoryOptions struct{ output, user, app string }

// namespace returns the namespace that the flags name, or usual if they name none.
func (o memoryOptions) namespace(usual string) string {
	switch {
	case o.user != "":
		return memory.UserNamespace(o.user)
	case o.app != "":
		return memory.AppNamespace(o.app)
	}
	return usual
}

func newMemoryCommand(op *opener) *cobra.Command {
	newOne := func(run runFunc[memoryOptions], cmd *cobra.Command) *cobra.Command {
		var opts memoryOptions
		cmd.Flags().StringVar(&opts.user, "user", "", "the memory of `NAME`")
		cmd.Flags().StringVar(&opts.app, "app", "", "the values of the application `NAME`, which all its users share")
		cmd.MarkFlagsMutuallyExclusive("user", "app")
		addOutputFlag(cmd, &opts.output, "write the result as `FORMAT`: text or json")
		return newCommand(op, &opts, run, cmd)
	}
	return newGroup(op, &cobra.Command{
		Use: "memory", Short: "Show and remove what agents remember beyond a run",
		Long: `Agents that have the tools memory__save, memory__search and memory__forget remember values in the store of runs.
Without --user and --app, show and rm are about the memory of runs without a user, and ls and export about everything.`,
		Example: `  raddle memory ls --user ada
  raddle memory rm colour --user ada`,
	},
		newOne(runMemoryList, &cobra.Command{Use: "ls", Short: "List what is remembered", Args: checkArgCount(0, 0, "")}),
		newOne(runMemoryShow, &cobra.Command{Use: "show KEY", Short: "Print a value", Args: checkArgCount(1, 1, "the key")}),
		newOne(runMemoryRemove, &cobra.Command{Use: "rm KEY...", Short: "Remove values permanently", Args: checkArgCount(1, -1, "a key")}),
		newOne(runMemoryExport, &cobra.Command{Use: "export", Short: "Print all values, each as a line of JSON", Args: checkArgCount(0, 0, "")}))
}

func runMemoryList(ctx context.Context, con *console.Console, p *app.Process, opts memoryOptions, _ []string) error {
	list, err := readMemory(ctx, p, opts)
	if err != nil {
		return err
	}
	if opts.output == console.FormatJSON {
		return con.PrintJSON(list)
	}
	if len(list) == 0 {
		con.PrintNote("nothing is remembered")
		return nil
	}
	table := term.NewTable(
		term.NewColumn("OF", func(e memory.Entry) string { return term.CleanText(e.Namespace) }),
		term.NewColumn("KEY", func(e memory.Entry) string { return term.CleanText(e.Key) }),
		term.NewColumn("SAVED", func(e memory.Entry) string { return e.Updated.Local().Format(time.DateOnly) }),
		term.NewColumn("EXPIRES", func(e memory.Entry) string {
			if e.Expires.IsZero() {
				return "never"
			}
			return e.Expires.Local().Format(time.DateOnly)
		}),
		term.NewColumn("VALUE", func(e memory.Entry) string { return term.CleanText(string(e.Value)) }),
	)
	for _, e := range list {
		table.AddRow(e)
	}
	con.PrintTable(table)
	return nil
}

// readMemory returns the entries that the flags name.
func readMemory(ctx context.Context, p *app.Process, opts memoryOptions) ([]memory.Entry, error) {
	st, err := p.Runs.OpenExistingMemory()
	if err != nil {
		return nil, err
	}
	list, err := memory.ReadEntries(ctx, st, opts.namespace(""))
	return slices.DeleteFunc(list, func(e memory.Entry) bool { return memory.IsWithin(entries.Root, e.Namespace) }), err
}

func runMemoryShow(ctx context.Context, con *console.Console, p *app.Process, opts memoryOptions, args []string) error {
	st, err := p.Runs.OpenExistingMemory()
	if err != nil {
		return err
	}
	namespace := opts.namespace(memory.UserNamespace(""))
	e, err := st.GetEntry(ctx, namespace, args[0])
	if err != nil {
		return explainMissing(err, namespace, args[0])
	}
	return con.PrintResult(opts.output, e, func() string { return term.CleanText(string(e.Value)) })
}

func runMemoryRemove(ctx context.Context, con *console.Console, p *app.Process, opts memoryOptions, args []string) error {
	st, err := p.Runs.OpenExistingMemory()
	if err != nil {
		return err
	}
	namespace := opts.namespace(memory.UserNamespace(""))
	for _, key := range args {
		if err := st.DeleteEntry(ctx, namespace, key); err != nil {
			return explainMissing(err, namespace, key)
		}
		con.PrintNote("removed %q of %s", term.CleanText(key), term.CleanText(namespace))
	}
	return nil
}

// explainMissing returns the error for an entry that does not exist; other errors do not change.
func explainMissing(err error, namespace, key string) error {
	if !errors.Is(err, memory.ErrNotFound) {
		return err
	}
	return ending.BadUsage("see what there is with: raddle memory ls", "nothing is remembered under the key %q of %s", key, namespace)
}

func runMemoryExport(ctx context.Context, con *console.Console, p *app.Process, opts memoryOptions, _ []string) error {
	list, err := readMemory(ctx, p, opts)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, list, func() string {
		var lines []string
		for _, e := range list {
			text, _ := json.Marshal(e) // Put has checked its value
			lines = append(lines, string(text))
		}
		return term.CleanText(strings.Join(lines, "\n"))
	})
}
