package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

func versionCommand(env *environment) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and what it was built from",
		Args:  checkArgCount(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			return printBuild(env, output)
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write it as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
}

// printVersion prints one line, for --version.
func printVersion(env *environment) error {
	env.out.PrintText(fmt.Sprintf("raddle %s (%s, %s/%s)", app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
	return nil
}

// printBuild prints the version, the commit and how the program was built.
func printBuild(env *environment, output string) error {
	b := app.ReadBuild()
	if output == formatJSON {
		return env.printJSON(b)
	}
	text := "raddle " + b.Version + "\n"
	switch {
	case b.Commit == "":
		text += "commit unknown: built outside of a clone\n"
	case b.Modified:
		text += fmt.Sprintf("commit %s of %s, with changes\n", b.Commit, b.Time)
	default:
		text += fmt.Sprintf("commit %s of %s\n", b.Commit, b.Time)
	}
	env.out.PrintText(text + fmt.Sprintf("built with %s for %s", b.Go, b.Platform))
	return nil
}
