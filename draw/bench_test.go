package draw

import (
	"fmt"
	"io"
	"testing"

	"raddle.dev/graph"
)

// chaos is a graph of n nodes with edges of all lengths and directions. It is the same for the same n.
func chaos(n int) graph.Structure {
	s := graph.Structure{Name: fmt.Sprint(n, " nodes"), Start: []string{"node 0"}}
	seed := uint32(1)
	random := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	kinds := []string{"llm", "script", "approval", "rag", "agent", "map", "input", "tool", "function"}
	name := func(i int) string { return fmt.Sprint("node ", i) }
	for i := range n {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: name(i), Kind: kinds[random(len(kinds))]})
		if i > 0 {
			s.Edges = append(s.Edges, plain(name(max(0, i-1-random(6))), name(i)))
		}
		switch random(8) {
		case 0:
			s.Edges = append(s.Edges, branch(name(i), name(random(n)), fmt.Sprint("case ", i)))
		case 1:
			s.Edges = append(s.Edges, route(name(i), name(random(i+1)), "back"))
		case 2:
			s.Edges = append(s.Edges, failure(name(i), graph.End, ""))
		}
	}
	return s
}

func BenchmarkSVG(b *testing.B) {
	for _, n := range []int{10, 50, 200} {
		s := chaos(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := WriteSVG(io.Discard, s, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPNG(b *testing.B) {
	s := triage()
	b.ReportAllocs()
	for b.Loop() {
		if err := WritePNG(io.Discard, s, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	s := chaos(200)
	for name, draw := range map[string]func(io.Writer, graph.Structure, Options) error{"mermaid": WriteMermaid, "dot": WriteDOT} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := draw(io.Discard, s, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
