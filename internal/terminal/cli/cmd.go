package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"raddle.dev/internal/base/commandline"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

// noOptions are the options of a command without flags.
type noOptions struct{}

// A runFunc is what a command does on its console with the process, which is open.
type runFunc[O any] func(ctx context.Context, con *console.Console, p *app.Process, opts O, args []string) error

// newCommand completes the definition of a command: it opens the process and calls run with the options, which the
// flags have set by then.
func newCommand[O any](op *opener, opts *O, run runFunc[O], cmd *cobra.Command) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := op.openProcess(); err != nil {
			return err
		}
		return run(cmd.Context(), op.Console, op.process, *opts, args)
	}
	return cmd
}

// outputOptions are the options of a command that has only the flag --output.
type outputOptions struct{ output string }

// newOutputCommand is newCommand for a command that has only the flag --output, with its usage.
func newOutputCommand(op *opener, usage string, run runFunc[outputOptions], cmd *cobra.Command) *cobra.Command {
	var opts outputOptions
	addOutputFlag(cmd, &opts.output, usage)
	return newCommand(op, &opts, run, cmd)
}

// newGroup completes the definition of a command that only has other commands.
func newGroup(op *opener, cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = refuseWords(op)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// addOutputFlag adds the flag --output, which has only the formats that usage lists.
func addOutputFlag(cmd *cobra.Command, format *string, usage string) {
	formats := []string{console.FormatText, console.FormatJSON}
	if strings.Contains(usage, console.FormatStream) {
		formats = append(formats, console.FormatStream)
	}
	if strings.Contains(usage, testrun.FormatJUnit) {
		formats = append(formats, testrun.FormatJUnit)
	}
	cmd.Flags().StringVar(format, "output", console.FormatText, usage)
	completeWords(cmd, "output", formats...)
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkFormat(*format, formats...) }
}

func checkFormat(format string, known ...string) error {
	if slices.Contains(known, format) {
		return nil
	}
	return ending.BadUsage(ending.SuggestWord(format, known), "there is no output format %q", format)
}

// checkArgCount checks the number of arguments of a command.
func checkArgCount(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		usage := "usage: " + cmd.UseLine()
		switch {
		case len(args) < least:
			return ending.BadUsage(usage, "%s: %s is missing", cmd.CommandPath(), what)
		case most >= 0 && len(args) > most:
			return ending.BadUsage(usage, "%s: unexpected argument %q", cmd.CommandPath(), args[most])
		}
		return nil
	}
}

// refuseWords returns an error for words that name no command.
func refuseWords(op *opener) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		next := "see: raddle --help"
		near := wording.FindNearest(args[0], commandNamesOf(cmd))
		same := commandline.Synonyms[strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "raddle ")]
		switch {
		case same != "":
			next = "use: raddle " + same
		case near != "":
			next = "did you mean: " + cmd.CommandPath() + " " + near + "?"
		case app.IsPath(args[0]) || slices.ContainsFunc(op.openWithFaults().ListAgents(), func(a app.Place) bool { return a.Name == args[0] }):
			next = "to run an agent: raddle run " + wording.QuoteWord(args[0])
		case !cmd.HasParent() && strings.TrimSpace(args[0]) == "":
			next = "write it between the quotes, which may hold a variable that is not set; the commands: raddle --help"
			return ending.BadUsage(next, "the question is empty")
		case !cmd.HasParent():
			next = "as a question: raddle ask " + strings.Join(args, " ") + "; the commands: raddle --help"
		}
		return ending.BadUsage(next, "unknown command %q", args[0])
	}
}

// flagError says what is wrong with a flag, and suggests the one that may have been meant. If a word before the flag is
// not a command, it reports the word.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() {
		if unknown := cmd.ValidateArgs(cmd.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	next := "see: " + cmd.CommandPath() + " --help"
	if letter, ok := strings.CutPrefix(err.Error(), "unknown shorthand flag: '"); ok {
		next = cmp.Or(commandline.FlagSynonyms[letter[:1]], next)
	}
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := wording.FindNearest(name, names); near != "" {
			next = "did you mean --" + near + "?"
		}
		next = cmp.Or(commandline.FlagSynonyms[name], next)
	}
	return &ending.Error{Code: ending.Usage, Next: next, Err: err}
}

// completeWords completes a flag with a few words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// describeCompletion returns a word with its meaning. The shell prints both, so they are cleaned although they go
// through a pipe.
func describeCompletion(word, what string) cobra.Completion {
	return cobra.CompletionWithDesc(term.CleanLine(word), term.CleanLine(what))
}

// completeAgents completes the first argument with the names of agents; the shell
// adds paths.
func completeAgents(op *opener) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		p := op.openWithFaults()
		var names []string
		for _, place := range p.ListAgents() {
			if strings.HasPrefix(place.Name, word) {
				names = append(names, describeCompletion(place.Name, firstLine(listAgent(p, place).Description)))
			}
		}
		return names, cobra.ShellCompDirectiveDefault
	}
}

func agentNames(op *opener) []string {
	var names []string
	for _, a := range op.openWithFaults().ListAgents() {
		names = append(names, term.CleanLine(a.Name))
	}
	return names
}

// maxLast is how many of the newest runs have the completions last, last~1 and so on, and maxCompleted among how many
// of those whose ids begin with a word the completions are.
const (
	maxLast      = 10
	maxCompleted = 200
)

// completeRuns completes arguments with ids of runs and with last, described by their agent and
// status. keep selects the runs.
func completeRuns(op *opener, most int, keep func(runs.Info) bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := op.openWithFaults().Runs.ListNewest(context.Background(), "", maxLast)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		add := func(name string, r runs.Info) {
			if strings.HasPrefix(name, word) && (keep == nil || keep(r)) {
				ids = append(ids, describeCompletion(name, runview.DescribeListed(&r)))
			}
		}
		for back, r := range all {
			if back == 0 || strings.HasPrefix(word, "l") { // an empty word shows only one of them
				add(runs.NameLast(back), r)
			}
		}
		if all, err = op.openWithFaults().Runs.ListNewest(context.Background(), word, maxCompleted); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		for _, r := range all {
			add(r.Run, r)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completePoints completes arguments with ids of runs, and after an @ with the
// run's checkpoints.
func completePoints(op *opener, most int) cobra.CompletionFunc {
	complete := completeRuns(op, most, nil)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		run, _, ok := strings.Cut(word, "@")
		if !ok || len(args) >= most {
			return complete(cmd, args, word)
		}
		points, err := op.openWithFaults().Runs.ListCheckpoints(context.Background(), run)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, c := range points {
			if name := (runs.Point{Run: run, At: c.At}).String(); strings.HasPrefix(name, word) {
				names = append(names, describeCompletion(name, runview.DescribePoint(&c)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeAnswers completes --answer with the questions that the run has open.
func completeAnswers(op *opener) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
		if len(args) == 0 {
			return nil, directive
		}
		archive := op.openWithFaults().Runs
		id, err := archive.ResolveLast(context.Background(), args[0])
		if err != nil {
			return nil, directive
		}
		list, err := archive.ListNewest(context.Background(), id, 2)
		if err != nil || len(list) != 1 {
			return nil, directive
		}
		var ids []string
		for _, q := range list[0].Questions {
			prompt, _, _ := strings.Cut(q.Prompt, "\n")
			ids = append(ids, describeCompletion(q.ID+"=", wording.CutText(prompt, 60, "…")))
		}
		return ids, directive
	}
}

// completeModels completes models with those of configured clients.
func completeModels(op *opener) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var ids []string
		for _, c := range op.openWithFaults().Models.ListClients() {
			if len(c.Models) == 0 && c.Ready {
				ids = append(ids, c.Client+":")
			}
			for _, m := range c.Models {
				ids = append(ids, c.Client+":"+m)
			}
		}
		return append(ids, "script:"), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
