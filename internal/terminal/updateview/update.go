// Package updateview is raddle update and raddle version, and the notice in conversations that there is a newer release.
package updateview

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/release"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// Options are the flags of raddle update.
type Options struct {
	check  bool
	Output string
}

// NewCommand returns the command, and its options, of which Output gets its flag from the caller. It needs no
// configuration: a newer release may be what can read the file.
func NewCommand(con *console.Console) (*Options, *cobra.Command) {
	opts := &Options{}
	cmd := &cobra.Command{
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return opts.Run(ctx, con)
		},
		Use:   "update",
		Short: "Replace raddle by its newest release, or say what does",
		Long: `Asks the address that this program was built with for the newest release, and replaces the program if that one is newer. The
signature of the release and the checksum of its archive are verified first, and the new file replaces the old one
in one step; whatever fails before changes nothing. An older release never replaces a newer one. Where a package
manager, npm, pip or go install has put raddle on this machine, nothing is changed, and the command that updates it is
named. With --check nothing is changed either, and the exit code is 1 if there is a newer release.
See: raddle help install`,
		Example: `  raddle update --check
  raddle update`,
	}
	cmd.Flags().BoolVar(&opts.check, "check", false, "only say whether there is a newer release")
	return opts, cmd
}

// A result is what raddle update has found and done.
type result struct {
	Version   string `json:"version"`           // of this program; "" if it is none of a release
	Newest    string `json:"newest,omitempty"`  // of the releases
	Newer     bool   `json:"newer"`             // Newest is newer than Version
	Updated   bool   `json:"updated"`           // the program was replaced
	Program   string `json:"program"`           // its file
	Installed string `json:"installed_by"`      // an [release.Origin]'s kind
	Command   string `json:"command,omitempty"` // what updates it
}

// Run updates the program, or says what does.
func (o *Options) Run(ctx context.Context, con *console.Console) error {
	program, err := release.FindProgram()
	if err != nil {
		return err
	}
	origin, err := release.FindOrigin(program)
	if err != nil {
		return err
	}
	r := result{Version: release.Version, Program: origin.Program, Installed: origin.Kind, Command: cmp.Or(origin.Command, "raddle update")}
	if origin.Kind != release.KindArchive && !o.check {
		return failure.NewUsage(r.Command, "%s was installed by %s, so raddle does not change it", origin.Program, nameKind(origin.Kind))
	}
	source, err := release.FindSource()
	if err != nil {
		return err
	}
	var replacement *release.Replacement
	if !o.check { // a directory that cannot be written is known before anything is fetched
		if replacement, err = release.PrepareReplacement(origin.Program); err != nil {
			return err
		}
		defer replacement.Discard()
		con.PrintNote("asking %s for the newest release", source)
	}
	newest, err := source.FindNewest(ctx)
	if err != nil {
		return err
	}
	if err := r.compare(newest.Version); err != nil {
		return err
	}
	if r.Newer && !o.check {
		con.PrintNote("fetching %s", newest.Version)
		content, err := source.FetchProgram(ctx, newest)
		if err != nil {
			return err
		}
		if err := replacement.Commit(content); err != nil {
			return err
		}
		r.Updated = true
	}
	if err := con.PrintResult(o.Output, r, r.describe); err != nil {
		return err
	}
	if r.Newer && !r.Updated {
		return ending.ExitSilently(1)
	}
	return nil
}

// compare notes the newest release.
func (r *result) compare(newest string) error {
	r.Newest = newest
	if r.Version == "" {
		return nil
	}
	order, ok := release.Compare(r.Version, newest)
	if !ok {
		return fmt.Errorf("the versions %q and %q cannot be compared", r.Version, newest)
	}
	r.Newer = order < 0
	return nil
}

// describe returns the result as text.
func (r result) describe() string {
	switch {
	case r.Updated:
		return fmt.Sprintf("%s is now %s (before: %s)", r.Program, r.Newest, r.Version)
	case r.Version == "":
		return fmt.Sprintf("the newest release is %s; this program was built from its source. To update it: %s", r.Newest, term.CleanLine(r.Command))
	case r.Newer:
		return fmt.Sprintf("%s is newer than this program, which is %s. To update it: %s", r.Newest, r.Version, term.CleanLine(r.Command))
	}
	return fmt.Sprintf("raddle %s is up to date: the newest release is %s", r.Version, r.Newest)
}

// kindNames are what is said of programs that raddle does not replace.
var kindNames = map[string]string{release.KindSource: "the Go tool", "deb": "a deb package", "rpm": "an rpm package", "image": "a container image", "pip": "pip", "npm": "npm", "homebrew": "Homebrew", "scoop": "Scoop"}

func nameKind(kind string) string { return cmp.Or(kindNames[kind], term.CleanLine(kind)) }

// PrintBuild prints the version, the commit and how the program was built.
func PrintBuild(con *console.Console, output string) error {
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
	return con.PrintResult(output, b, func() string { return text + fmt.Sprintf("built with %s for %s", b.Go, b.Platform) })
}
