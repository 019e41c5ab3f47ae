package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/markdown"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/setup"
)

// environment holds what all commands share: the streams, the flags that every command
// has, and the process, once a command needs it.
type environment struct {
	in           *os.File
	out          *term.Output
	err          *term.Screen
	keys         *term.Keyboard
	quiet        bool
	verbose      bool
	color        string
	logLevel     string                     // as --log-level says
	devLog       *slog.Logger               // nil: there is no developer log
	traceFile    string                     // as --trace says; empty: none
	user         string                     // as --user says
	process      *app.Process               // nil: not opened
	problem      error                      // of the configuration
	answered     bool                       // the command has written its result; an error is only printed
	working      atomic.Bool                // nodes may be running, which a signal would have to wait for
	watching     atomic.Pointer[runWatcher] // nil: no run is being driven
	stopping     atomic.Pointer[stopper]    // of the run that is being driven
	terminalLent atomic.Bool                // a script has the terminal
	plain        bool                       // write lines only: the cursor never moves
	leave        string                     // what Esc does at a question; "": it is answered later
	progress     string                     // as --progress says
	offersLook   bool                       // a person without a model may look at recorded agents
	headed       bool                       // the last line says what failed, so that only the cause is left to say
	theme        markdown.Theme             // of formatted text
}

func newEnvironment(in, out, err *os.File) *environment {
	screen := term.NewScreen(err)
	keys := term.NewKeyboard(in, screen)
	env := &environment{in: in, out: term.NewOutput(out), err: screen, keys: keys, color: "auto", theme: markdown.Default}
	env.out.Clean, env.err.Clean = env.redactBytes, env.redactBytes
	return env
}

// addFlags adds the flags that all commands have.
func (env *environment) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.BoolVarP(&env.quiet, "quiet", "q", false, "print only errors and open questions, no progress")
	flags.BoolVarP(&env.verbose, "verbose", "v", false, "print details of what happens")
	flags.StringVar(&env.color, "color", "auto", "use colours: `WHEN` is auto, always or never")
	completeWords(root, "color", "auto", "always", "never")
	flags.StringVar(&env.progress, "progress", "auto", "show what a run does in `WAY`: auto, or plain for the lines that are written off a terminal")
	completeWords(root, "progress", "auto", "plain")
	flags.StringVar(&env.logLevel, "log-level", "", "write a developer log: `LEVEL` is "+joinWords(logLevelNames))
	completeWords(root, "log-level", logLevelNames...)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		return errors.Join(env.applyColors(), env.openDevLog(cmd.Flags().Changed("log-level")))
	}
}

// showsBlocks reports whether what runs do is shown in the lines for terminals.
func (env *environment) showsBlocks() bool {
	return env.err.IsTerminal() && env.progress != progressPlain
}

// progressPlain is the value of --progress for the lines that are written off a terminal.
const progressPlain = "plain"

// applyColors applies --color and the environment to the streams.
func (env *environment) applyColors() error {
	switch env.color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", env.color)
	}
	if env.progress != "auto" && env.progress != progressPlain {
		return badUsage("use auto or plain", "--progress: %q is unknown", env.progress)
	}
	env.err.Colors = term.WantsColors(env.color, env.err.IsTerminal(), os.Getenv)
	env.out.Colors = term.WantsColors(env.color, env.out.IsTerminal(), os.Getenv)
	return nil
}

// redactBytes removes the secrets that the process knows from what is written.
func (env *environment) redactBytes(p []byte) []byte {
	if env.process == nil {
		return p
	}
	return env.process.Tools.SecretSet().Bytes(p)
}

func (env *environment) close() {
	env.keys.Release()
	env.err.ClearLive()
	if env.process == nil {
		return
	}
	if err := env.process.CloseTrace(); err != nil {
		env.printWarning("--trace: " + err.Error())
	}
	_ = env.process.Close()
}

// addTraceFlag adds the flag for the file of a trace.
func addTraceFlag(cmd *cobra.Command, env *environment) {
	cmd.Flags().StringVar(&env.traceFile, "trace", "", "append the trace of what runs to `FILE`, as lines of OTLP in JSON")
}

// openProcess opens the process. Faults in its configuration are an error.
func (env *environment) openProcess() error {
	env.openWithFaults()
	env.process.User = env.user
	if env.problem == nil && env.traceFile != "" {
		return env.process.WriteTrace(env.traceFile)
	}
	return env.problem
}

// openWithFaults opens the process for commands that also work with an invalid
// configuration; its errors are in problem.
func (env *environment) openWithFaults() *app.Process {
	if env.process == nil {
		env.process, env.problem = app.Open(app.Options{Log: env.devLog})
		_ = env.setTheme(env.process.Config.Theme) // "" keeps the usual one
		logDirs(env.devLog, env.process.Dirs)
	}
	return env.process
}

// reopenProcess opens the process again, so that it knows a changed configuration and stored keys. Nothing may use the old one.
func (env *environment) reopenProcess() error {
	if env.process != nil {
		_ = env.process.Close() // nothing has used its store and its servers
		env.process = nil
	}
	return env.openProcess()
}

// newPrompter returns a prompter for the person at the terminal, or nil unless standard input
// and standard error are a terminal.
func (env *environment) newPrompter() term.Prompter {
	if env.plain {
		return term.NewLinePrompter(env.in, env.err, env.keys)
	}
	return term.NewPrompter(env.in, env.err, env.keys, env.leave)
}

// newGuide returns what asks the person at the terminal for a model or a key. Its prompter is nil if newPrompter returns nil.
func (env *environment) newGuide() *setup.Guide {
	return &setup.Guide{Process: env.process, Screen: env.err, Prompter: env.newPrompter(), Note: env.printNote, Warn: env.printWarning, OffersLook: env.offersLook,
		Reopen: func() (*app.Process, error) {
			err := env.reopenProcess()
			return env.process, err
		}}
}

// printNote writes a line about what was done, unless --quiet is set.
func (env *environment) printNote(format string, args ...any) {
	if !env.quiet {
		env.err.PrintLine(fmt.Sprintf(format, args...))
	}
}

// printWarning writes a warning.
func (env *environment) printWarning(text string) {
	env.err.PrintLine("raddle: " + env.err.Paint(term.Yellow, "warning:") + " " + text)
}

// printJSON writes a value on one line.
func (env *environment) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	env.out.PrintText(string(b))
	return nil
}

// printResult writes a result as JSON, or as the text that makeText returns.
func (env *environment) printResult(format string, value any, makeText func() string) error {
	if format == formatJSON {
		return env.printJSON(value)
	}
	env.out.PrintText(makeText())
	return nil
}

// setTheme changes the colours of formatted text. It returns false for an unknown name.
func (env *environment) setTheme(name string) bool {
	theme, ok := markdown.FindTheme(name)
	if ok {
		env.theme = theme
	}
	return ok
}
