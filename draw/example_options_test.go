package draw_test

import (
	"fmt"
	"os"

	"raddle.dev/draw"
	"raddle.dev/graph"
)

// A drawing may leave out what its reader knows: where the graph ends, and the
// targets that nodes name themselves. The node that runs first is drawn bold then.
func ExampleOptions() {
	s := graph.Structure{
		Name:  "desk",
		Start: []string{"draft"},
		Nodes: []graph.NodeInfo{{Name: "draft"}, {Name: "review"}},
		Edges: []graph.EdgeInfo{
			{From: "draft", To: "review", Kind: graph.EdgePlain},
			{From: "review", To: "draft", Label: "no", Kind: graph.EdgeRoute},
			{From: "review", To: graph.End, Kind: graph.EdgePlain},
		},
	}
	if err := draw.WriteMermaid(os.Stdout, s, draw.Options{Title: "The desk", NoEnds: true, NoRoutes: true}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ---
	// title: "The desk"
	// ---
	// flowchart TB
	//   n0["draft"]:::plain
	//   n1["review"]:::plain
	//   n0 --> n1
	//   style n0 stroke-width:3px
	//   classDef plain fill:#ffffff,stroke:#7c8a9c,color:#1e293b
}
