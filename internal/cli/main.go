package cli

import (
	"os"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

// Main runs the command line with the process's streams and returns the exit
// code.
func Main(args []string) int {
	sh := newShell(os.Stdin, os.Stdout, os.Stderr)
	defer sh.close()
	stop := keepPipes()
	defer stop()

	root := sh.root()
	root.SetArgs(rearrange(args))
	return sh.finish(root.Execute())
}

// shell is what all commands share: the streams, the flags that every command
// has, and the process, once it is needed.
type shell struct {
	in       *os.File
	out      *stdout
	err      *terminal
	quiet    bool
	verbose  bool
	color    string
	process  *app.Process
	problem  error // of the configuration
	answered bool  // the command has written its result; an error is only told
	working  atomic.Bool
	watching atomic.Pointer[watch] // nil: nothing is being driven
}

// setBusy notes whether nodes may be at work, which is what a signal would have
// to wait for.
func (sh *shell) setBusy(yes bool) { sh.working.Store(yes) }

func (sh *shell) busy() bool { return sh.working.Load() }

func newShell(in, out, err *os.File) *shell {
	return &shell{in: in, out: &stdout{file: out}, err: &terminal{file: err}, color: "auto"}
}

func (sh *shell) close() {
	sh.err.still()
	if sh.process != nil {
		_ = sh.process.Close()
	}
}

// app opens the process. Faults in its configuration are an error.
func (sh *shell) app() (*app.Process, error) {
	p := sh.surroundings()
	return p, sh.problem
}

// surroundings opens the process for commands that work with a faulty
// configuration too; the faults are in problem.
func (sh *shell) surroundings() *app.Process {
	if sh.process == nil {
		sh.process, sh.problem = app.Open(app.Options{})
	}
	return sh.process
}

// root is the tree of commands.
func (sh *shell) root() *cobra.Command {
	var list, version bool
	var install string
	root := &cobra.Command{
		Use:   "raddle",
		Short: "Run agents that never lose their place",
		Long: `Exit codes: 0 finished, 1 failed, 2 bad usage or input, 3 configuration or agent invalid, 4 key missing or
rejected, 5 parked for a person, 6 budget used up, 7 step or loop limit, 8 cannot resume, 124 timeout, 129, 130 and 143 stopped by a
signal, 141 nobody read the output; an end node may set 64 to 113.`,
		Example: `  raddle run examples/hello "Ada"        run an agent
  raddle agents new helper               begin one of your own
  raddle resume 06ab                     go on with a run that waits or was killed
  raddle check examples/triage           find faults without running anything`,
		Args:              sh.noCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case version:
				return sh.printVersion()
			case list:
				return sh.listAgents()
			case install != "":
				return sh.installThings(install)
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.Flags().BoolVar(&list, "list-agents", false, "list the agents in the agents directory")
	root.Flags().StringVar(&install, "install", "", "write the `THINGS` that come with raddle: agents")
	flags := root.PersistentFlags()
	flags.BoolVarP(&sh.quiet, "quiet", "q", false, "print no progress; errors and open questions are printed all the same")
	flags.BoolVarP(&sh.verbose, "verbose", "v", false, "print details of what happens")
	flags.StringVar(&sh.color, "color", "auto", "use colours: `WHEN` is auto, always or never")
	fixed(root, "color", "auto", "always", "never")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return sh.colors() }
	root.SetHelpFunc(sh.help)
	root.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true, RunE: sh.helpCommand})
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		sh.runCommand(), sh.resumeCommand(), sh.checkCommand(), sh.graphCommand(), sh.runsCommand(),
		sh.agentsCommand(), sh.toolsCommand(), sh.modelsCommand(), sh.ragCommand(), sh.infoCommand(), sh.schemaCommand(), sh.completionCommand(), sh.versionCommand(),
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

// noCommand refuses words that name no command.
func (sh *shell) noCommand(cmd *cobra.Command, args []string) error {
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
	switch near := app.Nearest(args[0], names); {
	case near != "":
		next = "did you mean: " + cmd.CommandPath() + " " + near + "?"
	case app.IsPath(args[0]) || slices.ContainsFunc(sh.surroundings().Agents(), func(a app.Place) bool { return a.Name == args[0] }):
		next = "to run an agent: raddle run " + quote(args[0])
	}
	return badUsage(next, "unknown command %q", args[0])
}
