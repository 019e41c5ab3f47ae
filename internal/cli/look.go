package cli

import (
	"context"
	"errors"
	"path/filepath"

	"raddle.dev/internal/recorded"
	"raddle.dev/internal/setup"
	"raddle.dev/internal/term"
)

// errLooked reports that the person has looked at recorded agents in place of what was asked for.
var errLooked = silentExit{exitDone}

// lookAround lets the person look at recorded agents, which need no model.
func lookAround(ctx context.Context, env *environment) error {
	env.offersLook = false
	agents := recorded.List()
	labels := make([]string, len(agents))
	for i, a := range agents {
		labels[i] = a.Title
	}
	g := env.newGuide()
	g.Note("Their replies are recorded: no model is asked, nothing is sent.")
	n, err := g.ChooseLabel(ctx, env.err.Paint(term.Bold, "Which one?"), labels)
	if err != nil {
		return err
	}
	a := agents[n]
	dir, err := recorded.Write(filepath.Join(env.process.Dirs.Cache, "recorded"), a.Name)
	if err != nil {
		return err
	}
	if a.Graph {
		return runRun(ctx, env, runOptions{output: formatText, noStdin: true}, []string{dir, a.Prompt})
	}
	g.Note("It knows one message: %s  Ctrl-D leaves.", a.Prompt)
	return runChat(ctx, env, chatOptions{}, []string{dir})
}

// lookInstead shows recorded agents if an error says that the person wants them, and returns the error otherwise.
func lookInstead(ctx context.Context, env *environment, err error) error {
	if !errors.Is(err, setup.ErrLook) {
		return err
	}
	if err := lookAround(ctx, env); err != nil && !errors.Is(err, term.ErrLeftOpen) {
		return err
	}
	env.printNote("next: raddle init, which chooses a model")
	return errLooked
}
