// Command manual writes what a release contains in addition to the program: a man page for each
// command, and completions for the shells.
//
//	go run ./internal/terminal/manual DIR
//
// The date of the pages is SOURCE_DATE_EPOCH, in seconds, or today.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"raddle.dev/internal/terminal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR")
		os.Exit(2)
	}
	if err := writeManual(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// writeManual writes DIR/man/*.1 and DIR/completions/*.
func writeManual(dir string) error {
	pages := filepath.Join(dir, "man")
	completions := filepath.Join(dir, "completions")
	for _, d := range []string{pages, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	root := cli.NewCommand()
	root.DisableAutoGenTag = true
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "raddle", Manual: "raddle"}, pages); err != nil {
		return err
	}
	for name, write := range map[string]func(*cobra.Command, string) error{
		"raddle.bash": writeBashCompletion,
		"_raddle":     (*cobra.Command).GenZshCompletionFile,
		"raddle.fish": func(c *cobra.Command, file string) error { return c.GenFishCompletionFile(file, true) },
		"raddle.ps1":  (*cobra.Command).GenPowerShellCompletionFileWithDesc,
	} {
		if err := write(root, filepath.Join(completions, name)); err != nil {
			return err
		}
	}
	return nil
}

func writeBashCompletion(root *cobra.Command, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(cli.WriteBashCompletion(root, f), f.Close())
}
