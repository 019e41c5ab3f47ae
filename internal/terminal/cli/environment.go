package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/commandline"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/frontdoor"
	"raddle.dev/internal/terminal/prompting"
)

// environment is what the program is composed of. A function takes the part that it uses: the console, the process,
// what opens a process, or the run in the foreground.
type environment struct {
	opener
	foreground
	input *prompting.Input // standard input, where it is a part of a prompt
}

func newEnvironment(in, out, err *os.File) *environment {
	env := &environment{input: prompting.NewInput(in, prompting.FirstByte)}
	env.Console = console.New(in, out, err, env.redactBytes)
	return env
}

// completeLine returns a command line with the command that it means.
func (env *environment) completeLine(root *cobra.Command, args []string) []string {
	door := &frontdoor.Door{Root: root, Means: func(word string) string { return commandline.Synonyms[word] }}
	for _, c := range root.Commands() {
		switch c.Name() {
		case "ask":
			door.Ask = c
		case "run":
			door.Run = c
		}
	}
	door.IsAgent = func(word string) bool {
		p, _ := app.Open(app.Options{}) // faults of the configuration are reported by the command
		defer func() { _ = p.Close() }()
		return slices.ContainsFunc(p.ListAgents(), func(a app.Place) bool { return a.Name == word })
	}
	door.HasInput = func() bool {
		_, has, err := env.input.ReadSoon()
		return has || err != nil // the command reports the error
	}
	return door.CompleteLine(args)
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
		return ending.BadUsage("use auto, always or never", "--color: %q is unknown", con.Color)
	}
	if con.Progress != "auto" && con.Progress != console.PlainProgress {
		return ending.BadUsage("use auto or plain", "--progress: %q is unknown", con.Progress)
	}
	con.Screen.Colors = term.WantsColors(con.Color, con.Screen.IsTerminal(), os.Getenv)
	con.Out.Colors = term.WantsColors(con.Color, con.Out.IsTerminal(), os.Getenv)
	return nil
}
