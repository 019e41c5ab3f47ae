package cli

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/commandline"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/helptext"
)

// Main runs the command line with the process's streams and returns the exit
// code.
func Main(args []string) int {
	cobra.EnableCommandSorting = false // the help lists commands in the order of listCommands
	env := newEnvironment(os.Stdin, os.Stdout, os.Stderr)
	defer env.close()
	log.SetOutput(env.Screen) // of libraries
	stop := keepPipes()
	defer stop()
	defer dumpOnQuit(env.Console)()

	return runGuarded(env.Console, func() int {
		root := newRootCommand(env)
		root.SetArgs(env.completeLine(root, commandline.RewriteArgs(args)))
		return finishCommand(&env.opener, root.Execute())
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
func runGuarded(con *console.Console, command func() int) (code int) {
	defer func() {
		if p := recover(); p != nil {
			con.Keyboard.Release()
			con.Screen.ClearLive()
			_, _ = fmt.Fprintf(con.Screen, "raddle: internal error: panic: %v\n%s", p, debug.Stack())
			con.Screen.PrintLine("next: report it with the lines above; what a run had recorded is saved: raddle runs ls")
			code = ending.Fault
		}
	}()
	return command()
}

// dumpOnQuit makes SIGQUIT print the stacks of all goroutines and end the process with
// ending.Quit: the runtime's own exit code for SIGQUIT means wrong usage here. stop undoes it.
func dumpOnQuit(con *console.Console) (stop func()) {
	signals := make(chan os.Signal, 1)
	end := make(chan struct{})
	term.NotifyQuit(signals)
	go func() {
		select {
		case <-end:
		case <-signals:
			con.Keyboard.Release()
			con.Screen.ClearLive()
			con.Screen.PrintLine("raddle: SIGQUIT")
			_ = pprof.Lookup("goroutine").WriteTo(con.Screen, 2)
			os.Exit(ending.Quit)
		}
	}()
	return func() {
		signal.Stop(signals)
		close(end)
	}
}

// NewCommand returns the tree of commands, for documents that are generated from it. The
// commands cannot be run; Main runs them.
func NewCommand() *cobra.Command {
	return newRootCommand(newEnvironment(os.Stdin, os.Stdout, os.Stderr))
}

// rootOptions are the flags of raddle without a command. Except for the first, the reference tool has them.
type rootOptions struct {
	version    bool
	listAgents bool
	install    string
	chat       chatOptions
}

// newRootCommand returns the tree of commands.
func newRootCommand(env *environment) *cobra.Command {
	var opts rootOptions
	root := &cobra.Command{
		Use:   "raddle",
		Short: "Run agents that never lose their place",
		Long: `An agent is a model with tools (config.yaml) or a workflow (graph.yaml). raddle
records everything that a run does, so you can stop it at any moment, continue
it, and go back in it.`,
		Example: `  raddle init                        choose a model, and try it
  raddle                             talk with the assistant
  raddle try                         see an agent work, kill it, and continue it
  raddle examples run hello "Ada"    run an example, without a model
  raddle "What is in this directory?"  ask, and continue with: raddle -c "…"
  raddle agents new helper           create an agent
  raddle resume last                 continue the newest run`,
		Args:              refuseWords(&env.opener),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return runRoot(cmd, env, opts) },
	}
	root.Flags().BoolVar(&opts.version, "version", false, "print the version")
	root.Flags().BoolVar(&opts.listAgents, "list-agents", false, "list the agents in the agents directory")
	root.Flags().StringVar(&opts.install, "install", "", "write the `THINGS` that come with raddle: agents")
	addChatFlags(&env.opener, root, &opts.chat)
	env.addFlags(root)
	root.SetOut(env.Out)
	root.SetErr(env.Screen)
	// The help goes to standard output, because the user asked for it.
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { env.Out.PrintText(helptext.FormatHelp(cmd, env.Out.Columns())) })
	root.SetHelpCommand(newHelpCommand(&env.opener))
	root.SetFlagErrorFunc(flagError)
	for _, g := range listCommands(env) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	plainUsage(root)
	return root
}

// A commandGroup is what the help lists under one title.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// listCommands returns all commands in the order in which the help lists them.
func listCommands(env *environment) []commandGroup {
	return []commandGroup{
		{"Run", []*cobra.Command{
			newRunCommand(env),
			newAskCommand(env),
			newChatCommand(env),
			newShellCommand(&env.opener),
			newResumeCommand(env),
			newReplayCommand(env),
			newServeCommand(&env.opener),
			newTriggersCommand(&env.opener),
			newMCPCommand(&env.opener),
			newACPCommand(&env.opener),
		}},
		{"Runs", []*cobra.Command{
			newRunsCommand(env),
			newExplainCommand(&env.opener),
			newInboxCommand(env),
			newWakeCommand(env),
			newEventsCommand(env),
			newWatchCommand(&env.opener),
			newStudioCommand(&env.opener),
			newWorkersCommand(&env.opener),
			newStoreCommand(&env.opener),
			newMemoryCommand(&env.opener),
			newImportCommand(&env.opener),
		}},
		{"Author", []*cobra.Command{
			newAgentsCommand(&env.opener),
			newRolesCommand(&env.opener),
			newExamplesCommand(env),
			newCheckCommand(&env.opener),
			newFmtCommand(&env.opener),
			newLSPCommand(&env.opener),
			newTestCommand(&env.opener),
			newEvalCommand(&env.opener),
			newDatasetCommand(&env.opener),
			newChaosCommand(&env.opener),
			newDiffCommand(&env.opener),
			newGraphCommand(&env.opener),
			newToolsCommand(&env.opener),
			newSandboxCommand(&env.opener),
			newRagCommand(env),
			newSchemaCommand(env.Console),
		}},
		{"Set up", []*cobra.Command{
			newTryCommand(env),
			newInitCommand(env),
			newConfigCommand(&env.opener),
			newModelsCommand(&env.opener),
			newLoginCommand(&env.opener),
			newLogoutCommand(&env.opener),
			newDoctorCommand(&env.opener),
			newInfoCommand(&env.opener),
			newCompletionCommand(env.Console),
			newVersionCommand(env.Console),
			newUpdateCommand(env.Console),
		}},
	}
}

// runRoot does what the flags of raddle without a command say.
func runRoot(cmd *cobra.Command, env *environment, opts rootOptions) error {
	switch {
	case opts.version:
		env.Out.PrintText(fmt.Sprintf("raddle %s (%s, %s/%s)", app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
		return nil
	case opts.listAgents:
		for _, name := range agentNames(&env.opener) {
			env.Out.PrintText(name)
		}
		return nil
	case opts.install == "agents":
		if err := env.openProcess(); err != nil {
			return err
		}
		return runAgentsInstall(cmd.Context(), env.Console, env.process, agentsInstallOptions{}, nil)
	case opts.install != "":
		return ending.BadUsage("write: raddle --install agents", "--install %s: only agents can be installed; tools are built in", opts.install)
	}
	if env.HasPerson() || cmd.Flags().NFlag() > 0 {
		return runChat(cmd.Context(), env, opts.chat, nil)
	}
	return cmd.Help()
}

// plainUsage keeps the library from adding to the usage lines of commands.
func plainUsage(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	for _, c := range cmd.Commands() {
		plainUsage(c)
	}
}

// finishCommand prints what went wrong, if anything, and returns the exit code.
func finishCommand(op *opener, err error) int {
	op.Screen.ClearLive()
	if err == nil && op.Out.Err() != nil {
		err = &ending.Error{Code: ending.Failed, Err: fmt.Errorf("the result cannot be written: %w", op.Out.Err())}
	}
	code := ending.CodeOf(err)
	var quiet ending.Silent
	if err != nil && !errors.As(err, &quiet) {
		ending.PrintError(op.Console, op.process, err)
	}
	return code
}
