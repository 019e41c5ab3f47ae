package cli

import "github.com/spf13/cobra"

func newCompletionCommand(env *environment) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell",
		Long:  "The shells are bash, zsh, fish and powershell. Names of agents, ids of runs, keys and formats are completed too.\nraddle init sets completion up for your shell.",
		Example: `  eval "$(raddle completion bash)"                         for this shell
  raddle completion zsh > "${fpath[1]}/_raddle"            permanently
  raddle completion fish > ~/.config/fish/completions/raddle.fish`,
		Args:      checkArgCount(1, 1, "the name of a shell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return WriteBashCompletion(root, env.out)
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
