package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
)

func (sh *shell) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  want(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return sh.printVersion() },
	}
}

func (sh *shell) printVersion() error {
	sh.out.text(fmt.Sprintf("raddle %s (%s, %s/%s)", app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
	return nil
}
