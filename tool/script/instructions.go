package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/tool/declare"
)

// ErrNoInstructions means that the agent's file of tools has no function
// _instructions.
var ErrNoInstructions = errors.New("there is no function '_instructions'")

// ErrInterrupted means that a person has pressed Ctrl-C on the terminal that the
// function _instructions had, and that this has ended it.
var ErrInterrupted = errors.New("interrupted at the terminal")

// A Terminal is lent to a function that may ask a person. While it runs, it has
// the keyboard, and Ctrl-C and Ctrl-Z are for it alone.
type Terminal struct {
	In        *os.File // its standard input
	Out       *os.File // its standard output and standard error
	Suspended func()   // called when it was stopped; it continues when that returns. nil: at once
}

// Instructions runs the function _instructions of the agent's file of tools and
// returns what it wrote or returned. A function that fails, or gives nothing, is
// an error. t is the terminal on which the function may ask a person: instructions
// are made when an agent starts. nil: its standard input is empty.
func (h *Host) Instructions(ctx context.Context, t *Terminal) (string, error) {
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
	s := &script{host: h, file: absolutePath(path), language: f.Language, own: true, Declaration: *f.Instructions}
	r := &scriptCall{script: s, dir: dir, data: map[string]json.RawMessage{}}
	r.call.Args = json.RawMessage(`{}`)
	cmd, wrong, err := r.buildCommand()
	if err == nil && wrong != "" {
		err = errors.New(wrong)
	}
	if err != nil {
		return "", fmt.Errorf("dynamic instructions: %w", err)
	}
	if t != nil {
		cmd.Terminal = (*proc.Terminal)(t)
	}
	res, err := r.runProcess(ctx, cmd)
	if t != nil && wasInterrupted(err) {
		return "", fmt.Errorf("dynamic instructions: %w", ErrInterrupted)
	}
	if err != nil {
		if text := strings.TrimSpace(cleanText(res.Stderr)); text != "" {
			return "", fmt.Errorf("dynamic instructions: %w\n%s", err, text)
		}
		return "", fmt.Errorf("dynamic instructions: %w", err)
	}
	output := readOutput(r.callPath("output"), proc.DefaultLimit)
	if output == "" {
		return "", errors.New("dynamic instructions: No return value from '_instructions' function")
	}
	return output, nil
}

// wasInterrupted reports whether Ctrl-C ended a script: by its signal, or by the exit
// code that shells give for that.
func wasInterrupted(err error) bool {
	exit, ok := errors.AsType[*proc.ExitError](err)
	const interrupted = 130
	return ok && (exit.Signal == "SIGINT" || exit.Code == interrupted)
}
