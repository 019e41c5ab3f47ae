package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"raddle.dev/internal/proc"
	"raddle.dev/internal/tempdir"
	"raddle.dev/tool/declare"
)

// ErrNoInstructions means that the agent's file of tools has no function
// _instructions.
var ErrNoInstructions = errors.New("there is no function '_instructions'")

// Instructions runs the function _instructions of the agent's file of tools and
// returns what it wrote or returned. A function that fails, or gives nothing, is
// an error. stdin is what the function may read: instructions are made when an
// agent starts, so there may be somebody to ask.
func (h *Host) Instructions(ctx context.Context, stdin []byte) (string, error) {
	path := h.ownFile()
	if path == "" {
		return "", fmt.Errorf("dynamic instructions: %w: the agent has no file of tools", ErrNoInstructions)
	}
	f := declare.Load(path)
	if f.Instructions == nil {
		return "", fmt.Errorf("dynamic instructions: %w in %s", ErrNoInstructions, path)
	}
	dir, remove, err := tempdir.New("tool-*")
	if err != nil {
		return "", fmt.Errorf("dynamic instructions: %w", err)
	}
	defer remove()
	s := &script{host: h, file: absolute(path), language: f.Language, own: true, Declaration: *f.Instructions}
	r := &running{script: s, dir: dir, data: map[string]json.RawMessage{}}
	r.call.Args = json.RawMessage(`{}`)
	cmd, wrong, err := r.command()
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	if err != nil {
		return "", fmt.Errorf("dynamic instructions: %w", err)
	}
	cmd.Stdin = stdin
	res, err := r.execute(ctx, cmd)
	if err != nil {
		if text := strings.TrimSpace(clean(res.Stderr)); text != "" {
			return "", fmt.Errorf("dynamic instructions: %w\n%s", err, text)
		}
		return "", fmt.Errorf("dynamic instructions: %w", err)
	}
	output := readOutput(r.path("output"), proc.DefaultLimit)
	if output == "" {
		return "", errors.New("dynamic instructions: No return value from '_instructions' function")
	}
	return output, nil
}
