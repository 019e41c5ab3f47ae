package setup

import (
	"context"
	"path/filepath"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/recorded"
)

// PickRecorded asks which recorded agent the person wants to look at, and returns it with its directory.
func (g *Guide) PickRecorded(ctx context.Context) (a recorded.Agent, dir string, err error) {
	agents := recorded.List()
	labels := make([]string, len(agents))
	for i := range agents {
		labels[i] = agents[i].Title
	}
	g.PrintNote("Their replies are recorded: no model is asked, nothing is sent.")
	n, err := g.ChooseLabel(ctx, g.Screen.Paint(term.Bold, "Which one?"), labels)
	if err != nil {
		return recorded.Agent{}, "", err
	}
	if !agents[n].Graph {
		g.PrintNote("It knows one message: %s  Ctrl-D leaves.", agents[n].Prompt)
	}
	dir, err = recorded.Write(filepath.Join(g.Process.Dirs.Cache, "recorded"), agents[n].Name)
	return agents[n], dir, err
}
