package flow_test

import (
	"io"

	"raddle.dev/flow"
	"raddle.dev/flow/narrate"
	"raddle.dev/graph"
)

func init() {
	flow.NarrateCase = func(w io.Writer, a *flow.Agent) func(graph.Event) { return narrate.New(w, a, false).Event }
}
