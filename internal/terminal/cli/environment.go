package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/terminal/console"
)

// environment is what the program is composed of. A function takes the part that it uses: the console, the process,
// what opens a process, or the run in the foreground.
type environment struct {
	opener
	foreground
}

func newEnvironment(in, out, err *os.File) *environment {
	env := &environment{}
	env.Console = console.New(in, out, err, env.redactBytes)
	return env
}

// addFlags adds the flags that all commands have.
func (env *environment) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.BoolVarP(&env.Quiet, "quiet", "q", false, "print only errors and open questions, no progress")
	flags.BoolVarP(&env.Verbose, "verbose", "v", false, "print details of what happens")
	flags.StringVar(&env.Color, "color", "auto", "use colours: `WHEN` is auto, always or never")
	completeWords(root, "color", "auto", "always", "never")
	flags.StringVar(&env.Progress, "progress", "auto", "show what a run does in `WAY`: auto, or plain for the lines that are written off a terminal")
	completeWords(root, "progress", "auto", "plain")
	flags.StringVar(&env.logLevel, "log-level", "", "write a developer log: `LEVEL` is "+strings.Join(logLevelNames, ", "))
	completeWords(root, "log-level", logLevelNames...)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		return errors.Join(applyColors(env.Console), env.openDevLog(cmd.Flags().Changed("log-level")))
	}
}

// applyColors applies --color and the environment to the streams.
func applyColors(con *console.Console) error {
	switch con.Color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", con.Color)
	}
	if con.Progress != "auto" && con.Progress != console.PlainProgress {
		return badUsage("use auto or plain", "--progress: %q is unknown", con.Progress)
	}
	con.Screen.Colors = term.WantsColors(con.Color, con.Screen.IsTerminal(), os.Getenv)
	con.Out.Colors = term.WantsColors(con.Color, con.Out.IsTerminal(), os.Getenv)
	return nil
}
