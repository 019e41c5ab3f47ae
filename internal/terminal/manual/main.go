// Command manual writes what a release contains in addition to the program: a man page for each
// command, and completions for the shells. With a second directory, it writes the scripts there that
// install the releases at release.Address; the linker sets that and release.Key as in the program.
//
//	go run ./internal/terminal/manual DIR [SCRIPTS]
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

	"raddle.dev/internal/base/release"
	"raddle.dev/internal/terminal/cli"
	"raddle.dev/internal/terminal/installer"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR [SCRIPTS]")
		os.Exit(2)
	}
	err := writeManual(os.Args[1])
	if err == nil && len(os.Args) == 3 {
		err = writeScripts(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

// writeScripts writes install.sh and install.ps1.
func writeScripts(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range installer.Names {
		text, err := installer.Render(name, release.Address, release.Key)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
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
