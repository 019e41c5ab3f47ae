package narrate_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/narrate"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

// replays is a flow.Models that knows transcripts only.
type replays struct{}

func (replays) IsKnown(_, id string) bool            { return strings.HasPrefix(id, "script:") }
func (replays) Facts(string, string) flow.ModelFacts { return flow.ModelFacts{} }
func (replays) Open(_ context.Context, dir, id string) (llm.Model, error) {
	return script.Open(filepath.Join(dir, strings.TrimPrefix(id, "script:")))
}

// must returns a value, or panics with the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A Narrator shows people what a run does while it works.
func ExampleNew() {
	hello := must(flow.Load("../../examples/hello", flow.Host{Models: replays{}}))
	runner := &graph.Runner{Graph: must(hello.CompileGraph()), Clock: &graphtest.Clock{}}
	var text strings.Builder
	narrator := narrate.New(&text, hello, false)
	in := hello.Input("Ada")
	in.Topics = narrate.Topics
	for ev, err := range runner.Run(context.Background(), in) {
		if err != nil {
			fmt.Println(err)
			return
		}
		narrator.Event(ev)
	}
	fmt.Print(text.String())
	// Output:
	// ▸ graph: hello (start: greet)
	// ▸ greet (llm)
	// ▸   llm call: model=<active> tools=<none>
	// ▸ greet -> done
	// ▸ done (end)
	// ▸ graph done in 0.00s
}
