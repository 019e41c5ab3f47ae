package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// element is an element of an SVG with its attributes and text.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parseSVG reads all elements; it fails for what is not well-formed.
func parseSVG(t *testing.T, svg []byte) []element {
	t.Helper()
	var list []element
	var open []int
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			open = append(open, len(list))
			list = append(list, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				list[open[len(open)-1]].text += string(token)
			}
		}
	}
}

func TestSVGWellFormed(t *testing.T) {
	for _, tt := range samples() {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteSVG(&b, tt.s, tt.o); err != nil {
				t.Fatal(err)
			}
			var nodes []string
			for _, e := range parseSVG(t, b.Bytes()) {
				if path, ok := e.attrs["data-node"]; ok {
					nodes = append(nodes, path)
				}
			}
			slices.Sort(nodes)
			if want := nodePaths(tt.s, ""); !slices.Equal(nodes, want) {
				t.Errorf("nodes %q, want %q", nodes, want)
			}
		})
	}
}

// nodePaths lists what data-node should say, sorted.
func nodePaths(s graph.Structure, path string) (list []string) {
	for _, n := range s.Nodes {
		list = append(list, cleanLabel(path+n.Name))
		if n.Child != nil {
			list = append(list, nodePaths(*n.Child, path+n.Name+"/")...)
		}
		for kind, child := range n.Children {
			inside := path + n.Name + "/" + kind
			list = append(append(list, inside), nodePaths(child, inside+"/")...)
		}
	}
	slices.Sort(list)
	return list
}

// TestEdgesTouchOutlines checks in the finished scenes that every edge begins and ends on the outline of a node, or of
// the start, the end, a bar or a frame.
func TestEdgesTouchOutlines(t *testing.T) {
	all := samples()
	all = append(all, sample{name: "chaos", s: chaos(60)}, sample{name: "chaos-right", s: chaos(60), o: Options{Direction: Right}})
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			sc, err := buildScene(tt.s, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			var outlines []polyline
			for _, g := range sc.groups {
				if !strings.HasPrefix(g.class, "edge") {
					for _, f := range g.figs {
						outlines = append(outlines, flattenPath(f.path, 1)...)
					}
				}
			}
			for _, g := range sc.groups {
				if !strings.HasPrefix(g.class, "edge") {
					continue
				}
				line := flattenPath(g.figs[0].path, 1)[0].points
				ends := []pt{line[0], line[len(line)-1]}
				if len(g.figs) > 1 && g.figs[1].fill == g.figs[0].stroke { // the arrow head, whose first point is its tip
					ends[1] = g.figs[1].path[0].p[0]
				}
				for _, end := range ends {
					if !touches(end, outlines) {
						t.Errorf("%s %v: the end %v is on no outline", g.class, g.data, end)
					}
				}
			}
		})
	}
}

func touches(p pt, outlines []polyline) bool {
	for _, o := range outlines {
		for i, a := range o.points {
			b := o.points[(i+1)%len(o.points)]
			d := pointDistance(a, b)
			if d == 0 {
				continue
			}
			at := min(max(((p.x-a.x)*(b.x-a.x)+(p.y-a.y)*(b.y-a.y))/(d*d), 0), 1)
			if pointDistance(p, interpolatePoint(a, b, at)) < 0.8 {
				return true
			}
		}
	}
	return false
}

// TestTextFits checks that the text of a node stays within its outline, by the widths of the built-in font.
func TestTextFits(t *testing.T) {
	r, err := newTextMeasurer()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range samples() {
		sc, err := buildScene(tt.s, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range sc.groups {
			if g.class != "node" {
				continue
			}
			lo, hi := g.figs[0].path[0].p[0].x, 0.0
			for _, l := range flattenPath(g.figs[0].path, 1) {
				for _, q := range l.points {
					lo, hi = min(lo, q.x), max(hi, q.x)
				}
			}
			for _, c := range g.texts {
				half := float64(r.textWidth(c.style, c.text)) / 2
				if c.at.x-half < lo+4 || c.at.x+half > hi-4 {
					t.Errorf("%s: %q from %v to %v does not fit into %v to %v", tt.name, c.text, c.at.x-half, c.at.x+half, lo, hi)
				}
			}
		}
	}
}
