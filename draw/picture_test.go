package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
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

func decodePNG(t *testing.T, s graph.Structure, o Options) image.Image {
	t.Helper()
	var b bytes.Buffer
	if err := WritePNG(&b, s, o); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// pngSamples show every form, every kind of edge and frames within frames; more pictures would only take time.
var pngSamples = []string{"empty", "linear", "kinds", "loops-right", "nested"}

// TestPNG checks the size of the picture, the fill of every node, frame and dot near its upper edge, and the colour
// of every edge along its line.
func TestPNG(t *testing.T) {
	for _, tt := range samples() {
		if !slices.Contains(pngSamples, tt.name) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			sc, err := buildScene(tt.s, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			img := decodePNG(t, tt.s, tt.o)
			if got, want := img.Bounds().Size(), image.Pt(2*int(sc.w), 2*int(sc.h)); got != want {
				t.Fatalf("size %v, want %v", got, want)
			}
			if c := img.At(1, 1); !near(c, paperColor) {
				t.Errorf("the corner is %v, want white", c)
			}
			for _, g := range sc.groups {
				for _, f := range g.figs {
					checkFigure(t, img, g, f)
				}
			}
		})
	}
}

// checkFigure looks for the colours of a figure. Something painted later may cover a part of it, but not all.
func checkFigure(t *testing.T, img image.Image, g group, f figure) {
	t.Helper()
	want := f.stroke
	if want == "" {
		want = f.fill
	}
	for _, l := range flattenPath(f.path, pngScale) {
		for i, q := range l.points {
			next := l.points[(i+1)%len(l.points)]
			for at := 0.0; at < 1; at += 0.02 {
				p := interpolatePoint(q, next, at)
				for dy := -1; dy <= 1; dy++ {
					for dx := -1; dx <= 1; dx++ {
						if near(img.At(int(math.Floor(p.x))+dx, int(math.Floor(p.y))+dy), want) {
							return
						}
					}
				}
			}
		}
	}
	t.Errorf("%s %v: a figure's colour %s is nowhere on its line", g.class, g.data, want)
}

// near reports whether a pixel has a colour, apart from smoothing.
func near(c color.Color, want string) bool {
	got, w := color.RGBAModel.Convert(c).(color.RGBA), parseColor(want)
	diff := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
	return max(diff(got.R, w.R), diff(got.G, w.G), diff(got.B, w.B)) <= 12
}

func TestPNGDrawsText(t *testing.T) {
	img := decodePNG(t, graph.Structure{Nodes: []graph.NodeInfo{{Name: "MMMM"}}}, Options{})
	dark := 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if near(img.At(x, y), inkColor) {
				dark++
			}
		}
	}
	if dark < 200 {
		t.Errorf("%d dark pixels: the name is not drawn", dark)
	}
}

func TestPNGRefusesMissingGlyphs(t *testing.T) {
	s := graph.Structure{Nodes: []graph.NodeInfo{{Name: "a", Title: "日本"}}}
	var b bytes.Buffer
	err := WritePNG(&b, s, Options{})
	if err == nil || !strings.Contains(err.Error(), `"日本"`) || !strings.Contains(err.Error(), "svg") {
		t.Errorf("got %v, want an error that names the label and suggests svg", err)
	}
	if b.Len() > 0 {
		t.Error("something was written")
	}
	if err := WritePNG(&b, graph.Structure{Nodes: []graph.NodeInfo{{Name: "größer – Ελλάδα, Москва…\u200b"}}}, Options{}); err != nil {
		t.Errorf("European letters: %v", err)
	}
}

func TestPNGRefusesHugePictures(t *testing.T) {
	s := graph.Structure{Name: "long"}
	for i := range 200 {
		s.Nodes = append(s.Nodes, graph.NodeInfo{Name: strings.Repeat("x", i+1)})
		if i > 0 {
			s.Edges = append(s.Edges, plain(s.Nodes[i-1].Name, s.Nodes[i].Name))
		}
	}
	err := WritePNG(&bytes.Buffer{}, s, Options{})
	if err == nil || !strings.Contains(err.Error(), "pixels") || !strings.Contains(err.Error(), `"long"`) {
		t.Errorf("got %v, want an error about the size", err)
	}
}

func TestDashLine(t *testing.T) {
	line := []pt{{0, 0}, {4, 0}, {10, 0}}
	var got float64
	for _, l := range dashLine(line, []float64{3, 2}, 1) {
		for i := 1; i < len(l.points); i++ {
			got += pointDistance(l.points[i-1], l.points[i])
		}
	}
	if got != 6 {
		t.Errorf("%v painted of 10, want 6", got)
	}
	for _, l := range (stroke{width: 2}).strokeOutline(dashLine(line, []float64{4, 2}, 1)) {
		for _, q := range l.points {
			if math.Abs(q.y) > 1.001 {
				t.Errorf("a stroke of width 2 reaches %v from its line", q.y)
			}
		}
	}
	if dots := dashLine(line, []float64{0, 5}, 1); len(dots) != 2 && len(dots) != 3 {
		t.Errorf("%d dots on a line of two gaps", len(dots))
	}
}
