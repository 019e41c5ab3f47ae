package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/draw"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// graphOptions are the flags of "graph".
type graphOptions struct {
	format, file, theme string
	right               bool
}

func newGraphCommand(op *opener) *cobra.Command {
	var opts graphOptions
	cmd := newCommand(op, &opts, runGraph, &cobra.Command{
		Use:   "graph AGENT|RUN",
		Short: "Draw an agent's graph, or what a run did in it",
		Long: `Without --format, the name of the file decides the format; otherwise a terminal gets a drawing, and anything else
Mermaid. You need not install anything.

With a run, the picture shows which nodes ran, how often and how long, what failed and what waits, also while it runs.`,
		Example: `  raddle graph review-gate
  raddle graph last
  raddle graph review-gate -o review.svg
  raddle graph review-gate --format dot | dot -Tpdf > review.pdf`,
		Args:              checkArgCount(1, 1, "the agent"),
		ValidArgsFunction: completeDrawn(op),
	})
	cmd.Flags().StringVar(&opts.format, "format", "", "draw as `FORMAT`: "+strings.Join(draw.Formats(), ", "))
	cmd.Flags().StringVarP(&opts.file, "output", "o", "", "write to `FILE`; - is standard output")
	cmd.Flags().StringVar(&opts.theme, "theme", string(draw.Light), "colours of SVG and PNG: `THEME` is light, dark or auto (an SVG follows its page; a PNG is dark)")
	completeWords(cmd, "theme", draw.Themes()...)
	cmd.Flags().BoolVar(&opts.right, "right", false, "draw from left to right")
	completeWords(cmd, "format", draw.Formats()...)
	return cmd
}

// completeDrawn completes an agent or a run.
func completeDrawn(op *opener) cobra.CompletionFunc {
	agents := completeAgents(op)
	list := completeRuns(op, 1, nil)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		names, directive := agents(cmd, args, word)
		if runs, _ := list(cmd, args, word); len(args) == 0 {
			names = append(names, runs...)
		}
		return names, directive
	}
}

// formatOf returns the format that the name of a file implies.
func formatOf(file string) string {
	ext := strings.TrimPrefix(strings.ToLower(filepath.Ext(file)), ".")
	switch {
	case slices.Contains(draw.Formats(), ext):
		return ext
	case ext == "gv":
		return "dot"
	}
	return "mermaid"
}

func runGraph(ctx context.Context, con *console.Console, p *app.Process, opts graphOptions, args []string) error {
	toOutput := opts.file == "" || opts.file == "-"
	format := cmp.Or(opts.format, formatOf(opts.file))
	if opts.format == "" && opts.file == "" && con.Out.IsTerminal() {
		format = "text"
	}
	if err := checkFormat(format, draw.Formats()...); err != nil {
		return err
	}
	if err := checkFormat(opts.theme, draw.Themes()...); err != nil {
		return ending.BadUsage(ending.SuggestWord(opts.theme, draw.Themes()), "--theme: there is no theme %q", opts.theme)
	}
	o := draw.Options{Theme: draw.Theme(opts.theme)}
	if opts.right {
		o.Direction = draw.Right
	}
	if format == "text" {
		addTextOptions(con, &o, toOutput)
	}
	if format == "png" && toOutput && con.Out.IsTerminal() {
		return ending.BadUsage("write it to a file: -o graph.png", "a terminal cannot show a PNG picture")
	}
	s, err := pictureOf(ctx, con, p, args[0], format, &o)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := draw.Write(&b, format, s, o); err != nil {
		return err
	}
	if !toOutput {
		return writeFile(opts.file, b.Bytes())
	}
	_, _ = con.Out.Write(b.Bytes())
	return nil
}

// pictureOf returns the structure of an agent or of a run, and sets the options that depend on it. JSON has the
// structure of an agent as it runs.
func pictureOf(ctx context.Context, con *console.Console, p *app.Process, name, format string, o *draw.Options) (graph.Structure, error) {
	v, err := drawnRun(ctx, p, name)
	if err != nil {
		return graph.Structure{}, err
	}
	if v != nil {
		return pictureOfRun(ctx, con, p, v, o), nil
	}
	a, err := p.Load(app.LoadRequest{Agent: name})
	switch {
	case err != nil:
		return graph.Structure{}, err
	case format == "json":
		return a.Structure(), nil
	}
	return a.Picture(), nil
}

// drawnRun returns the run that an argument of "graph" names: nil if it names an agent, or nothing.
func drawnRun(ctx context.Context, p *app.Process, name string) (*runs.View, error) {
	isLast := name == "last" || strings.HasPrefix(name, "last~")
	if !isLast {
		if app.IsPath(name) || slices.ContainsFunc(p.ListAgents(), func(a app.Place) bool { return a.Name == name }) {
			return nil, nil
		}
	}
	v, err := p.Runs.ReadView(ctx, name)
	if failed := (*failure.Error)(nil); !isLast && errors.As(err, &failed) {
		return nil, nil // it is said that there is no such agent
	}
	return v, err
}

// pictureOfRun returns the structure of the agent of a run, and sets what the run did in it.
func pictureOfRun(ctx context.Context, con *console.Console, p *app.Process, v *runs.View, o *draw.Options) graph.Structure {
	moments := v.Moments()
	picture := overview.PictureOf(ctx, p, v.Detail, moments)
	if picture.Note != "" {
		con.PrintNote("raddle: %s", picture.Note)
	}
	story.AddRun(o, &picture.Structure, v.Detail, moments)
	return picture.Structure
}

// addTextOptions sets the options of a drawing with characters: its width, its colours, and whether it has only ASCII
// characters.
func addTextOptions(con *console.Console, o *draw.Options, toOutput bool) {
	o.ASCII = !hasUTF8()
	if !toOutput {
		return
	}
	if con.Out.IsTerminal() {
		o.Columns, _ = con.Out.Size()
		o.ASCII = o.ASCII || term.IsDumb()
	}
	styles := map[draw.Ink]term.Style{draw.InkName: term.Bold, draw.InkDim: term.Dim, draw.InkDone: term.Green, draw.InkWait: term.Yellow, draw.InkFail: term.Red, draw.InkChoice: term.Cyan}
	o.Paint = func(ink draw.Ink, text string) string {
		if strings.TrimSpace(text) == "" {
			return text
		}
		return con.Out.Paint(styles[ink], text)
	}
}

// hasUTF8 reports whether the locale has characters that are not ASCII. A locale that is not set counts as one that
// does.
func hasUTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}

// writeFile writes a file completely or not at all. It writes to what is not a regular
// file, such as a device, directly.
func writeFile(path string, data []byte) (err error) {
	fail := func(err error) error {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err // its path is that of the temporary file
		}
		return &ending.Error{Code: ending.Usage, Err: fmt.Errorf("write %s: %w", path, err)}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return fail(err)
		}
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fail(err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fail(err)
	}
	return nil
}
