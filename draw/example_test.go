package draw_test

import (
	"fmt"
	"os"

	"raddle.dev/draw"
	"raddle.dev/graph"
)

func ExampleWriteMermaid() {
	s := graph.Structure{
		Start: []string{"draft"},
		Nodes: []graph.NodeInfo{{Name: "draft", Kind: "llm"}, {Name: "review", Kind: "approval", Title: "Publish it?"}},
		Edges: []graph.EdgeInfo{
			{From: "draft", To: "review", Kind: graph.EdgePlain},
			{From: "review", To: "draft", Label: "no", Kind: graph.EdgeRoute},
			{From: "review", To: graph.End, Label: "yes", Kind: graph.EdgeRoute},
		},
	}
	if err := draw.WriteMermaid(os.Stdout, s, draw.Options{Direction: draw.Right}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// flowchart LR
	//   n0(("start")):::start
	//   n1("draft"):::k_llm
	//   n2{{"Publish it?"}}:::k_approval
	//   n3((("end"))):::finish
	//   n0 --> n1
	//   n1 --> n2
	//   n2 -.->|"no"| n1
	//   n2 -.->|"yes"| n3
	//   classDef start fill:#334155,stroke:#334155,color:#ffffff
	//   classDef k_llm fill:#f3f0ff,stroke:#7c5cdb,color:#1e293b
	//   classDef k_approval fill:#fff6e0,stroke:#d1930f,color:#1e293b
	//   classDef finish fill:#334155,stroke:#334155,color:#ffffff
	//   linkStyle 2,3 stroke:#0f7b72,stroke-dasharray:3 3
}

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
