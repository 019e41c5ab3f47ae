package draw

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

var update = flag.Bool("update", false, "write the golden files anew")

var extensions = map[string]string{"mermaid": "mmd", "dot": "dot", "svg": "svg", "json": "json"}

// TestGolden compares every sample in every text format with its file. Look at the pictures after an update.
func TestGolden(t *testing.T) {
	for _, tt := range samples() {
		for _, format := range Formats() {
			if format == "png" {
				continue // its bytes hang on the compressor; see TestPNG
			}
			t.Run(tt.name+"/"+format, func(t *testing.T) {
				var b bytes.Buffer
				if err := Write(&b, format, tt.s, tt.o); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", tt.name+"."+extensions[format])
				if *update {
					if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(string(want), b.String()); d != "" {
					t.Errorf("%s differs (-want +got), run with -update and look:\n%s", file, d)
				}
			})
		}
	}
}

func TestWriteUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, "gif", linear(), Options{})
	if err == nil || !strings.Contains(err.Error(), `"gif"`) || !strings.Contains(err.Error(), "mermaid, dot, svg, png, json") {
		t.Errorf("got %v, want an error that names the format and lists the known ones", err)
	}
}

func TestFaults(t *testing.T) {
	node := func(names ...string) (list []graph.NodeInfo) {
		for _, n := range names {
			list = append(list, graph.NodeInfo{Name: n})
		}
		return list
	}
	endless := graph.Structure{Name: "endless", Nodes: node("a")}
	endless.Nodes[0].Child = &endless
	recruits := graph.Structure{Name: "recruits", Nodes: []graph.NodeInfo{{Name: "a", Children: map[string]graph.Structure{}}}}
	recruits.Nodes[0].Children["again"] = recruits // it shares the map
	wide := graph.Structure{Name: "level 0", Nodes: node("a")}
	for range 20 {
		child := wide
		wide = graph.Structure{Name: "wide", Nodes: []graph.NodeInfo{{Name: "a", Child: &child}, {Name: "b", Child: &child}}}
	}
	tests := []struct {
		name string
		s    graph.Structure
		want string
	}{
		{"unknown start", graph.Structure{Name: "g", Start: []string{"x"}}, `graph "g": starts at node "x"`},
		{"unknown from", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain("x", "a")}}, `from node "x"`},
		{"unknown to", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain("a", "x")}}, `from "a" to node "x"`},
		{"from the end", graph.Structure{Name: "g", Nodes: node("a"), Edges: []graph.EdgeInfo{plain(graph.End, "a")}}, `leads from END to "a"`},
		{"same name", graph.Structure{Name: "g", Nodes: node("a", "a")}, `two nodes are named "a"`},
		{"endless", endless, "does it contain itself?"},
		{"endless by name", recruits, "does it contain itself?"},
		{"too large", wide, "more than 20000 nodes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, format := range Formats() {
				if format == "json" && !strings.HasPrefix(tt.name, "endless") && tt.name != "too large" {
					continue // JSON shows also what cannot be drawn
				}
				err := Write(&bytes.Buffer{}, format, tt.s, Options{})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: got %v, want an error with %q", format, err, tt.want)
				}
			}
		})
	}
}

// failing is a writer that takes no more.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorIsReported(t *testing.T) {
	for _, format := range Formats() {
		if err := Write(failing{}, format, triage(), Options{}); err == nil {
			t.Errorf("%s: a failed write is not reported", format)
		}
	}
}
