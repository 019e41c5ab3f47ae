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
	"raddle.dev/internal/app"
)

// graphOptions are the flags of "graph".
type graphOptions struct {
	format, file string
	right        bool
}

func newGraphCommand(env *environment) *cobra.Command {
	var opts graphOptions
	cmd := newCommand(env, &opts, runGraph, &cobra.Command{
		Use:   "graph AGENT",
		Short: "Draw an agent's graph",
		Long:  "Without --format, the name of the file decides the format, otherwise it is mermaid. You need not install anything.",
		Example: `  raddle graph examples/triage
  raddle graph examples/triage -o triage.svg
  raddle graph examples/triage --format dot | dot -Tpdf > triage.pdf`,
		Args:              checkArgCount(1, 1, "the agent"),
		ValidArgsFunction: completeAgents(env),
	})
	cmd.Flags().StringVar(&opts.format, "format", "", "draw as `FORMAT`: "+joinWords(draw.Formats()))
	cmd.Flags().StringVarP(&opts.file, "output", "o", "", "write to `FILE`; - is standard output")
	cmd.Flags().BoolVar(&opts.right, "right", false, "draw from left to right")
	completeWords(cmd, "format", draw.Formats()...)
	return cmd
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

func runGraph(_ context.Context, env *environment, opts graphOptions, args []string) error {
	format := cmp.Or(opts.format, formatOf(opts.file))
	if err := checkFormat(format, draw.Formats()...); err != nil {
		return err
	}
	o := draw.Options{}
	if opts.right {
		o.Direction = draw.Right
	}
	toOutput := opts.file == "" || opts.file == "-"
	if format == "png" && toOutput && env.out.IsTerminal() {
		return badUsage("write it to a file: -o graph.png", "a terminal cannot show a PNG picture")
	}
	a, err := env.process.Load(app.LoadRequest{Agent: args[0]})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := draw.Write(&b, format, a.Structure(), o); err != nil {
		return err
	}
	if !toOutput {
		return writeFile(opts.file, b.Bytes())
	}
	_, _ = env.out.Write(b.Bytes())
	return nil
}

// writeFile writes a file completely or not at all. It writes to what is not a regular
// file, such as a device, directly.
func writeFile(path string, data []byte) (err error) {
	fail := func(err error) error {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err // its path is that of the temporary file
		}
		return &exitError{code: exitUsage, err: fmt.Errorf("write %s: %w", path, err)}
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
