package toolbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/tool/script"
)

// A Terminal is lent to a script while it runs.
type Terminal struct {
	script.Terminal
	// Return takes the terminal back. interrupted: a person has pressed Ctrl-C, which
	// has ended the script; the run is stopped when Return returns.
	Return func(interrupted bool)
}

// buildInstructions returns what runs the function of an agent's file that makes its
// instructions.
func (tb *Toolbox) buildInstructions(h *script.Host, n flow.ToolNeed) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if !tb.TrustsDir(n.Dir) {
			return "", failure.NewStale("read the files, then name the agent: raddle run "+tb.shared.Dirs.ShortPath(n.Dir), "the scripts of agent '%s' in %s need consent before they run", n.Agent, tb.shared.Dirs.ShortPath(n.Dir))
		}
		t, absent := tb.borrowTerminal(ctx)
		if absent != nil {
			text, err := h.Instructions(ctx, nil)
			if err != nil && ctx.Err() == nil && !errors.Is(err, script.ErrNoInstructions) {
				err = fmt.Errorf("%w\nThe script could not ask a person: its standard input was empty, because %w", err, absent)
			}
			return text, err
		}
		text, err := h.Instructions(ctx, &t.Terminal)
		interrupted := errors.Is(err, script.ErrInterrupted)
		t.Return(interrupted)
		if interrupted { // a context ends a moment after the one that it was made from
			select {
			case <-ctx.Done():
			case <-time.After(interruptWait):
			}
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return text, err
	}
}

// interruptWait limits how long a call waits for the end of its run after Ctrl-C.
const interruptWait = time.Second

// borrowTerminal returns the terminal for a script that ctx belongs to. Only the
// agent that was started gets it: others may run at the same time. The error says why
// there is none.
func (tb *Toolbox) borrowTerminal(ctx context.Context) (*Terminal, error) {
	switch {
	case graph.TaskInfo(ctx).Path != "":
		return nil, errors.New("another agent has started this one: only the agent that you start may ask on the terminal")
	case tb.Terminal == nil:
		return nil, errNoTerminal
	}
	return tb.Terminal()
}

// errNoTerminal is the reason where raddle is not used from a terminal.
var errNoTerminal = errors.New("raddle has no terminal here")
