package flow_test

import (
	"io"
	"log/slog"

	"raddle.dev/flow"
	"raddle.dev/flow/narrate"
	"raddle.dev/graph"
)

func init() {
	flow.NarrateCase = func(w io.Writer, a *flow.Agent) func(graph.Event) { return narrate.New(w, a, false).Event }
	flow.LogCase = func(log *slog.Logger, a *flow.Agent) func(graph.Event) { return narrate.NewLog(log, a).Event }
}
