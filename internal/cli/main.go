package cli

import (
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// Main runs the command line with the process's streams and returns the exit
// code.
func Main(args []string) int {
	env := newEnvironment(os.Stdin, os.Stdout, os.Stderr)
	defer env.close()
	log.SetOutput(env.err) // of libraries
	stop := keepPipes()
	defer stop()
	defer env.dumpOnQuit()()

	return env.runGuarded(func() int {
		root := rootCommand(env)
		root.SetArgs(rewriteArgs(args))
		return env.finishCommand(root.Execute())
	})
}

// keepPipes makes writes to a closed pipe fail with an error, instead
// of ending the process while it has a run to save.
func keepPipes() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}

// runGuarded returns the exit code of a command. A panic is an internal error, which has a
// code of its own: what the run has recorded so far is saved.
func (env *environment) runGuarded(command func() int) (code int) {
	defer func() {
		if p := recover(); p != nil {
			env.keys.Release()
			env.err.ClearLive()
			_, _ = fmt.Fprintf(env.err, "raddle: internal error: panic: %v\n%s", p, debug.Stack())
			env.err.PrintLine("next: report it with the lines above; what a run had recorded is saved: raddle runs ls")
			code = exitFault
		}
	}()
	return command()
}

// dumpOnQuit makes SIGQUIT print the stacks of all goroutines and end the process with
// exitQuit: the runtime's own exit code for SIGQUIT means wrong usage here. stop undoes it.
func (env *environment) dumpOnQuit() (stop func()) {
	signals := make(chan os.Signal, 1)
	end := make(chan struct{})
	notifyQuit(signals)
	go func() {
		select {
		case <-end:
		case <-signals:
			env.keys.Release()
			env.err.ClearLive()
			env.err.PrintLine("raddle: SIGQUIT")
			_ = pprof.Lookup("goroutine").WriteTo(env.err, 2)
			os.Exit(exitQuit)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(end)
	}
}

// environment holds what all commands share: the streams, the flags that every command
// has, and the process, once a command needs it.
type environment struct {
	in       *os.File
	out      *term.Output
	err      *term.Screen
	keys     *term.Keyboard
	quiet    bool
	verbose  bool
	color    string
	logLevel string       // as --log-level says
	devLog   *slog.Logger // nil: there is no developer log
	process  *app.Process
	problem  error // of the configuration
	answered bool  // the command has written its result; an error is only printed
	working  atomic.Bool
	watching atomic.Pointer[runWatcher] // nil: no run is being driven
	stopping atomic.Pointer[stopper]    // of the run that is being driven
	lent     atomic.Bool                // a script has the terminal
}

// setBusy records whether nodes may be running, which a signal would have
// to wait for.
func (env *environment) setBusy(yes bool) { env.working.Store(yes) }

func (env *environment) isBusy() bool { return env.working.Load() }

func newEnvironment(in, out, err *os.File) *environment {
	screen := term.NewScreen(err)
	keys := term.NewKeyboard(in, screen.SuspendLive, screen.ResumeLive)
	env := &environment{in: in, out: term.NewOutput(out), err: screen, keys: keys, color: "auto"}
	env.out.Clean, env.err.Clean = env.redactBytes, env.redactBytes
	return env
}

// redactBytes removes the secrets that the process knows from what is written.
func (env *environment) redactBytes(p []byte) []byte {
	if env.process == nil {
		return p
	}
	return env.process.SecretSet().Bytes(p)
}

func (env *environment) close() {
	env.keys.Release()
	env.err.ClearLive()
	if env.process != nil {
		_ = env.process.Close()
	}
}

// openProcess opens the process. Faults in its configuration are an error.
func (env *environment) openProcess() (*app.Process, error) {
	p := env.openWithFaults()
	return p, env.problem
}

// openWithFaults opens the process for commands that also work with an invalid
// configuration; its errors are in problem.
func (env *environment) openWithFaults() *app.Process {
	if env.process == nil {
		env.process, env.problem = app.Open(app.Options{Log: env.devLog})
		logDirs(env.devLog, env.process.Dirs)
	}
	return env.process
}

// NewCommand returns the tree of commands, for documents that are generated from it. The
// commands cannot be run; Main runs them.
func NewCommand() *cobra.Command { return rootCommand(newEnvironment(os.Stdin, os.Stdout, os.Stderr)) }

// rootCommand returns the tree of commands.
func rootCommand(env *environment) *cobra.Command {
	var list, version bool
	var install string
	root := &cobra.Command{
		Use:   "raddle",
		Short: "Run agents that never lose their place",
		Long: `Exit codes: 0 finished, 1 failed, 2 bad usage or input, 3 configuration or agent invalid, 4 key missing or
rejected, 5 parked for a person, 6 budget used up, 7 step or loop limit, 8 cannot resume, 124 timeout, 129, 130 and 143 stopped by a
signal, 141 output pipe closed; an end node may set 64 to 113.`,
		Example: `  raddle run examples/hello "Ada"        run an agent
  raddle agents new helper               create an agent
  raddle resume 06ab                     continue a run
  raddle check examples/triage           find errors without running anything`,
		Args:              env.noCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case version:
				return printVersion(env)
			case list:
				return listAgents(env)
			case install != "":
				return installThings(env, install)
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.Flags().BoolVar(&list, "list-agents", false, "list the agents in the agents directory")
	root.Flags().StringVar(&install, "install", "", "write the `THINGS` that come with raddle: agents")
	flags := root.PersistentFlags()
	flags.BoolVarP(&env.quiet, "quiet", "q", false, "print only errors and open questions, no progress")
	flags.BoolVarP(&env.verbose, "verbose", "v", false, "print details of what happens")
	flags.StringVar(&env.color, "color", "auto", "use colours: `WHEN` is auto, always or never")
	completeWords(root, "color", "auto", "always", "never")
	flags.StringVar(&env.logLevel, "log-level", "", "write a developer log: `LEVEL` is "+joinWords(logLevelNames))
	completeWords(root, "log-level", logLevelNames...)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		return errors.Join(env.applyColors(), env.openDevLog(cmd.Flags().Changed("log-level")))
	}
	root.SetOut(env.out)
	root.SetErr(env.err)
	root.SetHelpFunc(env.printHelp)
	root.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true, RunE: env.helpCommand})
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		runCommand(env), resumeCommand(env), checkCommand(env), graphCommand(env), runsCommand(env),
		agentsCommand(env), toolsCommand(env), modelsCommand(env), ragCommand(env), infoCommand(env), schemaCommand(env), completionCommand(env), versionCommand(env),
	)
	plainUsage(root)
	return root
}

// plainUsage keeps the library from adding to the usage lines of commands.
func plainUsage(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	for _, c := range cmd.Commands() {
		plainUsage(c)
	}
}

// noCommand returns an error for words that name no command.
func (env *environment) noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	next := "see: raddle --help"
	switch near := wording.FindNearest(args[0], names); {
	case near != "":
		next = "did you mean: " + cmd.CommandPath() + " " + near + "?"
	case app.IsPath(args[0]) || slices.ContainsFunc(env.openWithFaults().ListAgents(), func(a app.Place) bool { return a.Name == args[0] }):
		next = "to run an agent: raddle run " + quoteWord(args[0])
	}
	return badUsage(next, "unknown command %q", args[0])
}
