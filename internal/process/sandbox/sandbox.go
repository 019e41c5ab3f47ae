// Package sandbox runs commands of a person as those of agents run: in the box of the current directory.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/tool/permission"
)

// OpenBox returns the box for commands in a directory, with the toolbox that it belongs to: closing the shared
// toolboxes removes it. The error says why none holds.
func OpenBox(tools *toolbox.Shared, dir string) (*box.Box, *toolbox.Toolbox, error) {
	tb := tools.NewToolbox(dir, "")
	if _, err := tools.NewGate(tb, "", permission.NewModeSwitch(permission.ModeEdits)); err != nil {
		return nil, nil, err
	}
	if err := tb.RequireBox(); err != nil {
		return nil, nil, err
	}
	b, err := tb.OpenBox()
	return b, tb, err
}

// RunCommand runs a program with arguments in the box of a directory, and returns its exit code. out gets its output;
// errs gets its errors, and then what it changed and what was held back. Both must be safe for use at the same time.
func RunCommand(ctx context.Context, tools *toolbox.Shared, dir string, args []string, out, errs io.Writer) (code int, err error) {
	b, tb, err := OpenBox(tools, dir)
	if err != nil {
		return 0, err
	}
	_, left, err := b.Run(ctx, proc.Command{
		Path:        args[0],
		Args:        args[1:],
		Dir:         dir,
		Env:         tb.ChildEnv(),
		Watch:       out,
		WatchStderr: errs,
	}, nil)
	describeOutcome(errs, left)
	if exit, ok := errors.AsType[*proc.ExitError](err); ok && exit.Code > 0 {
		return exit.Code, nil
	}
	return 0, err
}

// ExplainBox says what the box of a directory allows, line by line.
func ExplainBox(tools *toolbox.Shared, dir string) (string, error) {
	_, tb, err := OpenBox(tools, dir)
	if err != nil {
		return "", err
	}
	return strings.Join(tb.ExplainBox(), "\n"), nil
}

// maxNames is how many changed paths are listed.
const maxNames = 10

// describeOutcome writes what a command changed, without the data of repositories, and what was held back.
func describeOutcome(w io.Writer, o box.Remains) {
	shown := slices.DeleteFunc(slices.Clone(o.Changes), func(c box.PathChange) bool { return strings.HasPrefix(c.Path, ".git/") })
	for _, c := range shown[:min(len(shown), maxNames)] {
		fmt.Fprintf(w, "%s %s\n", c.Kind, c.Path)
	}
	if len(shown) > maxNames {
		fmt.Fprintf(w, "… and %d more\n", len(shown)-maxNames)
	}
	for _, h := range o.Held {
		fmt.Fprintf(w, "held back: %s %s\n", h.Path, h.Why)
	}
}
