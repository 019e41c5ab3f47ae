package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/gallery"
)

func newExamplesCommand(env *environment) *cobra.Command {
	complete := cobra.FixedCompletions(gallery.ListNames(), cobra.ShellCompDirectiveNoFileComp)
	var output string
	ls := &cobra.Command{
		Use:   "ls",
		Short: "List the examples",
		Args:  checkArgCount(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return gallery.PrintList(env.Console, output) },
	}
	addOutputFlag(ls, &output, "write it as `FORMAT`: text or json")
	opts := runOptions{output: console.FormatText}
	run := &cobra.Command{
		Use:               "run NAME [PROMPT...]",
		Short:             "Run an example, without a key and a network",
		Example:           "  raddle examples run hello \"Ada\"\n  raddle examples run triage --answer yes",
		Args:              checkArgCount(1, -1, "the example"),
		ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return reportRefusal(env.Console, opts.output, runExample(cmd.Context(), env, opts, args))
		},
	}
	addRunFlags(&env.opener, run, &opts)
	copies := &cobra.Command{
		Use:               "copy [NAME...]",
		Short:             "Write examples to the directory examples, to read and change",
		Example:           "  raddle examples copy triage\n  raddle examples copy",
		ValidArgsFunction: complete,
		RunE:              func(_ *cobra.Command, args []string) error { return gallery.CopyExamples(env.Console, ".", args) },
	}
	return newGroup(&env.opener, &cobra.Command{
		Use:     "examples",
		Short:   "List, run and copy the examples that are part of raddle",
		Example: "  raddle examples ls\n  raddle examples run hello \"Ada\"\n  raddle examples copy triage",
	}, ls, run, copies)
}

// runExample runs an example where it may write what it likes: in the cache.
func runExample(ctx context.Context, env *environment, opts runOptions, args []string) error {
	dirs, err := config.FindDirs(environ.New(os.Environ()), "")
	if err != nil {
		return err
	}
	e, err := gallery.PrepareRun(dirs, args[0], args[1:])
	if err != nil {
		return err
	}
	env.work = e.Work
	words := []string{e.Agent}
	if e.Prompt != "" {
		words = append(words, e.Prompt)
	}
	return runRun(ctx, env, opts, words)
}
