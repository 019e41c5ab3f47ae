// Package shareview is raddle runs share: a run as one HTML file, which is the Studio's page of the run with all that
// the page requests. It opens without a server, requests nothing, and has no secret that raddle knows.
package shareview

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/server/studio"
)

// Options are the flags of the command.
type Options struct{ file string }

// Describe returns the command with its flags, without what it does.
func Describe(opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "share RUN",
		Short: "Write a run to one HTML file that shows it as the Studio does",
		Long: `The file is the Studio's page of the run: its graph, what happened, the state at every moment, and what models were
asked. It opens in a browser without a server and without a network, and requests nothing. It contains no secret that
raddle knows, but everything else that the run has read and written: look at it before you send it. Without -o it is
RUN.html in this directory. A file that exists is not replaced, unless -o names it.`,
		Example: `  raddle runs share last
  raddle runs share last -o bug.html`,
	}
	cmd.Flags().StringVarP(&opts.file, "output", "o", "", "write to `FILE`; - is standard output (default RUN.html)")
	return cmd
}

// Run carries the command out.
func (o Options) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	found, err := collectAnswers(ctx, p, args[0])
	if err != nil {
		return err
	}
	page, err := studio.NewDocument(found.Run, found)
	if err != nil {
		return err
	}
	if o.file == "-" {
		_, err := con.Out.Write(page)
		return err
	}
	path := p.Dirs.AbsPath(o.file)
	if o.file == "" {
		path = filepath.Join(p.Dirs.Work, found.Run+".html")
		if _, err := os.Lstat(path); err == nil {
			return ending.BadUsage("name a file: raddle runs share "+args[0]+" -o FILE", "%s exists already", p.Dirs.ShortPath(path))
		}
	}
	if err := savePage(path, page); err != nil {
		return ending.BadUsage("choose a file that can be written", "-o: %v", err)
	}
	con.PrintNote("raddle: run %s is in %s, %s: a browser opens it without a server. Secrets that raddle knows were taken out; read it before you send it.", found.Run, p.Dirs.ShortPath(path), wording.FormatBytes(len(page)))
	return nil
}

// savePage writes a file that only this user may read. What was there is replaced when the file is complete.
func savePage(path string, text []byte) error {
	out, err := os.CreateTemp(filepath.Dir(path), ".raddle-share-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	_, err = out.Write(text)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}
