package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func completionCommand(env *environment) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long:  "The shells are bash, zsh, fish and powershell. Names of agents, ids of runs and formats are completed too.",
		Example: `  source <(raddle completion bash)                                      for this shell
  raddle completion zsh > "${fpath[1]}/_raddle"                         permanently
  raddle completion fish > ~/.config/fish/completions/raddle.fish`,
		Args:      checkArgCount(1, 1, "the name of a shell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(env.out, true)
			case "zsh":
				return root.GenZshCompletion(env.out)
			case "fish":
				return root.GenFishCompletion(env.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(env.out)
			}
			return badUsage(suggestWord(args[0], shells), "there is no completion for %q", args[0])
		},
	}
}

// suggestWord suggests one of a few words, or lists them.
func suggestWord(wrong string, known []string) string {
	if near := wording.FindNearest(wrong, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "use one of " + joinWords(known)
}

// completeWords completes a flag with a few words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// describeCompletion returns a word with its meaning. The shell prints both, so they are cleaned although they go through a pipe.
func describeCompletion(word, what string) cobra.Completion {
	return cobra.CompletionWithDesc(term.CleanLine(word), term.CleanLine(what))
}

// completeAgents completes the first argument with the names of agents; the shell
// adds paths.
func (env *environment) completeAgents(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return agentNames(env), cobra.ShellCompDirectiveDefault
}

func agentNames(env *environment) []string {
	var names []string
	for _, a := range env.openWithFaults().ListAgents() {
		names = append(names, term.CleanLine(a.Name))
	}
	return names
}

// completeRuns completes arguments with ids of runs, described by their agent and
// status. keep selects the runs.
func completeRuns(env *environment, most int, keep func(runs.Info) bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := env.openWithFaults().Runs.ListRuns(context.Background(), word)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, r := range list {
			if keep == nil || keep(r) {
				ids = append(ids, describeCompletion(r.Run, r.Agent+", "+r.Status))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completePoints completes arguments with ids of runs, and after an @ with the
// run's checkpoints.
func completePoints(env *environment, most int) cobra.CompletionFunc {
	complete := completeRuns(env, most, nil)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		run, _, ok := strings.Cut(word, "@")
		if !ok || len(args) >= most {
			return complete(cmd, args, word)
		}
		points, err := env.openWithFaults().Runs.ListCheckpoints(context.Background(), run)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, c := range points {
			if name := (runs.Point{Run: run, At: c.At}).String(); strings.HasPrefix(name, word) {
				names = append(names, describeCompletion(name, pointText(&c)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeAnswers completes --answer with the questions that the run has open.
func (env *environment) completeAnswers(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
	if len(args) == 0 {
		return nil, directive
	}
	list, err := env.openWithFaults().Runs.ListRuns(context.Background(), args[0])
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
