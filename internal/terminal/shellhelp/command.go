package shellhelp

import "github.com/spf13/cobra"

// NewCommand returns the command shell with its flags, and the options that they set. The caller adds what it does.
func NewCommand() (*cobra.Command, *Options) {
	var opts Options
	cmd := &cobra.Command{
		Use:   "shell [WORDS...]",
		Short: "Suggest a command of the shell for words, and run it if you want",
		Long: `raddle -e "WORDS" does the same. The whole command is shown, with control characters visible and what it does, and runs in
your shell only if you choose that on the terminal. What a rule denies is not run. Off a terminal, and with --print, the command is
printed and nothing runs. --keys prints a key binding (Alt-E) that puts the command for the words in the line into the line.`,
		Example: "  raddle -e \"find the ten largest files\"\n  eval \"$(raddle shell --keys bash)\"",
	}
	cmd.Flags().StringVarP(&opts.Model, "model", "m", "", "use this `MODEL`")
	opts.Limits.AddFlags(cmd.Flags(), "the run")
	cmd.Flags().BoolVar(&opts.Print, "print", false, "print the command, and run nothing")
	cmd.Flags().StringVar(&opts.Keys, "keys", "", "print the key binding of `SHELL`: bash, zsh or fish")
	return cmd, &opts
}
