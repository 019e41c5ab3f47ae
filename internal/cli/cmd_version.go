package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

// versionOptions are the flags of "version".
type versionOptions struct{ output string }

func newVersionCommand(env *environment) *cobra.Command {
	var opts versionOptions
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Args:  checkArgCount(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return printBuild(env, opts.output) },
	}
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	return cmd
}

// printBuild prints the version, the commit and how the program was built.
func printBuild(env *environment, output string) error {
	b := app.ReadBuild()
	text := "raddle " + b.Version + "\n"
	switch {
	case b.Commit == "":
		text += "commit unknown: built outside of a clone\n"
	case b.Modified:
		text += fmt.Sprintf("commit %s of %s, with changes\n", b.Commit, b.Time)
	default:
		text += fmt.Sprintf("commit %s of %s\n", b.Commit, b.Time)
	}
	return env.printResult(output, b, func() string { return text + fmt.Sprintf("built with %s for %s", b.Go, b.Platform) })
}
